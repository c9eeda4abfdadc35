//! A job's life: what is created, when it succeeds, what follows from each incident, what is left at the end.

use training_job::api::FailurePolicy;
use training_job::plan::ChildKind;
use training_job::{GangScheduler, Role};

/// What the operator does in a job's life, found by a dry run.
pub(super) struct Life {
    /// How the job is read, where that follows from how it is written.
    pub(super) reading: Option<String>,
    /// The service of all pods, if not each has its own.
    pub(super) common_service: Option<String>,
    /// What the group of its pods asks for at once, if there is a gang scheduler.
    pub(super) gang: Option<Gang>,
    /// The queue that admits it.
    pub(super) queue: Option<String>,
    /// Roles that start when all pods of others run: which, and the others.
    pub(super) later: Vec<(String, String)>,
    /// The objects, services and pods that are created at the start, in order.
    pub(super) created: Vec<(ChildKind, String)>,
    /// Its roles that have replicas; none if it is suspended.
    pub(super) roles: Vec<RoleLife>,
    /// Seconds after which it fails.
    pub(super) deadline: Option<i64>,
    /// What is left of it.
    pub(super) end: End,
}

/// What the pods of a job ask their gang scheduler for.
pub(super) struct Gang {
    /// The scheduler.
    pub(super) scheduler: GangScheduler,
    /// How many pods must fit at once.
    pub(super) fewest: u64,
    /// What they ask for, such as `3 cpu`.
    pub(super) resources: Vec<String>,
}

impl Gang {
    /// What is said of it.
    pub(super) fn words(&self) -> String {
        let name = self.scheduler.name();
        let asked = match &self.resources[..] {
            [] => String::new(),
            resources => format!(" ({})", resources.join(", ")),
        };
        let room = format!("{} pods at once{asked}", self.fewest);
        match self.scheduler {
            GangScheduler::Volcano => format!(
                "Gang: no pod is made before {name} has room for {room}; a restart of the whole job waits for that again.\n"
            ),
            _ => format!("Gang: {name} gives no pod a node before it has room for {room}.\n"),
        }
    }
}

/// What is left of a job once it has ended.
pub(super) struct End {
    /// Of a replica that runs then: its pod, its service.
    pub(super) running: Left,
    /// Of one that has ended.
    pub(super) finished: Left,
    /// Seconds until the job itself is deleted.
    pub(super) time_to_live: Option<i64>,
}

/// Which of a replica's objects are left.
pub(super) struct Left {
    pub(super) pod: bool,
    pub(super) service: bool,
}

pub(super) struct RoleLife {
    pub(super) name: String,
    pub(super) replicas: u32,
    /// Whether the job has succeeded once all of this role have, whatever the others do.
    pub(super) decides: bool,
    pub(super) incidents: Vec<(Incident, Consequence)>,
}

/// Something that happens to one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incident {
    Exit(i32),
    Evicted,
    Deleted,
    /// The job has been active for so many seconds.
    Deadline(i64),
}

/// What follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    Fails,
    /// `scope` restarts, and the job fails at the next such event after this many; never if unset.
    Restarts {
        scope: &'static str,
        times: Option<i32>,
        /// Those of so many seconds, if not all count.
        within: Option<i32>,
    },
    /// It gets a new pod, which counts as no restart.
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

    /// What may happen to a replica of a role: what happens to all, and the exit codes that a failure policy names.
    pub(super) fn of(policy: &FailurePolicy, role: &Role<'_>) -> Vec<Self> {
        let rules = policy.rules.iter().filter(|rule| rule.concerns(role.name()));
        let named = rules.filter_map(|rule| Some(&rule.on_exit_codes.as_ref()?.values));
        let mut codes: Vec<i32> = named.flatten().copied().collect();
        codes.sort_unstable();
        codes.dedup();
        let mut all: Vec<Self> = codes.into_iter().map(Self::Exit).collect();
        all.retain(|incident| !Self::ALL.contains(incident));
        all.splice(0..0, Self::ALL);
        all
    }

    /// For people to read.
    pub(super) fn words(self) -> String {
        match self {
            Self::Exit(code @ 137) => format!("exit code {code} (killed)"),
            Self::Exit(code @ 139) => format!("exit code {code} (segmentation fault)"),
            Self::Exit(code @ 143) => format!("exit code {code} (terminated)"),
            Self::Exit(code) => format!("exit code {code}"),
            Self::Evicted => "evicted, or its node lost".to_owned(),
            Self::Deleted => "its pod deleted by somebody".to_owned(),
            Self::Deadline(seconds) => format!("still running after {seconds} s (the deadline)"),
        }
    }
}

impl End {
    /// For people to read.
    pub(super) fn words(&self) -> String {
        let service = |left: &Left| match (left.pod, left.service) {
            (false, false) => " with their services",
            (true, false) => ", without their services",
            _ => "",
        };
        let running = match self.running.pod {
            true => "go on",
            false => "are deleted",
        };
        let finished = match self.finished.pod {
            true => "stay, with their logs",
            false => "are deleted",
        };
        let mut text = format!(
            "End: pods that still run {running}{}; those that have ended {finished}{}.",
            service(&self.running),
            service(&self.finished)
        );
        if let Some(seconds) = self.time_to_live {
            text += &format!(" {seconds} s later the job is deleted with all it has.");
        }
        text + "\n"
    }
}

impl Consequence {
    /// For people to read.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Fails => "the job fails".to_owned(),
            Self::Replaced => "it gets a new pod, without limit".to_owned(),
            Self::RunsOn => "nothing: the job runs on".to_owned(),
            Self::Restarts {
                scope, times: None, ..
            } => format!("{scope} restarts, without limit"),
            Self::Restarts {
                scope,
                times: Some(times),
                within,
            } => {
                let within = within.map(|seconds| format!(" within {seconds} s"));
                let within = within.unwrap_or_default();
                match times {
                    1 => format!("{scope} restarts once{within}; the next time the job fails"),
                    _ => format!("{scope} restarts, {times} times{within}; the next time the job fails"),
                }
            }
        }
    }
}
