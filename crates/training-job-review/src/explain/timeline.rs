//! A job's timeline: the created objects, the condition of success, the consequences of incidents, and the objects that
//! remain.

use std::ops::RangeInclusive;

use training_job::GangScheduler;
use training_job::plan::ChildKind;
use training_job_program::listed;

use super::success::SuccessCondition;

/// The time in which uncounted restarts are limited.
pub(super) const SECONDS_IN_AN_HOUR: i32 = 3600;

/// The operator's actions during a job, as found by a dry run.
pub(crate) struct JobTimeline {
    /// The field that names a controller other than this operator, and that name.
    pub(super) other_manager: Option<(String, String)>,
    /// The compatibility mode as text, if the manifest selects it.
    pub(super) compatibility: Option<String>,
    /// The service of all pods, unless each pod has its own.
    pub(super) common_service: Option<String>,
    /// The minimum demand of the pod group at each start of roles of the gang. Empty without a gang scheduler.
    pub(super) gang: Vec<Gang>,
    /// The queue that admits the job.
    pub(super) queue: Option<String>,
    /// The rule of each role that waits for others, such as `worker starts when all pods of server run`.
    pub(super) start_order: Vec<String>,
    /// The objects, services and pods that are created at the start, in order.
    pub(super) created: Vec<(ChildKind, String)>,
    /// The success rule in the kind's own words, if it has some.
    pub(super) described_success: Option<String>,
    pub(super) success: SuccessCondition,
    /// The roles that have replicas. Empty if the job is suspended.
    pub(super) roles: Vec<RoleTimeline>,
    /// Seconds after which the job fails.
    pub(super) deadline: Option<i64>,
    /// When the job is stalled, and what happens then, if it has a limit.
    pub(super) stalls: Option<String>,
    /// The objects that remain when the job has ended.
    pub(super) end: FinalState,
}

/// The demand of a job's pods on their gang scheduler.
pub(super) struct Gang {
    pub(super) scheduler: GangScheduler,
    /// The minimum number of pods that must fit at once.
    pub(super) min_pods: usize,
    /// The requested resources, such as `3 cpu`.
    pub(super) resources: Vec<String>,
    /// True if the pods of these roles are the first ones of the job.
    pub(super) starts_the_job: bool,
    /// The roles that start, unless they are all roles of the job.
    pub(super) roles: Option<Vec<String>>,
}

impl Gang {
    /// Describes the demand as text.
    pub(super) fn describe(&self) -> String {
        let name = self.scheduler.name();
        let requested = match &self.resources[..] {
            [] => String::new(),
            resources => format!(" ({})", resources.join(", ")),
        };
        let capacity = format!("capacity for {} at once{requested}", count(self.min_pods, "pod"));
        let roles = self.roles.as_ref().map(|roles| format!(" of {}", listed(roles)));
        match self.scheduler {
            GangScheduler::Volcano if self.starts_the_job => format!(
                "no pod is created before {name} has {capacity}. A restart of the whole job waits for the same capacity."
            ),
            _ => {
                let roles = roles.unwrap_or_default();
                format!("{name} assigns no pod{roles} to a node before it has {capacity}.")
            }
        }
    }
}

/// The objects that remain when a job has ended.
pub(super) struct FinalState {
    /// The objects of a replica that still runs at that time.
    pub(super) running: Remaining,
    /// The objects of a replica that has ended.
    pub(super) finished: Remaining,
    /// True if the job has services.
    pub(super) has_services: bool,
    /// True if a deadline or a limit of restarts can fail the job.
    pub(super) has_limit: bool,
    /// True if a replica can reach the limit of restarts while its pod runs, because its kubelet restarts its container.
    pub(super) fails_while_running: bool,
    /// Seconds until the job itself is deleted.
    pub(super) time_to_live: Option<i64>,
}

/// The objects of a replica that remain.
pub(super) struct Remaining {
    pub(super) pod: bool,
    pub(super) service: bool,
}

pub(super) struct RoleTimeline {
    pub(super) name: String,
    pub(super) incidents: Vec<(Incident, Consequence)>,
}

/// An event that affects one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Incident {
    /// Its framework's container ended with this exit code.
    Exit(i32),
    /// Listed if its consequence is not that of the exit code 137.
    OutOfMemory,
    /// Its kubelet evicted the pod, which stays as failed.
    Evicted,
    /// Another client requested the deletion of the pod.
    Deleted,
}

/// The consequence of an incident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    Fails,
    /// `scope` restarts, up to the limit, if there is one.
    Restarts {
        scope: String,
        /// Seconds between the failure and the restart, if the kind declares a pause.
        pause: Option<i64>,
        limit: Option<Limit>,
    },
    /// The replica gets a new pod, which does not count as a restart.
    Replaced,
    RunsOn,
}

/// The end of repeated restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    /// The number of restarts, at least 1.
    pub(super) times: i32,
    /// If set, only restarts within this number of seconds count.
    pub(super) within: Option<i32>,
    /// The consequence of the next such event.
    pub(super) then: &'static str,
}

impl Incident {
    /// The exit codes of a container. A status has one byte for them.
    pub(super) const EXIT_CODES: RangeInclusive<i32> = 0..=255;

    /// Describes incidents of the same consequence as text.
    pub(super) fn describe_all(incidents: &[Self]) -> String {
        let codes = incidents.iter().filter_map(|incident| match incident {
            Self::Exit(code) => Some(*code),
            _ => None,
        });
        let codes: Vec<i32> = codes.collect();
        let others = incidents.iter().filter_map(|incident| match incident {
            Self::Exit(_) => None,
            Self::OutOfMemory => Some("out of memory (OOMKilled)"),
            Self::Evicted => Some("evicted by the kubelet"),
            Self::Deleted => Some("pod deleted, drained or preempted, or its node lost"),
        });
        let codes = (!codes.is_empty()).then(|| describe_codes(&codes));
        let all = codes.into_iter().chain(others.map(str::to_owned));
        all.collect::<Vec<_>>().join("; ")
    }
}

/// Describes exit codes in ascending order as text: `exit codes 1–127`.
fn describe_codes(codes: &[i32]) -> String {
    let run = |run: &[i32]| match run {
        [first, .., last] if last == Incident::EXIT_CODES.end() => format!("{first} and above"),
        [first, last] => format!("{first}, {last}"),
        [first, .., last] => format!("{first}–{last}"),
        _ => run.iter().map(i32::to_string).collect(),
    };
    let runs = codes.chunk_by(|a, b| a + 1 == *b).map(run);
    match codes {
        [only] => format!("exit code {only}"),
        [0, ..] if codes.len() == Incident::EXIT_CODES.count() => "any exit code".to_owned(),
        [1, ..] if codes.len() == Incident::EXIT_CODES.count() - 1 => "any exit code except 0".to_owned(),
        _ => format!("exit codes {}", runs.collect::<Vec<_>>().join(", ")),
    }
}

impl FinalState {
    /// Describes the remaining objects as text.
    pub(super) fn describe(&self) -> String {
        let service = |left: &Remaining| match (left.pod, left.service) {
            _ if !self.has_services => "",
            (false, false) => " with their services",
            (true, false) => ", without their services",
            _ => "",
        };
        let running = match self.running.pod {
            true => "keep running",
            false => "are deleted",
        };
        let finished = match self.finished.pod {
            true => "are kept, with their logs",
            false => "are deleted",
        };
        let mut text = format!(
            "running pods {running}{}; finished pods {finished}{}.",
            service(&self.running),
            service(&self.finished)
        );
        if self.has_limit && self.running.pod {
            text += " At a deadline or a limit of restarts, running pods are deleted.";
        }
        if self.fails_while_running {
            text += " A pod whose container its kubelet restarts still runs at the limit of restarts: it is deleted with its \
                     log, whose end is in status.failure.";
        }
        if let Some(seconds) = self.time_to_live {
            text += &format!(" {seconds} s later, the job is deleted with all its objects.");
        }
        text
    }
}

impl Consequence {
    /// Describes the consequence as text.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Fails => "the job fails".to_owned(),
            Self::Replaced => "the replica gets a new pod, without limit".to_owned(),
            Self::RunsOn => "none: the job keeps running".to_owned(),
            Self::Restarts { scope, pause, limit } => {
                let pause = pause.map(|seconds| format!(" {seconds} s after the failure,"));
                let pause = pause.unwrap_or_default();
                let limit = limit.as_ref().map(Limit::describe);
                let limit = limit.unwrap_or_else(|| "without limit".to_owned());
                format!("{scope} restarts{pause} {limit}")
            }
        }
    }
}

impl Limit {
    fn describe(&self) -> String {
        let within = match self.within {
            None => String::new(),
            Some(SECONDS_IN_AN_HOUR) => " within an hour".to_owned(),
            Some(seconds) => format!(" within {seconds} s"),
        };
        let times = match self.times {
            1 => "once".to_owned(),
            times => format!("up to {times} times"),
        };
        format!("{times}{within}; after that, {}", self.then)
    }
}

/// Returns a number with its noun: `1 pod`, `2 pods`.
pub(super) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}
