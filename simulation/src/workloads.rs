//! Small lives of jobs, each with one feature, to be tried with every fault at every call.

use serde_json::{Value, json};

use crate::job::{self, Kind};
use crate::kubelet::Fate::{self, Fails, Runs, Succeeds};
use crate::run::Scenario;
use crate::settings::Settings;
use crate::users::{Act, Deed, JobPlan};

/// Seconds between things that users do: enough for what a fault holds up.
const LATER: u64 = 400;

/// A life.
pub struct Workload {
    /// What it is about.
    pub name: String,
    /// The scenario, without faults.
    pub scenario: Scenario,
}

const TRAIN: [(&str, i32); 3] = [("Scheduler", 1), ("Server", 1), ("Worker", 2)];

/// Ends well, the scheduler last, as it does in reality: also after a pod that a fault made late.
fn ends_well(name: &str, _: u32) -> Fate {
    Succeeds(if name.contains("scheduler") { 1_200 } else { 1_000 })
}

/// One worker is killed once.
fn is_killed_once(name: &str, attempt: u32) -> Fate {
    match attempt {
        0 if name.ends_with("worker-1") || name.ends_with("tuner-0") => Fails(137, 500),
        _ => ends_well(name, attempt),
    }
}

fn fails(name: &str, _: u32) -> Fate {
    if name.ends_with("worker-1") {
        Fails(1, 500)
    } else {
        Runs
    }
}

fn is_killed_always(name: &str, _: u32) -> Fate {
    if name.ends_with("worker-1") {
        Fails(137, 500)
    } else {
        Runs
    }
}

fn hangs(_: &str, _: u32) -> Fate {
    Runs
}

fn plan(kind: Kind, name: &str, roles: &[(&str, i32)], policy: Value) -> JobPlan {
    let mut object = job::of(kind, name, roles, "ExitCode");
    object["spec"]["runPolicy"] = policy;
    JobPlan {
        kind,
        name: name.to_owned(),
        object,
    }
}

fn workload(name: &str, fates: fn(&str, u32) -> Fate, jobs: Vec<JobPlan>, deeds: Vec<Deed>) -> Workload {
    let acts = (0..).zip(deeds).map(|(n, deed)| Act {
        at: n * LATER * 1_000,
        deed,
    });
    let acts: Vec<_> = acts.collect();
    let mut settings = Settings::calm();
    settings.all_kinds = jobs.iter().any(|j| matches!(j.kind, Kind::Boost | Kind::Flow));
    settings.span = (acts.len() as u64) * LATER;
    Workload {
        name: name.to_owned(),
        scenario: Scenario {
            settings,
            jobs,
            acts,
            faults: Some(Default::default()),
            fates: Some(fates),
        },
    }
}

/// All of them.
pub fn all() -> Vec<Workload> {
    let train = |policy: Value| vec![plan(Kind::Train, "job", &TRAIN, policy)];
    let workers = |n: i64| {
        Deed::Edit(
            0,
            json!({"spec": {"mxReplicaSpecs": {"Worker": {"replicas": n}}}}),
        )
    };
    let suspend = |yes: bool| Deed::Edit(0, json!({"spec": {"runPolicy": {"suspend": yes}}}));
    let one = || vec![Deed::Create(0)];
    let mut all = vec![
        workload("success", ends_well, train(json!({})), one()),
        workload("failure", fails, train(json!({})), one()),
        workload(
            "scale-up",
            ends_well,
            train(json!({})),
            vec![Deed::Create(0), workers(3)],
        ),
        workload(
            "scale-down",
            ends_well,
            train(json!({})),
            vec![Deed::Create(0), workers(1)],
        ),
        workload(
            "suspend-resume",
            ends_well,
            train(json!({})),
            vec![Deed::Create(0), suspend(true), suspend(false)],
        ),
        workload(
            "delete",
            ends_well,
            train(json!({})),
            vec![Deed::Create(0), Deed::Delete(0, "Background")],
        ),
        workload(
            "delete-foreground",
            ends_well,
            train(json!({})),
            vec![Deed::Create(0), Deed::Delete(0, "Foreground")],
        ),
        workload(
            "recreate",
            ends_well,
            train(json!({})),
            vec![Deed::Create(0), Deed::Recreate(0)],
        ),
        workload(
            "ttl",
            ends_well,
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
            ends_well,
            train(json!({})),
            vec![Deed::Create(0), workers(-1), workers(2)],
        ),
        workload(
            "pod-deleted",
            ends_well,
            train(json!({})),
            vec![Deed::Create(0), Deed::DeletePod("job-worker-0".to_owned(), false)],
        ),
        workload(
            "two-jobs",
            ends_well,
            vec![
                plan(Kind::Train, "one", &TRAIN[..1], json!({})),
                plan(Kind::Train, "two", &TRAIN[2..], json!({})),
            ],
            vec![Deed::Create(0), Deed::Create(1)],
        ),
        workload(
            "one-name-two-kinds",
            ends_well,
            vec![
                plan(Kind::Boost, "job", &[("Master", 1)], json!({})),
                plan(Kind::Flow, "job", &[("Chief", 1)], json!({})),
            ],
            vec![Deed::Create(0), Deed::Create(1)],
        ),
        workload(
            "tune",
            is_killed_once,
            vec![plan(
                Kind::Tune,
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
    for clean in ["All", "Running", "None"] {
        let policy = json!({"cleanPodPolicy": clean});
        let name = format!("clean-{}", clean.to_lowercase());
        all.push(workload(&name, ends_well, train(policy), one()));
    }
    all
}
