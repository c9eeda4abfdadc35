//! Failures of replicas: the cause of each, and its consequence.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::{ContainerRecord, MAX_MESSAGE, PodRecord, Termination, last_words};
use super::{reasons, start_failure};
use crate::api::{FailureRecord, RestartPolicy, is_writable};
use crate::job::{AnyJob, Cause, Replica, ReplicaFailure, Role};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) cause: FailureCause,
    pub(super) record: FailureRecord,
    /// Run time of the attempt. None if no process failed, and none was refused by a kubelet.
    pub(super) run_time: Option<RunTime>,
}

/// Run time of an attempt that failed, which decides on the pause before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunTime {
    /// The kubelet rejected the pod, so no container ran. The scheduler may choose the same node again until it knows
    /// of the node's condition, some seconds later.
    Zero,
    /// A process failed soon after its start, or after an unknown time.
    Short,
    Long,
}

/// The beginning of the message of a pod that a kubelet did not start, in the words of `rejectPod` in the kubelet 1.35. The
/// reason does not distinguish it from a pod that was evicted while it ran.
const REJECTED: &str = "Pod was rejected: ";

impl RunTime {
    fn of(end: Option<&Termination>) -> Self {
        let ran_for = |end: &Termination| Some(end.finished_at?.duration_since(end.started_at?));
        match end.and_then(ran_for) {
            Some(time) if time >= SOON_AFTER_START => Self::Long,
            _ => Self::Short,
        }
    }
}

/// Run time below which an attempt counts as failed soon after its start. A longer attempt had begun its work, so the next
/// one probably will, too. Kubelets reset the backoff of a container after the same time.
const SOON_AFTER_START: SignedDuration = SignedDuration::from_mins(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureCause {
    /// A container ended with this exit code, which is not 0 unless its role is always replaced.
    Exit(i32),
    /// The kubelet restarted a container that had failed.
    RestartedInPlace,
    /// The cluster disrupted the pod, or the pod failed without a failed container.
    Disrupted,
    /// The pod is gone, or its deletion or disruption began before its container ended.
    Lost,
    /// The pod runs, and the job makes no progress.
    Stalled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    Restart,
    Final,
    /// The job fails because the exit code is not retryable.
    FinalByExitCode,
    /// The job fails because of a rule in its failure policy.
    FinalByRule,
}

impl Failure {
    /// Returns the failure of a replica whose pod has disappeared.
    pub(super) fn lost(replica: &Replica<'_>, pod: &str) -> Self {
        let record = FailureRecord {
            reason: reasons::POD_DELETED.to_owned(),
            message: format!("pod {pod} was deleted"),
            ..Self::record(replica, pod)
        };
        Self {
            cause: FailureCause::Lost,
            record,
            run_time: None,
        }
    }

    /// Returns the failure of a replica whose pod is being deleted or disrupted, with the cause, node and time from the pod.
    pub(super) fn taken_away(replica: &Replica<'_>, pod: &PodRecord) -> Self {
        let mut failure = Self::lost(replica, &pod.name);
        let record = &mut failure.record;
        record.node.clone_from(&pod.node);
        let deletion = pod.deletion.map(|deletion| deletion.requested);
        record.time = deletion.filter(|time| is_writable(*time)).map(Time);
        if let Some(disruption) = &pod.disruption {
            if !disruption.reason.is_empty() {
                record.reason.clone_from(&disruption.reason);
            }
            if !disruption.message.is_empty() {
                record.message = format!("pod {} was disrupted: {}", pod.name, disruption.message);
            }
            let disrupted = disruption.time.map(Time);
            record.time = [record.time.take(), disrupted].into_iter().flatten().min();
        }
        failure
    }

    /// Returns the failure of a replica in a job that makes no progress, which has run for at least `time`. `tails` are the last
    /// lines of all watched replicas.
    pub(super) fn stalled(
        replica: &Replica<'_>,
        pod: &PodRecord,
        why: &str,
        tails: &str,
        time: Duration,
        now: Timestamp,
    ) -> Self {
        let tails = last_words(tails.to_owned(), MAX_MESSAGE.saturating_sub(why.len()));
        let record = FailureRecord {
            reason: reasons::STALLED.to_owned(),
            message: format!("{why}{tails}"),
            time: Some(Time(now)),
            ..Self::record(replica, &pod.name)
        };
        let is_long = time >= SOON_AFTER_START.unsigned_abs();
        Self {
            cause: FailureCause::Stalled,
            record,
            run_time: Some(if is_long { RunTime::Long } else { RunTime::Short }),
        }
    }

    /// Returns the failure of a pod whose container `main` failed, or that failed as a whole.
    pub(super) fn of_pod(replica: &Replica<'_>, pod: &PodRecord, main: Option<&str>) -> Self {
        let ended = |c: &ContainerRecord| Some((c.name.clone(), c.ended.clone()?));
        let main = main.and_then(|name| pod.container(name)).and_then(ended);
        let others = pod.containers.iter().filter_map(ended);
        let always_replaced = replica.role.definition.always_replaced;
        let first = match main {
            Some(main) => Some(main).filter(|(_, end)| always_replaced || end.exit_code != 0),
            None => first_failed(others),
        };
        let mut record = Self::record(replica, &pod.name);
        if let Some((container, end)) = &first {
            describe_end(&mut record, container, end);
        }
        if let Some(reason) = &pod.reason {
            record.reason.clone_from(reason);
        }
        if let Some(message) = &pod.message {
            record.message.clone_from(message);
        }
        if record.reason.is_empty() {
            record.reason = reasons::POD_FAILED.to_owned();
        }
        if pod.disrupted {
            record.node.clone_from(&pod.node);
        }
        let cause = match &first {
            Some((_, end)) if !pod.disrupted => FailureCause::Exit(end.exit_code),
            _ => FailureCause::Disrupted,
        };
        let rejected = pod
            .message
            .as_deref()
            .is_some_and(|text| text.starts_with(REJECTED));
        let run_time = match cause {
            FailureCause::Exit(_) => Some(RunTime::of(first.as_ref().map(|(_, end)| end))),
            _ => rejected.then_some(RunTime::Zero),
        };
        Self {
            cause,
            record,
            run_time,
        }
    }

    /// Returns the failure of a pod in which the kubelet has restarted one of `containers` after it failed, if any. A restart
    /// after exit code 0 under the policy Always is not a failure.
    pub(super) fn of_restart<'p>(
        replica: &Replica<'_>,
        pod: &PodRecord,
        containers: impl Iterator<Item = &'p ContainerRecord> + Clone,
    ) -> Option<Self> {
        let restarted = containers.filter(|c| c.restarts > 0);
        let unexplained = restarted.clone().find(|c| c.last.is_none());
        let ended = restarted.filter_map(|c| Some((c.name.clone(), c.last.clone()?)));
        let mut record = Self::record(replica, &pod.name);
        let first = first_failed(ended);
        match (&first, unexplained) {
            (Some((container, end)), _) => describe_end(&mut record, container, end),
            (None, Some(container)) => {
                record.container = Some(container.name.clone());
                record.reason = reasons::CONTAINER_RESTARTED.to_owned();
            }
            (None, None) => return None,
        }
        Some(Self {
            cause: FailureCause::RestartedInPlace,
            record,
            run_time: Some(RunTime::of(first.as_ref().map(|(_, end)| end))),
        })
    }

    /// Returns the consequence of the failure under the restart policy of its role.
    pub(super) fn consequence(&self, job: &dyn AnyJob, role: &Role<'_>) -> Consequence {
        match (self.cause, &role.restart_policy) {
            // No process is to blame for a lost pod, and the kubelet has already decided on a restart in place.
            (FailureCause::Lost | FailureCause::RestartedInPlace | FailureCause::Stalled, _) => {
                Consequence::Restart
            }
            _ if role.definition.always_replaced => Consequence::Restart,
            (_, RestartPolicy::Never | RestartPolicy::Other(_)) => Consequence::Final,
            (_, RestartPolicy::Always | RestartPolicy::OnFailure) => Consequence::Restart,
            (FailureCause::Exit(code), RestartPolicy::ExitCode) if !self.is_retryable(job, role, code) => {
                Consequence::FinalByExitCode
            }
            (_, RestartPolicy::ExitCode) => Consequence::Restart,
        }
    }

    /// Returns the failure as hooks see it.
    pub(super) fn for_hook<'f>(&'f self, role: &'f Role<'f>, index: u32) -> ReplicaFailure<'f> {
        let cause = match self.cause {
            FailureCause::Exit(_) if start_failure::never_ran(&self.record.reason) => Cause::NotStarted,
            FailureCause::Exit(code) => Cause::Exited(code),
            FailureCause::RestartedInPlace => Cause::RestartedByKubelet,
            FailureCause::Disrupted => Cause::Disrupted,
            FailureCause::Lost | FailureCause::Stalled => Cause::Deleted,
        };
        ReplicaFailure::new(role, index, cause, &self.record.reason)
    }

    /// Returns true if a retry may succeed after this exit code. The code of a container that never ran is the runtime's.
    fn is_retryable(&self, job: &dyn AnyJob, role: &Role<'_>, code: i32) -> bool {
        let record = &self.record;
        match start_failure::never_ran(&record.reason) {
            true => !start_failure::is_of_command(&record.message),
            false => job.is_retryable(role, code, &record.reason),
        }
    }

    /// Returns the time of the failure. An unknown time is later than any other.
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

/// Returns the container that failed first.
fn first_failed(ended: impl Iterator<Item = (String, Termination)>) -> Option<(String, Termination)> {
    ended
        .filter(|(_, end)| end.exit_code != 0 || end.is_for_restart())
        .min_by_key(|(_, end)| end.finished_at.unwrap_or(Timestamp::MAX))
}

fn describe_end(record: &mut FailureRecord, container: &str, end: &Termination) {
    record.container = Some(container.to_owned());
    record.exit_code = Some(end.exit_code);
    // A shell and the kubelet report a signal as 128 + its number; real-time signals end at 64.
    record.signal = end.signal.or((129..=192)
        .contains(&end.exit_code)
        .then_some(end.exit_code - 128));
    record.reason = end.reason.clone().unwrap_or_else(|| reasons::ERROR.to_owned());
    record.message = end.message.clone().unwrap_or_default();
    record.time = end.finished_at.map(Time);
}

/// Returns the pod and the cause of a failure in short, for an event: `job-worker-1: exit code 3`.
pub(super) fn describe(record: &FailureRecord) -> String {
    let reason = Some(record.reason.as_str());
    let reason = reason.filter(|reason| ![reasons::ERROR, reasons::BACKOFF_LIMIT_EXCEEDED].contains(reason));
    let cause = match (record.exit_code, reason) {
        (Some(code), None) => format!("exit code {code}"),
        (Some(code), Some(reason)) => format!("{reason}, exit code {code}"),
        (None, Some(reason)) if record.pod.is_some() => reason.to_owned(),
        // The record of a limit or deadline without an exit code names the cause in its message.
        (None, _) => record.message.clone(),
    };
    match &record.pod {
        Some(pod) => format!("{pod}: {cause}"),
        None => cause,
    }
}

/// Returns the failure record of a job that may not restart again. `limit` describes the exceeded limit, and `last` is the
/// failure that exceeded it.
pub(super) fn out_of_restarts(limit: &str, last: FailureRecord) -> FailureRecord {
    let summary = last.summary_with(Some(reasons::BACKOFF_LIMIT_EXCEEDED));
    let because = match last.message.is_empty() {
        true => last.reason,
        false => last.message,
    };
    let limit = format!("{limit}; the last failure: ");
    FailureRecord {
        message: format!("{limit}{}", last_words(because, MAX_MESSAGE - limit.len())),
        reason: reasons::BACKOFF_LIMIT_EXCEEDED.to_owned(),
        summary,
        ..last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_the_reason_only_if_it_adds_to_the_exit_code() {
        let cause = |reason: &str, exit_code| {
            describe(&FailureRecord {
                reason: reason.to_owned(),
                pod: Some("job-worker-1".to_owned()),
                exit_code,
                ..FailureRecord::default()
            })
        };
        assert_eq!(cause("Error", Some(3)), "job-worker-1: exit code 3");
        assert_eq!(
            cause("OOMKilled", Some(137)),
            "job-worker-1: OOMKilled, exit code 137"
        );
        assert_eq!(
            cause("BackoffLimitExceeded", Some(1)),
            "job-worker-1: exit code 1"
        );
        assert_eq!(cause("Evicted", None), "job-worker-1: Evicted");
    }
}
