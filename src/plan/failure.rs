//! Failures of replicas: their root cause, and whether they are final.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::{ContainerRecord, PodRecord, Termination};
use crate::api::{FailureRecord, RestartPolicy};
use crate::job::TrainingJob;
use crate::job::{Replica, Role};

/// A replica's failure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) cause: FailureCause,
    pub(super) record: FailureRecord,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureCause {
    /// A container ended with this code, which is not 0.
    Exit(i32),
    /// The kubelet restarted a container that ended badly.
    RestartedInPlace,
    /// The cluster took the pod away, or it failed without a container's word.
    Disrupted,
    /// The pod was deleted by somebody else.
    Lost,
}

/// What a failure means under a restart policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// The replica is restarted.
    Restart,
    /// The job fails.
    Final,
    /// The job fails, because the exit code says so.
    FinalByExitCode,
    /// The job fails, because a rule of its failure policy says so.
    FinalByRule,
}

impl Failure {
    /// A replica whose pod was there and is gone.
    pub(super) fn lost(replica: &Replica<'_>, pod: &str) -> Self {
        let record = FailureRecord {
            reason: "PodDeleted".to_owned(),
            message: format!("pod {pod} was deleted"),
            ..Self::record(replica, pod)
        };
        Self {
            cause: FailureCause::Lost,
            record,
        }
    }

    /// A pod in phase Failed.
    pub(super) fn of_pod(replica: &Replica<'_>, pod: &PodRecord, main: &str) -> Self {
        let ended = pod
            .containers
            .iter()
            .filter_map(|c| Some((c.name.as_str(), c.ended.as_ref()?)));
        let first = first_failed(ended, main);
        let mut record = Self::record(replica, &pod.name);
        if let Some((container, end)) = first {
            describe_end(&mut record, container, end);
        }
        if let Some(reason) = &pod.reason {
            record.reason.clone_from(reason);
        }
        if let Some(message) = &pod.message {
            record.message.clone_from(message);
        }
        if record.reason.is_empty() {
            record.reason = "PodFailed".to_owned();
        }
        let cause = match first {
            Some((_, end)) if !pod.disrupted => FailureCause::Exit(end.exit_code),
            _ => FailureCause::Disrupted,
        };
        Self { cause, record }
    }

    /// A pod in which the kubelet has restarted one of `containers` after a bad end, if there is one.
    /// A container that policy Always starts again after a good end is no failure.
    pub(super) fn of_restart<'p>(
        replica: &Replica<'_>,
        pod: &PodRecord,
        containers: impl Iterator<Item = &'p ContainerRecord> + Clone,
        main: &str,
    ) -> Option<Self> {
        let restarted = containers.filter(|c| c.restarts > 0);
        let unexplained = restarted.clone().find(|c| c.last.is_none());
        let ended = restarted.filter_map(|c| Some((c.name.as_str(), c.last.as_ref()?)));
        let mut record = Self::record(replica, &pod.name);
        match (first_failed(ended, main), unexplained) {
            (Some((container, end)), _) => describe_end(&mut record, container, end),
            (None, Some(container)) => {
                record.container = Some(container.name.clone());
                record.reason = "ContainerRestarted".to_owned();
            }
            (None, None) => return None,
        }
        Some(Self {
            cause: FailureCause::RestartedInPlace,
            record,
        })
    }

    /// What the failure means under the restart policy of its role.
    pub(super) fn consequence<J: TrainingJob>(&self, job: &J, role: &Role<'_>) -> Consequence {
        match (self.cause, &role.restart_policy) {
            // Nothing in the replica failed: somebody deleted its pod, or its kubelet restarted it.
            (FailureCause::Lost | FailureCause::RestartedInPlace, _) => Consequence::Restart,
            (_, RestartPolicy::Never | RestartPolicy::Other(_)) => Consequence::Final,
            (_, RestartPolicy::Always | RestartPolicy::OnFailure) => Consequence::Restart,
            (FailureCause::Exit(code), RestartPolicy::ExitCode)
                if !job.is_retryable(role, code, &self.record.reason) =>
            {
                Consequence::FinalByExitCode
            }
            (_, RestartPolicy::ExitCode) => Consequence::Restart,
        }
    }

    /// When it happened; unknown times come last.
    pub(super) fn time(&self) -> Timestamp {
        self.record.time.as_ref().map_or(Timestamp::MAX, |t| t.0)
    }

    fn record(replica: &Replica<'_>, pod: &str) -> FailureRecord {
        FailureRecord {
            role: Some(replica.role.name().to_owned()),
            index: i32::try_from(replica.index).ok(),
            pod: Some(pod.to_owned()),
            ..FailureRecord::default()
        }
    }
}

/// The container that ended badly first; of several at the same time, the framework's own.
fn first_failed<'a>(
    ended: impl Iterator<Item = (&'a str, &'a Termination)>,
    main: &str,
) -> Option<(&'a str, &'a Termination)> {
    ended
        .filter(|(_, end)| end.exit_code != 0)
        .min_by_key(|(name, end)| (end.finished_at.unwrap_or(Timestamp::MAX), *name != main))
}

fn describe_end(record: &mut FailureRecord, container: &str, end: &Termination) {
    record.container = Some(container.to_owned());
    record.exit_code = Some(end.exit_code);
    // A shell and the kubelet report a signal as 128 + its number; real-time signals end at 64.
    record.signal = end.signal.or((129..=192)
        .contains(&end.exit_code)
        .then_some(end.exit_code - 128));
    record.reason = end.reason.clone().unwrap_or_else(|| "Error".to_owned());
    record.message = end.message.clone().unwrap_or_default();
    record.time = end.finished_at.map(Time);
}
