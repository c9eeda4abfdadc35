//! Workloads: small scenarios with one feature each. The exhaustive mode tries every fault at every call of them.
//!
//! To add one, add it to [`all`].

use serde_json::{Value, json};
use training_job::GangScheduler;
use training_job::api::labels;
use training_job_testbed::{RETRIES, STEPS};

use crate::faults::ClusterFault;
use crate::faults::PodFate::{self, Fails, Runs, Succeeds};
use crate::scenario::Scenario;
use crate::scenario::config::RunConfig;
use crate::scenario::interventions::ScheduledIntervention;
use crate::scenario::planned_job::PlannedJob;
use crate::scenario::users::UserAction;
use crate::world::job::{self, JobType};

/// The seconds between the actions of users, long enough for delays by faults.
const SECONDS_BETWEEN_ACTIONS: u64 = 400;

/// A small scenario with one feature.
pub struct Workload {
    /// The name of the feature.
    pub name: String,
    /// The scenario, without faults.
    pub scenario: Scenario,
}

const TRAIN: [(&str, i32); 3] = [("Scheduler", 1), ("Server", 1), ("Worker", 2)];

/// All pods succeed. The scheduler ends last as in a real training, even if a fault delays another pod.
fn succeeds(name: &str, _: u32) -> PodFate {
    Succeeds(if name.contains("scheduler") { 1_200 } else { 1_000 })
}

/// Worker 0 succeeds, and the other pods keep running.
fn worker_0_succeeds(name: &str, _: u32) -> PodFate {
    if name.ends_with("worker-0") {
        Succeeds(1_000)
    } else {
        Runs
    }
}

/// The scheduler succeeds, and the other pods keep running.
fn scheduler_succeeds(name: &str, _: u32) -> PodFate {
    match name.contains("scheduler") {
        true => Succeeds(100),
        false => Runs,
    }
}

/// The scheduler succeeds soon, and one worker of the next step is killed once.
fn next_step_is_killed_once(name: &str, attempt: u32) -> PodFate {
    match attempt {
        0 if name.ends_with("worker-1") => Fails(137, 100),
        _ => Succeeds(100),
    }
}

/// One worker is killed once.
fn is_killed_once(name: &str, attempt: u32) -> PodFate {
    match attempt {
        0 if name.ends_with("worker-1") || name.ends_with("tuner-0") => Fails(137, 500),
        _ => succeeds(name, attempt),
    }
}

fn fails(name: &str, _: u32) -> PodFate {
    if name.ends_with("worker-1") {
        Fails(1, 500)
    } else {
        Runs
    }
}

fn is_killed_always(name: &str, _: u32) -> PodFate {
    if name.ends_with("worker-1") {
        Fails(137, 500)
    } else {
        Runs
    }
}

fn hangs(_: &str, _: u32) -> PodFate {
    Runs
}

fn planned(job_type: JobType, name: &str, roles: &[(&str, i32)], policy: Value) -> PlannedJob {
    let mut object = job::new(job_type, name, roles, "ExitCode");
    object["spec"]["runPolicy"] = policy;
    PlannedJob {
        job_type,
        name: name.to_owned(),
        object,
    }
}

fn workload(
    name: &str,
    pod_fates: fn(&str, u32) -> PodFate,
    jobs: Vec<PlannedJob>,
    actions: Vec<UserAction>,
) -> Workload {
    let mut config = RunConfig::without_faults();
    if jobs.iter().any(|job| job.job_type.kind() != "MXJob") {
        config.job_types = JobType::ALL_KINDS;
    }
    config.seconds = (actions.len() as u64) * SECONDS_BETWEEN_ACTIONS;
    let scheduled = |(n, action)| ScheduledIntervention::user(n * SECONDS_BETWEEN_ACTIONS * 1_000, action);
    Workload {
        name: name.to_owned(),
        scenario: Scenario {
            config,
            jobs,
            interventions: (0..).zip(actions).map(scheduled).collect(),
            call_faults: Some(Default::default()),
            pod_fates: Some(pod_fates),
        },
    }
}

/// Returns workloads of a job in a queue. The job is created suspended, as the queue's webhook leaves it. Each action
/// of the queue is one patch.
fn queued() -> Vec<Workload> {
    let mut job = planned(
        JobType::Train,
        "job",
        &TRAIN,
        json!({"suspend": true, "backoffLimit": 1}),
    );
    job.object["metadata"]["labels"] = json!({labels::QUEUE_NAME: "queue"});
    let admit = |zone: &str| UserAction::queue(0, &job, Some(zone));
    let evict = || UserAction::queue(0, &job, None);
    let create = || UserAction::Create(0);
    let of = |name: &str, fates, actions| workload(name, fates, vec![job.clone()], actions);
    vec![
        of("queue-never-fits", succeeds, vec![create()]),
        of("queue-admit", is_killed_once, vec![create(), admit("a")]),
        of("queue-evict", hangs, vec![create(), admit("a"), evict()]),
        of(
            "queue-admit-again",
            succeeds,
            vec![create(), admit("a"), evict(), admit("b")],
        ),
    ]
}

/// Returns workloads of jobs whose pods are bound together, for each scheduler.
fn gangs() -> Vec<Workload> {
    let create = || UserAction::Create(0);
    let suspend = |yes: bool| UserAction::Edit(0, json!({"spec": {"runPolicy": {"suspend": yes}}}));
    let delete = || UserAction::DeleteOthers(job::GROUPS, "job".to_owned());
    let capacity =
        |second: u64, pods| ScheduledIntervention::fault(second * 1_000, ClusterFault::Capacity(pods));
    let train = |policy: Value| planned(JobType::Train, "job", &TRAIN, policy);
    let mpi = || planned(JobType::Mpi, "job", &[("Launcher", 1), ("Worker", 2)], json!({}));
    let whole = || train(json!({"restartScope": "Job"}));
    let of = |name: &str, scheduler: &str, fates, mut job: PlannedJob, actions| {
        job::ask_for_cpus(&mut job.object, job.job_type);
        let mut workload = workload(&format!("gang-{scheduler}-{name}"), fates, vec![job], actions);
        workload.scenario.config.gang_scheduler = GangScheduler::named(scheduler);
        workload
    };
    let mut all = Vec::new();
    for scheduler in ["volcano", "coscheduling"] {
        all.extend([
            of(
                "replica",
                scheduler,
                is_killed_once,
                train(json!({})),
                vec![create()],
            ),
            of("job", scheduler, is_killed_once, whole(), vec![create()]),
            of("launcher", scheduler, is_killed_once, mpi(), vec![create()]),
            of(
                "group-deleted",
                scheduler,
                succeeds,
                train(json!({})),
                vec![create(), delete()],
            ),
            of(
                "suspend-resume",
                scheduler,
                succeeds,
                whole(),
                vec![create(), suspend(true), suspend(false)],
            ),
        ]);
        let mut late = of(
            "late-capacity",
            scheduler,
            is_killed_once,
            whole(),
            vec![create()],
        );
        let changes = [
            capacity(0, Some(3)),
            capacity(100, Some(4)),
            capacity(550, Some(2)),
        ];
        late.scenario.interventions.splice(0..0, changes);
        late.scenario.interventions.sort_by_key(|scheduled| scheduled.at);
        late.scenario.config.seconds = 700;
        all.push(late);
    }
    all
}

/// Returns all workloads.
pub fn all() -> Vec<Workload> {
    let train = |policy: Value| vec![planned(JobType::Train, "job", &TRAIN, policy)];
    let workers = |n: i64| {
        UserAction::Edit(
            0,
            json!({"spec": {"mxReplicaSpecs": {"Worker": {"replicas": n}}}}),
        )
    };
    let suspend = |yes: bool| UserAction::Edit(0, json!({"spec": {"runPolicy": {"suspend": yes}}}));
    let one = || vec![UserAction::Create(0)];
    let mut all = vec![
        workload("success", succeeds, train(json!({})), one()),
        workload("failure", fails, train(json!({})), one()),
        workload(
            "scale-up",
            succeeds,
            train(json!({})),
            vec![UserAction::Create(0), workers(3)],
        ),
        workload(
            "scale-down",
            succeeds,
            train(json!({})),
            vec![UserAction::Create(0), workers(1)],
        ),
        workload(
            "suspend-resume",
            succeeds,
            train(json!({})),
            vec![UserAction::Create(0), suspend(true), suspend(false)],
        ),
        workload(
            "delete",
            succeeds,
            train(json!({})),
            vec![UserAction::Create(0), UserAction::Delete(0, "Background")],
        ),
        workload(
            "delete-foreground",
            succeeds,
            train(json!({})),
            vec![UserAction::Create(0), UserAction::Delete(0, "Foreground")],
        ),
        workload(
            "recreate",
            succeeds,
            train(json!({})),
            vec![UserAction::Create(0), UserAction::Recreate(0)],
        ),
        workload(
            "ttl",
            succeeds,
            train(json!({"ttlSecondsAfterFinished": 20})),
            one(),
        ),
        workload(
            "deadline",
            hangs,
            train(json!({"activeDeadlineSeconds": 300})),
            one(),
        ),
        workload(
            "backoff-limit",
            is_killed_always,
            train(json!({"backoffLimit": 1})),
            one(),
        ),
        workload(
            "invalid-then-fixed",
            succeeds,
            train(json!({})),
            vec![UserAction::Create(0), workers(-1), workers(2)],
        ),
        workload(
            "pod-deleted",
            succeeds,
            train(json!({})),
            vec![
                UserAction::Create(0),
                UserAction::DeletePod("job-worker-0".to_owned(), false),
            ],
        ),
        workload(
            "two-jobs",
            succeeds,
            vec![
                planned(JobType::Train, "one", &TRAIN[..1], json!({})),
                planned(JobType::Train, "two", &TRAIN[2..], json!({})),
            ],
            vec![UserAction::Create(0), UserAction::Create(1)],
        ),
        workload(
            "one-name-two-kinds",
            succeeds,
            vec![
                planned(JobType::XgBoost, "job", &[("Master", 1)], json!({})),
                planned(JobType::TensorFlow, "job", &[("Chief", 1)], json!({})),
            ],
            vec![UserAction::Create(0), UserAction::Create(1)],
        ),
        workload(
            "tune",
            is_killed_once,
            vec![planned(
                JobType::Tune,
                "job",
                &[("TunerTracker", 1), ("TunerServer", 1), ("Tuner", 1)],
                json!({}),
            )],
            one(),
        ),
    ];
    for scope in ["Job", "Role", "Replica"] {
        let policy = json!({"restartScope": scope});
        let name = format!("restart-{}", scope.to_lowercase());
        all.push(workload(&name, is_killed_once, train(policy), one()));
    }
    let mpi = || {
        vec![planned(
            JobType::Mpi,
            "job",
            &[("Launcher", 1), ("Worker", 2)],
            json!({}),
        )]
    };
    let resume = || vec![UserAction::Create(0), suspend(true), suspend(false)];
    all.push(workload("launcher", is_killed_once, mpi(), one()));
    all.push(workload("launcher-suspend-resume", succeeds, mpi(), resume()));
    for plural in ["configmaps", "serviceaccounts", "roles", "rolebindings"] {
        let name = format!("launcher-{plural}-deleted");
        let delete = UserAction::DeleteOthers(plural, "job-".to_owned());
        all.push(workload(
            &name,
            is_killed_once,
            mpi(),
            vec![UserAction::Create(0), delete],
        ));
    }
    let elastic = || vec![planned(JobType::Elastic, "job", &[("Worker", 2)], json!({}))];
    all.push(workload("elastic", is_killed_once, elastic(), one()));
    all.push(workload(
        "elastic-suspend-resume",
        worker_0_succeeds,
        elastic(),
        resume(),
    ));
    let of_roles = [
        ("pytorch", JobType::PyTorch, &[("Master", 1), ("Worker", 2)][..]),
        ("paddle", JobType::Paddle, &[("Master", 1), ("Worker", 2)]),
        ("jax", JobType::Jax, &[("Worker", 2)]),
    ];
    for (name, job_type, roles) in of_roles {
        let jobs = vec![planned(job_type, "job", roles, json!({}))];
        all.push(workload(name, is_killed_once, jobs, one()));
    }
    for action in ["FailJob", "RestartJob", "RestartRole", "RestartReplica", "Ignore"] {
        let rule = json!({"action": action, "onExitCodes": {"operator": "In", "values": [137]}});
        let policy = json!({"failurePolicy": {"maxRestarts": 1, "rules": [rule]}});
        let name = format!("rule-{}", action.to_lowercase());
        all.push(workload(&name, is_killed_once, train(policy), one()));
    }
    // A role with retries of its own, whose failures restart another scope than usual and never end.
    for action in ["RestartJob", "RestartRole", "RestartReplica"] {
        let rule = json!({"action": action, "onExitCodes": {"values": [137]}});
        let policy = json!({"backoffLimit": 1, "failurePolicy": {"rules": [rule]}});
        let mut job = planned(JobType::Toy, "job", &TRAIN, policy);
        job.object["metadata"]["annotations"] = json!({RETRIES: "1"});
        let name = format!("retries-{}", action.to_lowercase());
        let mut workload = workload(&name, is_killed_always, vec![job], one());
        workload.scenario.config.job_types = &[JobType::Toy];
        all.push(workload);
    }
    // A step that is done stays done, whatever happens in the next one.
    for (name, fates, actions) in [
        (
            "steps-restart",
            next_step_is_killed_once as fn(&str, u32) -> PodFate,
            one(),
        ),
        ("steps-suspend-resume", scheduler_succeeds, resume()),
    ] {
        let mut job = planned(JobType::Toy, "job", &[("Scheduler", 1), ("Worker", 2)], json!({}));
        job.object["metadata"]["annotations"] = json!({STEPS: "true"});
        let mut workload = workload(name, fates, vec![job], actions);
        workload.scenario.config.job_types = &[JobType::Toy];
        all.push(workload);
    }
    let any = json!({"successPolicy": {"operator": "Any", "roles": ["Worker"]}});
    all.push(workload("success-policy", worker_0_succeeds, train(any), one()));
    all.extend(queued());
    all.extend(gangs());
    let others = json!({"managedBy": "kueue.x-k8s.io/multikueue"});
    all.push(workload("left-alone", succeeds, train(others), one()));
    let compact = |policy: Value| {
        let mut policy = policy;
        policy["layout"] = json!("Compact");
        // The number of replicas and the length of the name make the common environment large enough for a ConfigMap.
        let name = "job-with-a-name-of-forty-characters-or-so";
        vec![planned(
            JobType::Train,
            name,
            &[("Scheduler", 1), ("Worker", 14)],
            policy,
        )]
    };
    let delete = |plural| UserAction::DeleteOthers(plural, "job-".to_owned());
    all.push(workload("compact", is_killed_once, compact(json!({})), one()));
    all.push(workload(
        "compact-scale-up",
        succeeds,
        compact(json!({"cleanPodPolicy": "All"})),
        vec![UserAction::Create(0), workers(15)],
    ));
    all.push(workload(
        "compact-suspend-resume",
        succeeds,
        compact(json!({})),
        vec![UserAction::Create(0), suspend(true), suspend(false)],
    ));
    all.push(workload(
        "compact-deleted",
        is_killed_once,
        compact(json!({})),
        vec![UserAction::Create(0), delete("configmaps"), delete("services")],
    ));
    for clean in ["All", "Running", "None"] {
        let policy = json!({"cleanPodPolicy": clean});
        let name = format!("clean-{}", clean.to_lowercase());
        all.push(workload(&name, succeeds, train(policy), one()));
    }
    all
}
