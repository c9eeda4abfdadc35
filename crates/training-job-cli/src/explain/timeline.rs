//! A job's timeline: the created objects, the condition of success, the consequences of incidents, and the objects that
//! remain.

use serde::{Serialize, Serializer};
use training_job::api::FailurePolicy;
use training_job::plan::ChildKind;
use training_job::{GangScheduler, Role};

use super::success::SuccessCondition;

/// The operator's actions during a job, as found by a dry run.
pub(crate) struct JobTimeline {
    /// The field that names a controller other than this operator, and that name.
    pub(super) other_manager: Option<(String, String)>,
    /// The compatibility mode as text, if the manifest selects it.
    pub(super) compatibility: Option<String>,
    /// The service of all pods, unless each pod has its own.
    pub(super) common_service: Option<String>,
    /// The minimum demand of the pod group, if there is a gang scheduler.
    pub(super) gang: Option<Gang>,
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
    /// The objects that remain when the job has ended.
    pub(super) end: FinalState,
}

/// The demand of a job's pods on their gang scheduler.
pub(super) struct Gang {
    pub(super) scheduler: GangScheduler,
    /// The minimum number of pods that must fit at once.
    pub(super) min_pods: u64,
    /// The requested resources, such as `3 cpu`.
    pub(super) resources: Vec<String>,
}

impl Gang {
    /// Describes the demand as text.
    pub(super) fn describe(&self) -> String {
        let name = self.scheduler.name();
        let requested = match &self.resources[..] {
            [] => String::new(),
            resources => format!(" ({})", resources.join(", ")),
        };
        let capacity = format!("capacity for {} pods at once{requested}", self.min_pods);
        match self.scheduler {
            GangScheduler::Volcano => format!(
                "no pod is created before {name} has {capacity}. A restart of the whole job waits for the same capacity."
            ),
            _ => format!("{name} assigns no pod to a node before it has {capacity}."),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incident {
    Exit(i32),
    Evicted,
    Deleted,
}

/// The consequence of an incident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    Fails,
    /// `scope` restarts. The job fails at the next such event after `times` restarts, or never if `times` is unset.
    Restarts {
        scope: &'static str,
        times: Option<i32>,
        /// If set, only restarts within this number of seconds count.
        within: Option<i32>,
    },
    /// The replica gets a new pod, which does not count as a restart.
    Replaced,
    RunsOn,
}

impl Incident {
    const ALL: [Self; 6] = [
        Self::Exit(1),
        Self::Exit(137),
        Self::Exit(139),
        Self::Exit(143),
        Self::Evicted,
        Self::Deleted,
    ];

    /// Returns the possible incidents of a role's replica: the common ones, and the exit codes that a failure policy
    /// names.
    pub(super) fn of(policy: &FailurePolicy, role: &Role<'_>) -> Vec<Self> {
        let rules = policy.rules.iter().filter(|rule| rule.applies_to(role.name()));
        let named = rules.filter_map(|rule| Some(&rule.on_exit_codes.as_ref()?.values));
        let mut codes: Vec<i32> = named.flatten().copied().collect();
        codes.sort_unstable();
        codes.dedup();
        let mut all: Vec<Self> = codes.into_iter().map(Self::Exit).collect();
        all.retain(|incident| !Self::ALL.contains(incident));
        all.splice(0..0, Self::ALL);
        all
    }

    /// Describes incidents of the same consequence as text. The exit codes are covered by one term if all exit codes
    /// whose consequences are known are among them.
    pub(super) fn describe_all(incidents: &[Self], is_any_code: bool) -> String {
        let codes: Vec<String> = incidents
            .iter()
            .filter_map(|incident| match incident {
                Self::Exit(code) => Some(code.to_string()),
                _ => None,
            })
            .collect();
        let codes = match &codes[..] {
            _ if is_any_code => Some("any exit code except 0".to_owned()),
            [] | [_] => None,
            [first @ .., last] => Some(format!("exit code {} or {last}", first.join(", "))),
        };
        let is_covered = |incident: &&Self| codes.is_some() && matches!(incident, Self::Exit(_));
        let others = incidents.iter().filter(|incident| !is_covered(incident));
        let all = codes
            .iter()
            .cloned()
            .chain(others.map(|incident| incident.describe()));
        all.collect::<Vec<_>>().join("; ")
    }

    /// Describes the incident as text.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Exit(code @ 137) => format!("exit code {code} (killed)"),
            Self::Exit(code @ 139) => format!("exit code {code} (segmentation fault)"),
            Self::Exit(code @ 143) => format!("exit code {code} (terminated)"),
            Self::Exit(code) => format!("exit code {code}"),
            Self::Evicted => "evicted, or node lost".to_owned(),
            Self::Deleted => "pod deleted by another client".to_owned(),
        }
    }
}

impl Serialize for Incident {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.describe())
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
            Self::Restarts {
                scope, times: None, ..
            } => format!("{scope} restarts without limit"),
            Self::Restarts {
                scope,
                times: Some(times),
                within,
            } => {
                let within = within.map(|seconds| format!(" within {seconds} s"));
                let within = within.unwrap_or_default();
                match times {
                    1 => format!("{scope} restarts once{within}; after that, the job fails"),
                    _ => format!("{scope} restarts up to {times} times{within}; after that, the job fails"),
                }
            }
        }
    }
}
