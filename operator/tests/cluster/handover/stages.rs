//! The stages of a job's life, with the steps to reach and to leave each stage.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use training_job::api::ConditionType;
use training_job::api::labels::RESTART_ATTEMPT;

use super::jobs::Jobs;

/// A stage of a job's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Created,
    PartlyRunning,
    Running,
    /// A worker has succeeded.
    PartlyDone,
    /// The leader was killed, and its replacement does not run yet.
    Restarting,
    /// A worker was killed, and its pod is still being deleted.
    AboutToRestart,
    Suspended,
    /// The job is being suspended, and its pods are still being deleted.
    AboutToSleep,
    /// Its pods may remain.
    Succeeded,
    /// Its pods may remain.
    Failed,
    /// Its pods must be deleted, and are still being deleted.
    CleaningUp,
}

pub(crate) const STAGES: [Stage; 11] = [
    Stage::Created,
    Stage::PartlyRunning,
    Stage::Running,
    Stage::PartlyDone,
    Stage::Restarting,
    Stage::AboutToRestart,
    Stage::Suspended,
    Stage::AboutToSleep,
    Stage::Succeeded,
    Stage::Failed,
    Stage::CleaningUp,
];

impl Stage {
    /// Returns a name for jobs at this stage.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Returns true if services are still to be deleted, which may happen at any time.
    pub(crate) fn may_lose(self) -> bool {
        matches!(self, Self::AboutToSleep | Self::CleaningUp)
    }

    /// Creates a job and brings it to this stage, under either operator.
    pub(crate) async fn begin(self, jobs: &Jobs, job: &str) {
        let clean = if self == Self::CleaningUp { "All" } else { "None" };
        let policy = match self {
            Self::Restarting | Self::AboutToRestart => "ExitCode",
            _ => "Never",
        };
        jobs.create(job, clean, policy).await;
        jobs.complete(job).await;
        let kind = jobs.kind;
        let pod = |replica: &str| format!("{job}-{replica}");
        match self {
            Self::Created => drop(jobs.is(job, ConditionType::Created).await),
            Self::PartlyRunning => {
                jobs.kubelet.runs(&pod(kind.leader)).await;
                jobs.kubelet.runs(&pod("worker-0")).await;
                jobs.is(job, ConditionType::Running).await;
            }
            _ => {
                jobs.run(job).await;
                jobs.is(job, ConditionType::Running).await;
            }
        }
        match self {
            Self::Created | Self::PartlyRunning | Self::Running => {}
            Self::PartlyDone => jobs.kubelet.succeeds(&pod("worker-0")).await,
            Self::Restarting => {
                jobs.kubelet.exits(&pod(kind.leader), kind.container, 137).await;
                // If other replicas decide as well, the job is Running again immediately.
                if !kind.all_decide {
                    jobs.is(job, ConditionType::Restarting).await;
                }
                if !kind.is_restarted {
                    return;
                }
                let is_new = |pod: &Pod| {
                    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
                    phase == Some("Pending")
                };
                jobs.complete_and(job, is_new).await;
            }
            Self::AboutToRestart => {
                jobs.hold(job).await;
                jobs.kubelet.exits(&pod("worker-1"), kind.container, 137).await;
                jobs.pods(job, |pods| pods.iter().all(|p| p.name_any() != pod("worker-1")))
                    .await;
            }
            Self::Suspended => {
                jobs.suspend(job, true).await;
                jobs.is(job, ConditionType::Suspended).await;
                jobs.gone(job).await;
            }
            Self::AboutToSleep => {
                jobs.hold(job).await;
                jobs.suspend(job, true).await;
                jobs.stopped(job).await;
                jobs.is(job, ConditionType::Suspended).await;
            }
            Self::Succeeded => {
                for replica in kind.deciding() {
                    jobs.kubelet.succeeds(&pod(replica)).await;
                }
                jobs.is(job, ConditionType::Succeeded).await;
            }
            Self::Failed => {
                jobs.kubelet.exits(&pod("worker-0"), kind.container, 1).await;
                jobs.is(job, ConditionType::Failed).await;
            }
            Self::CleaningUp => {
                jobs.hold(job).await;
                for replica in kind.deciding() {
                    jobs.kubelet.succeeds(&pod(replica)).await;
                }
                jobs.is(job, ConditionType::Succeeded).await;
                jobs.stopped(job).await;
            }
        }
    }

    /// Continues a job for a while under our operator.
    pub(crate) async fn go_on(self, jobs: &Jobs, job: &str) {
        match self {
            Self::Created | Self::PartlyRunning => {
                jobs.run(job).await;
                jobs.is(job, ConditionType::Running).await;
            }
            Self::Restarting => {
                jobs.run(job).await;
                jobs.is(job, ConditionType::Running).await;
                // It restarts once more, so that the Go operator gets pods with an attempt annotation.
                let pod = format!("{job}-worker-1");
                jobs.kubelet.exits(&pod, jobs.kind.container, 137).await;
                let is_new = |pod: &Pod| pod.annotations().contains_key(RESTART_ATTEMPT);
                jobs.pods(job, |pods| pods.iter().any(is_new)).await;
                jobs.run(job).await;
                jobs.is(job, ConditionType::Running).await;
            }
            Self::Running => jobs.kubelet.succeeds(&format!("{job}-worker-1")).await,
            Self::AboutToRestart => {
                jobs.release(job).await;
                jobs.run(job).await;
                jobs.is(job, ConditionType::Running).await;
            }
            Self::AboutToSleep => {
                jobs.release(job).await;
                jobs.gone(job).await;
            }
            Self::PartlyDone | Self::Suspended | Self::Succeeded | Self::Failed | Self::CleaningUp => {}
        }
    }

    /// Brings a job to its end.
    pub(crate) async fn end(self, jobs: &Jobs, job: &str) {
        match self {
            Self::Succeeded | Self::Failed => return,
            Self::CleaningUp => {
                jobs.release(job).await;
                jobs.gone(job).await;
                return;
            }
            Self::Suspended | Self::AboutToSleep => {
                jobs.release(job).await;
                jobs.gone(job).await;
                jobs.suspend(job, false).await;
            }
            _ => jobs.release(job).await,
        }
        jobs.run(job).await;
        jobs.is(job, ConditionType::Running).await;
        for replica in ["worker-0", "worker-1", jobs.kind.leader] {
            jobs.kubelet.succeeds(&format!("{job}-{replica}")).await;
        }
        jobs.is(job, ConditionType::Succeeded).await;
    }
}
