//! Scenarios of PaddleJobs: the recorded ones, and those in which a job hangs or fails without reason under the Go
//! operator.

use training_job::{Settings, render, validate};
use training_job_paddle::PaddleJob;
use training_job_testbed::PlanHarness;

fn started(roles: &str) -> PlanHarness<PaddleJob> {
    PlanHarness::with(roles, "").started()
}

fn warnings(roles: &str, fields: &str) -> String {
    let job = PlanHarness::<PaddleJob>::with(roles, fields).job;
    let valid = validate(&job, &Settings::default()).unwrap_or_else(|e| unreachable!("{e}"));
    render::warnings(&valid).to_string()
}

#[test]
fn without_masters_all_workers_decide() {
    let mut w = PlanHarness::<PaddleJob>::with("Worker=2", "");
    w.reconcile().pod("worker-1").running();
    assert_eq!(w.reconcile().state(), "Created Running");
    assert_eq!(w.message_of("Running"), "PaddleJob team/job is running.");
    w.all_running().pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
    assert_eq!(
        w.message_of("Succeeded"),
        "PaddleJob team/job successfully completed."
    );
}

#[test]
fn the_end_of_all_parameter_servers_is_the_end() {
    let mut w = PlanHarness::<PaddleJob>::with("Master=2 Worker=2", "");
    w.reconcile().pod("worker-0").running().pod("worker-1").running();
    assert_eq!(w.reconcile().state(), "Created", "no server runs yet");
    assert_eq!(w.all_running().message_of("Running"), "PaddleJob job is running.");
    w.pod("master-0").succeeds();
    assert_eq!(w.reconcile().after(10).reconcile().state(), "Created Running");
    w.pod("master-1").succeeds();
    assert_eq!(w.reconcile().after(10).reconcile().state(), "Created Succeeded");
    assert_eq!(
        w.message_of("Succeeded"),
        "PaddleJob job is successfully completed."
    );
}

/// The Go operator waits for the servers forever.
#[test]
fn servers_without_a_stop_do_not_keep_the_job() {
    let mut w = started("Master=2 Worker=2");
    w.pod("worker-0").succeeds();
    assert_eq!(w.reconcile().after(10).reconcile().state(), "Created Running");
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().after(10).reconcile().state(), "Created Succeeded");
}

/// A restarted server has lost its part of the model.
#[test]
fn a_killed_replica_restarts_the_whole_job() {
    for (roles, killed) in [
        ("Worker=2:ExitCode", "worker-1"),
        ("Master=1:ExitCode Worker=1:ExitCode", "master-0"),
        ("Master=1:ExitCode Worker=1:ExitCode", "worker-0"),
    ] {
        let mut w = started(roles);
        w.pod(killed).exits(247);
        w.reconcile().finish_deletions().reconcile();
        assert_eq!(w.attempts().into_values().collect::<Vec<_>>(), [1, 1], "{roles}");
        assert_eq!(w.all_running().state(), "Created Running");
    }
    let mut w = started("Worker=1:OnFailure");
    w.pod("worker-0").restarts_in_place(247).reconcile();
    assert_eq!(w.attempts().into_values().collect::<Vec<_>>(), [0]);
}

/// Without a master no pod is labeled, unlike in the other kinds.
#[test]
fn every_master_is_labeled() {
    for (roles, masters) in [("Master=2 Worker=1", 2), ("Worker=2", 0)] {
        let w = started(roles);
        let labels = w
            .pods
            .values()
            .flat_map(|pod| pod.metadata.labels.iter().flatten());
        let roles = labels.filter(|(key, _)| *key == "training.kubeflow.org/job-role");
        assert_eq!(roles.count(), masters);
    }
}

#[test]
fn an_elastic_policy_is_taken_and_has_no_effect() {
    let policy = "elasticPolicy: {minReplicas: 3, maxReplicas: 1, maxRestarts: 2, metrics: []}";
    assert_eq!(
        warnings("Worker=2", policy),
        "spec.elasticPolicy: has no effect, because no program reads it; remove it"
    );
    let mut w = PlanHarness::<PaddleJob>::with("Worker=2", policy).started();
    w.pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
}

#[test]
fn servers_without_workers_are_warned_of() {
    assert_eq!(
        warnings("Master=1", ""),
        "spec.paddleReplicaSpecs.Master: parameter servers without workers wait forever; \
         add a Worker, or rename this role to Worker"
    );
    assert_eq!(warnings("Master=1 Worker=1", ""), "");
}

#[test]
fn a_job_without_replicas_is_invalid() {
    for roles in ["Worker=0", "Master=0 Worker=0", "Chief=1"] {
        let mut w = PlanHarness::<PaddleJob>::with(roles, "");
        assert_eq!(w.reconcile().state(), "Failed", "{roles}");
        assert!(w.pods.is_empty());
    }
}
