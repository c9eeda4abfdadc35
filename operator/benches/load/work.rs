//! What is to be done, and by whom.

use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;
use training_job_mxnet::MXJob;

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contender {
    /// This operator.
    Ours,
    /// The Go operator without its client's limits.
    GoUnlimited,
    /// The Go operator as released.
    Go,
    /// The plain writer.
    Floor,
}

impl Contender {
    /// Its name in the results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::GoUnlimited => "go-unlimited",
            Self::Go => "go",
            Self::Floor => "floor",
        }
    }

    /// How what it calls itself before the API server begins.
    pub(crate) fn agent(self) -> &'static str {
        match self {
            Self::Ours => "training-operator/",
            Self::GoUnlimited => "unlimited/",
            Self::Go => "training-operator.v1/",
            Self::Floor => "floor/",
        }
    }
}

/// Jobs that are alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jobs {
    pub(crate) count: usize,
    pub(crate) workers: usize,
    /// How long the pods of a job run; for ever, if none.
    pub(crate) train: Option<Duration>,
    /// Whether the first worker is killed once, when all run.
    pub(crate) churn: bool,
    /// Whether they have the layout Compact.
    pub(crate) compact: bool,
}

impl Jobs {
    pub(crate) fn new(count: usize, pods: usize, train: u64) -> Self {
        Self {
            count,
            workers: pods - 2,
            train: Some(Duration::from_secs(train)),
            churn: false,
            compact: false,
        }
    }

    /// The pods of one job.
    pub(crate) fn pods(&self) -> usize {
        self.workers + 2
    }

    pub(crate) fn job(&self, name: &str) -> MXJob {
        let policy = if self.churn { "ExitCode" } else { "Never" };
        let layout = self.compact.then_some("Compact");
        let role = |replicas: usize| {
            json!({"replicas": replicas, "restartPolicy": policy,
                   "template": {"spec": {"containers": [{"name": "mxnet", "image": "example.com/i"}]}}})
        };
        let job = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name},
            "spec": {"jobMode": "MXTrain", "runPolicy": {"cleanPodPolicy": "None", "layout": layout},
                     "mxReplicaSpecs": {"Scheduler": role(1), "Server": role(1), "Worker": role(self.workers)}},
        });
        serde_json::from_value(job).unwrap()
    }
}

/// The course of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Course {
    /// All jobs are created at once and run to their end.
    Burst,
    /// All jobs run when the operator is killed and started again.
    Restart,
    /// So many pods of nobody's come and run, where no job is.
    Foreign(usize),
    /// All jobs have ended, and nothing happens for so long.
    Idle(Duration),
    /// A small job is created while the pods of a large one are being made.
    Beside,
}

/// One line of work.
pub(crate) struct Work {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) course: Course,
    pub(crate) jobs: Jobs,
    pub(crate) by: Vec<Contender>,
    pub(crate) rounds: usize,
}

impl Work {
    pub(crate) fn burst(name: &str, jobs: Jobs, by: &[Contender], rounds: usize) -> Self {
        let count = if jobs.count == 1 {
            "1 job".to_owned()
        } else {
            format!("{} jobs", jobs.count)
        };
        let train = jobs.train.unwrap_or_default().as_secs();
        let particular = match jobs {
            Jobs { churn: true, .. } => "; a worker of each is killed once",
            Jobs { compact: true, .. } => "; its layout is Compact",
            _ => "",
        };
        Self {
            name: name.to_owned(),
            title: format!(
                "{count} of {} pods, which train for {train} s{particular}",
                jobs.pods()
            ),
            course: Course::Burst,
            jobs,
            by: by.to_owned(),
            rounds,
        }
    }
}

/// All that `make bench` does; of each kind less if it is to be quick.
pub(crate) fn all(quick: bool) -> Vec<Work> {
    use Contender::{Floor, Go, GoUnlimited, Ours};
    let size = |full: usize, small: usize| if quick { small } else { full };
    let rounds = size(2, 1);
    let three = &[Ours, GoUnlimited, Floor][..];
    let two = &[Ours, GoUnlimited][..];
    let other = |name: &str, title: String, course, jobs, by: &[Contender]| Work {
        name: name.to_owned(),
        title,
        course,
        jobs,
        by: by.to_owned(),
        rounds,
    };
    let churn = Jobs {
        churn: true,
        ..Jobs::new(size(100, 20), 5, 1)
    };
    let compact = Jobs {
        compact: true,
        ..Jobs::new(1, size(1_002, 102), 1)
    };
    let running = Jobs {
        train: None,
        ..Jobs::new(size(1_000, 50), 5, 0)
    };
    let ended = Jobs::new(size(1_000, 20), 5, 1);
    let replicas = size(1_002, 102);
    let (foreign, idle) = (size(5_000, 300), size(600, 10));
    let mut all = vec![
        Work::burst(
            "burst",
            Jobs::new(size(100, 30), 5, 1),
            &[Ours, GoUnlimited, Go, Floor],
            size(3, 1),
        ),
        Work::burst("long", Jobs::new(100, 5, 20), three, rounds),
        Work::burst("many", Jobs::new(1_000, 5, 1), three, rounds),
        Work::burst("large", Jobs::new(1, replicas, 1), three, rounds),
        // The Go operator has no such layout.
        Work::burst("compact", compact, &[Ours], rounds),
        Work::burst("churn", churn, if quick { two } else { three }, rounds),
        other(
            "restart",
            format!("A restart while {} jobs of 5 pods run", running.count),
            Course::Restart,
            running,
            two,
        ),
        other(
            "foreign",
            format!("{foreign} pods of nobody's come and run"),
            Course::Foreign(foreign),
            Jobs::new(0, 5, 1),
            two,
        ),
        Work {
            // Minutes each, and little that changes.
            rounds: 1,
            ..other(
                "idle",
                format!(
                    "{idle} s in which nothing happens, with {} jobs that have ended",
                    ended.count
                ),
                Course::Idle(Duration::from_secs(idle as u64)),
                ended,
                two,
            )
        },
        other(
            "beside",
            format!("A job of 5 pods while one of {replicas} is being made"),
            Course::Beside,
            Jobs::new(1, replicas, 1),
            // The plain writer takes jobs one after another.
            two,
        ),
    ];
    if quick {
        all.retain(|work| !["long", "many"].contains(&&*work.name));
    }
    all
}
