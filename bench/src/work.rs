//! The works of the benchmark, and the contenders that do them.

use std::time::Duration;

use clap::ValueEnum;
use kube::api::ApiResource;
use kube::core::{DynamicObject, GroupVersionKind};
use serde_json::{Map, json};

/// A program that is measured.
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
    /// This program's `local cluster`.
    LocalCluster,
}

impl Contender {
    /// Returns the name in the results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::GoUnlimited => "go-unlimited",
            Self::Go => "go",
            Self::Floor => "floor",
            Self::LocalCluster => "local-cluster",
        }
    }

    /// Returns the beginning of its user agent, by which the audit log is filtered.
    pub(crate) fn agent(self) -> &'static str {
        match self {
            Self::Ours => "training-operator/",
            Self::GoUnlimited => "unlimited/",
            Self::Go => "training-operator.v1/",
            Self::Floor => "floor/",
            Self::LocalCluster => "",
        }
    }
}

/// The kind of the jobs. A job has workers, one replica that decides on its success, and perhaps others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// With a scheduler and a server.
    Mxnet,
    /// With a master.
    Pytorch,
    /// With a launcher.
    Mpi,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mxnet => "MXJob",
            Self::Pytorch => "PyTorchJob",
            Self::Mpi => "MPIJob",
        }
    }

    pub(crate) fn resource(self) -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk("kubeflow.org", "v1", self.name()))
    }

    pub(crate) fn container(self) -> &'static str {
        match self {
            Self::Mxnet => "mxnet",
            Self::Pytorch => "pytorch",
            Self::Mpi => "mpi",
        }
    }

    /// Returns the roles of one replica. The first one decides on the end of the job.
    fn others(self) -> &'static [&'static str] {
        match self {
            Self::Mxnet => &["Scheduler", "Server"],
            Self::Pytorch => &["Master"],
            Self::Mpi => &["Launcher"],
        }
    }

    /// Returns true if the end of this pod ends the job.
    pub(crate) fn is_decided_by(self, pod: &str) -> bool {
        pod.contains(&format!("-{}", self.others()[0].to_lowercase()))
    }
}

/// A number of equal jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jobs {
    pub(crate) kind: Kind,
    pub(crate) count: usize,
    pub(crate) workers: usize,
    /// The run time of the pods; without it they run until they are killed.
    pub(crate) train: Option<Duration>,
    /// Kill the first worker once, when all run.
    pub(crate) churn: bool,
    /// Use the layout Compact.
    pub(crate) compact: bool,
    /// Watch the output, with this limit of silence, on the node [`NODE`].
    pub(crate) stalled_after: Option<Duration>,
}

/// The node that serves the output of watched pods.
pub(crate) const NODE: &str = "answers-logs";

impl Jobs {
    pub(crate) fn new(count: usize, pods: usize, train: u64) -> Self {
        Self::of(Kind::Mxnet, count, pods, train)
    }

    pub(crate) fn of(kind: Kind, count: usize, pods: usize, train: u64) -> Self {
        Self {
            kind,
            count,
            workers: pods - kind.others().len(),
            train: Some(Duration::from_secs(train)),
            churn: false,
            compact: false,
            stalled_after: None,
        }
    }

    /// Returns the number of pods of one job.
    pub(crate) fn pods(&self) -> usize {
        self.workers + self.kind.others().len()
    }

    pub(crate) fn job(&self, name: &str) -> DynamicObject {
        let policy = if self.churn { "ExitCode" } else { "Never" };
        let role = |replicas: usize| {
            let containers = json!([{"name": self.kind.container(), "image": "example.com/i"}]);
            let mut pod = json!({ "containers": containers });
            if self.stalled_after.is_some() {
                pod["nodeName"] = json!(NODE);
            }
            json!({"replicas": replicas, "restartPolicy": policy, "template": {"spec": pod}})
        };
        let others = self.kind.others().iter();
        let mut roles: Map<_, _> = others.map(|name| ((*name).to_owned(), role(1))).collect();
        roles.insert("Worker".to_owned(), role(self.workers));
        let mut spec = json!({"runPolicy": {"cleanPodPolicy": "None"}});
        if let Some(limit) = self.stalled_after {
            spec["runPolicy"]["progress"] = json!({"stalledAfterSeconds": limit.as_secs()});
        }
        if self.compact {
            spec["runPolicy"]["layout"] = json!("Compact");
        }
        let field = match self.kind {
            Kind::Mxnet => {
                spec["jobMode"] = json!("MXTrain");
                "mxReplicaSpecs"
            }
            Kind::Pytorch => "pytorchReplicaSpecs",
            Kind::Mpi => "mpiReplicaSpecs",
        };
        spec[field] = roles.into();
        DynamicObject::new(name, &self.kind.resource()).data(json!({ "spec": spec }))
    }
}

/// The course of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Course {
    /// All jobs are created at once and run to their end.
    Burst,
    /// All jobs run when the operator is killed and started again.
    Restart,
    /// Pods that belong to no job are created and run. There are no jobs.
    Foreign(usize),
    /// All jobs have ended, and nothing changes for this time.
    Idle(Duration),
    /// A small job is created while the pods of a large one are being created.
    Beside,
    /// There are no jobs. The operator runs for one kind, and then for all.
    Kinds,
    /// The API server is away for this time while jobs are being created, in each of the ways of `Link::AWAY`.
    Away(Duration),
    /// All jobs are created at once, in a namespace with a quota for the pods of this many.
    Quota(usize),
    /// All jobs run and print for this time, and the operator reads their output. Other jobs come before and in between.
    Watched(Duration),
    /// All jobs are created at once, and their pods are processes of this machine.
    Processes,
}

/// One work: jobs, their course, and the contenders that do it.
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
        let kind = match jobs.kind {
            Kind::Mxnet => " job".to_owned(),
            kind => format!(" {}", kind.name()),
        };
        let count = if jobs.count == 1 {
            format!("1{kind}")
        } else {
            format!("{}{kind}s", jobs.count)
        };
        let train = jobs.train.unwrap_or_default().as_secs();
        let particular = match jobs {
            Jobs { churn: true, .. } => ", one worker of each killed once",
            Jobs { compact: true, .. } => ", layout Compact",
            _ => "",
        };
        Self {
            name: name.to_owned(),
            title: format!(
                "{count} of {} pods that train for {train} s{particular}",
                jobs.pods()
            ),
            course: Course::Burst,
            jobs,
            by: by.to_owned(),
            rounds,
        }
    }
}

/// Returns the works of `make bench`, or smaller ones if it must be quick.
pub(crate) fn all(quick: bool) -> Vec<Work> {
    use Contender::{Floor, Go, GoUnlimited, LocalCluster, Ours};
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
        // With `burst` and `many`, the points of the pictures in docs/maintainers/performance.md.
        Work::burst("burst-10", Jobs::new(10, 5, 1), two, rounds),
        Work::burst("burst-30", Jobs::new(30, 5, 1), two, rounds),
        Work::burst("burst-300", Jobs::new(300, 5, 1), two, rounds),
        Work::burst("long", Jobs::new(100, 5, 20), three, rounds),
        Work::burst("many", Jobs::new(1_000, 5, 1), three, rounds),
        Work::burst("large", Jobs::new(1, replicas, 1), three, rounds),
        // The Go operator has no such layout.
        Work::burst("compact", compact, &[Ours], rounds),
        Work::burst("pytorch", Jobs::of(Kind::Pytorch, size(1_000, 30), 3, 1), two, 1),
        Work::burst(
            "pytorch-large",
            Jobs::of(Kind::Pytorch, 1, size(1_001, 101), 1),
            two,
            1,
        ),
        Work::burst("mpi", Jobs::of(Kind::Mpi, size(200, 20), 3, 1), two, 1),
        Work::burst("mpi-large", Jobs::of(Kind::Mpi, 1, size(1_001, 101), 1), two, 1),
        Work::burst("churn", churn, if quick { two } else { three }, rounds),
        other(
            "restart",
            format!(
                "restart of the operator while {} jobs of 5 pods run",
                running.count
            ),
            Course::Restart,
            running,
            two,
        ),
        other(
            "foreign",
            format!("{foreign} pods that belong to no job"),
            Course::Foreign(foreign),
            Jobs::new(0, 5, 1),
            two,
        ),
        Work {
            // One round suffices: each takes minutes, and its figures hardly vary.
            rounds: 1,
            ..other(
                "idle",
                format!("{idle} s without changes, with {} finished jobs", ended.count),
                Course::Idle(Duration::from_secs(idle as u64)),
                ended,
                two,
            )
        },
        other(
            "beside",
            format!("1 job of 5 pods, created while one of {replicas} pods is being created"),
            Course::Beside,
            Jobs::new(1, replicas, 1),
            // The plain writer does one job after the other.
            two,
        ),
    ];
    all.push(other(
        "kinds",
        "no jobs: one kind, then all kinds".to_owned(),
        Course::Kinds,
        Jobs::new(0, 5, 1),
        &[Ours],
    ));
    let queued = Jobs::new(size(300, 50), 5, 1);
    all.push(Work {
        rounds: 1,
        ..other(
            "quota",
            format!(
                "{} jobs of 5 pods in a namespace with a quota of 50 pods",
                queued.count
            ),
            Course::Quota(10),
            queued,
            &[Ours],
        )
    });
    let busy = Jobs::new(size(500, 100), 2, 1);
    all.push(Work {
        // Its figures are counts and bounds.
        rounds: 1,
        ..other(
            "away",
            format!(
                "the API server is away for 40 s, while {} jobs of 2 pods are being created",
                busy.count
            ),
            Course::Away(Duration::from_secs(40)),
            busy,
            &[Ours],
        )
    });
    // A limit of 30 min is an interval of 3 min, so each job is read twice.
    let (limit, time) = (size(1_800, 150), size(360, 30));
    let watched = Jobs {
        train: None,
        stalled_after: Some(Duration::from_secs(limit as u64)),
        ..Jobs::new(size(1_000, 50), 3, 0)
    };
    all.push(Work {
        rounds: 1,
        ..other(
            "watched",
            format!(
                "{} jobs whose output is read, with a limit of {limit} s",
                watched.count
            ),
            Course::Watched(Duration::from_secs(time as u64)),
            watched,
            &[Ours],
        )
    });
    let processes = Jobs::of(Kind::Pytorch, size(300, 30), 5, 0);
    all.push(other(
        "processes",
        format!(
            "{} jobs of 5 pods, which are processes of this machine",
            processes.count
        ),
        Course::Processes,
        processes,
        &[Ours, LocalCluster],
    ));
    if quick {
        all.retain(|work| !["burst-10", "burst-30", "burst-300", "long", "many"].contains(&&*work.name));
    }
    all
}
