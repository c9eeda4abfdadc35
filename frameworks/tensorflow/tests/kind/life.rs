//! Scenarios of TFJobs: the recorded ones, and those without recordings.

use training_job::{Settings, render, validate};
use training_job_tensorflow::TFJob;
use training_job_testbed::PlanHarness;

fn started(roles: &str, fields: &str) -> PlanHarness<TFJob> {
    PlanHarness::with(roles, fields).started()
}

/// Returns `TF_CONFIG` of every container that has one, as `pod/container`.
fn configs(job: &TFJob) -> Vec<(String, String)> {
    let valid = validate(job, &Settings::default()).unwrap_or_else(|e| unreachable!("{e}"));
    let pods = render::all(&valid).pods;
    let containers = pods.iter().flat_map(|pod| {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let all = pod.spec.iter().flat_map(|s| &s.containers);
        all.map(move |c| (format!("{name}/{}", c.name), c))
    });
    containers
        .filter_map(|(name, c)| Some((name, c.env.as_ref()?.first()?.value.clone()?)))
        .collect()
}

#[test]
fn the_chief_decides() {
    for chief in ["Chief", "Master"] {
        let mut w = PlanHarness::<TFJob>::with(&format!("{chief}=1 PS=2 Worker=2 Evaluator=1"), "");
        w.reconcile();
        for pod in ["ps-0", "ps-1", "worker-0", "worker-1", "evaluator-0"] {
            w.pod(pod).running();
        }
        assert_eq!(w.reconcile().state(), "Created", "the chief does not run yet");
        w.all_running();
        assert_eq!(w.message_of("Running"), "TFJob team/job is running.");
        w.pod("worker-0").succeeds().pod("worker-1").succeeds();
        assert_eq!(w.reconcile().state(), "Created Running");
        w.pod(&format!("{}-0", chief.to_lowercase())).succeeds();
        assert_eq!(w.reconcile().state(), "Created Succeeded");
        assert_eq!(
            w.message_of("Succeeded"),
            "TFJob team/job successfully completed."
        );
    }
}

#[test]
fn without_a_chief_worker_0_decides() {
    let mut w = started("PS=1 Worker=2", "");
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn with_all_workers_every_worker_decides() {
    let mut w = started("PS=1 Worker=2", "successPolicy: AllWorkers");
    w.pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn a_failure_has_a_message_of_its_own() {
    let mut w = started("PS=1 Worker=3", "");
    w.pod("worker-0").exits(1).pod("worker-2").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert_eq!(
        w.message_of("Failed"),
        "TFJob team/job has failed because 2 Worker replica(s) failed."
    );
}

#[test]
fn beside_parameter_servers_a_worker_restarts_alone() {
    let mut w = started("PS=1:ExitCode Worker=2:ExitCode", "");
    w.pod("worker-1").exits(137).reconcile();
    let attempts: Vec<_> = w.attempts().into_values().collect();
    assert_eq!(attempts, [0, 0, 1]);
    w.all_running().pod("worker-1").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert_eq!(
        w.message_of("Failed"),
        "job \"job\" is failing because \"Worker\" replica(s) failed."
    );
}

/// The other workers end with 1 when one is killed, which would be final.
#[test]
fn a_collective_restarts_as_a_whole_but_for_its_evaluator() {
    let mut w = started("Worker=2:ExitCode Evaluator=1:ExitCode", "");
    w.pod("worker-1").exits(137);
    w.reconcile().finish_deletions().reconcile();
    assert!(w.attempts()["worker-0"] == 1 && w.attempts()["worker-1"] == 1);
    let mut w = started("Worker=2:ExitCode Evaluator=1:ExitCode", "");
    w.pod("evaluator-0").exits(137).reconcile();
    assert_eq!(w.attempts().into_values().collect::<Vec<_>>(), [1, 0, 0]);
}

#[test]
fn dynamic_workers_may_fail_but_for_the_last() {
    let dynamic = "enableDynamicWorker: true\nsuccessPolicy: AllWorkers";
    let mut w = started("PS=1 Worker=3", dynamic);
    w.pod("worker-0").exits(1);
    assert_eq!(w.reconcile().state(), "Created Running");
    assert_eq!(w.counts("Worker"), (2, 0, 1));
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("worker-2").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");

    let mut w = started("PS=1 Worker=2", dynamic);
    w.pod("worker-0").exits(1).reconcile().pod("worker-1").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
}

/// The job must not continue without a worker that is about to be restarted.
#[test]
fn a_dynamic_worker_that_restarts_is_awaited() {
    let dynamic = "enableDynamicWorker: true\nsuccessPolicy: AllWorkers";
    let mut w = started("PS=1 Worker=2:ExitCode", dynamic);
    w.pod("worker-0").succeeds().pod("worker-1").exits(137);
    assert_eq!(w.reconcile().all_running().state(), "Created Running");
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

/// There is no recording. The expectation follows the types in the Go operator's `tensorflow.go`. Older operators
/// named it `sparseCluster`.
#[test]
fn dynamic_workers_get_themselves_and_the_parameter_servers() {
    let w = PlanHarness::<TFJob>::with("PS=1 Worker=2", "enableDynamicWorker: true");
    let config = |worker: &str, ps: &str, role: &str, index: u32| {
        format!(
            r#"{{"cluster":{{"worker":{{{worker}}},"ps":[{ps}]}},"task":{{"type":"{role}","index":{index}}}}}"#
        )
    };
    let ps = r#""job-ps-0.team.svc:2222""#;
    let expected = [
        ("job-ps-0/tensorflow".to_owned(), config("", ps, "ps", 0)),
        (
            "job-worker-0/tensorflow".to_owned(),
            config(r#""0":"job-worker-0.team.svc:2222""#, ps, "worker", 0),
        ),
        (
            "job-worker-1/tensorflow".to_owned(),
            config(r#""1":"job-worker-1.team.svc:2222""#, ps, "worker", 1),
        ),
    ];
    assert_eq!(configs(&w.job), expected);
}

#[test]
fn jobs_that_cannot_be_are_refused() {
    for (roles, fields) in [
        ("Chief=1 Master=1 Worker=1", ""),
        ("Chief=2", ""),
        ("PS=1", ""),
        ("Evaluator=1", ""),
        ("Worker=1", "successPolicy: SomeWorkers"),
    ] {
        let mut w = PlanHarness::<TFJob>::with(roles, fields);
        assert_eq!(w.reconcile().state(), "Failed", "{roles} {fields}");
        assert!(w.pods.is_empty());
    }
}
