//! Scenarios of JAXJobs: the recorded ones, and those in which a job hangs under the Go operator.

use training_job_jax::JAXJob;
use training_job_testbed::PlanHarness;

fn started(roles: &str) -> PlanHarness<JAXJob> {
    PlanHarness::with(roles, "").started()
}

#[test]
fn all_workers_decide() {
    let mut w = PlanHarness::<JAXJob>::with("Worker=2", "");
    w.reconcile().pod("worker-1").running();
    assert_eq!(w.reconcile().state(), "Created Running");
    assert_eq!(w.message_of("Running"), "JAXJob team/job is running.");
    w.all_running().pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
    assert_eq!(
        w.message_of("Succeeded"),
        "JAXJob team/job successfully completed."
    );
}

#[test]
fn a_killed_worker_restarts_the_whole_job() {
    let mut w = started("Worker=3:ExitCode");
    w.pod("worker-1").exits(137).reconcile();
    assert_eq!(
        w.message_of("Restarting"),
        "job job is restarting because Worker replica(s) failed."
    );
    w.finish_deletions().reconcile();
    assert_eq!(w.attempts().into_values().collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(w.all_running().state(), "Created Running");
}

#[test]
fn a_lone_worker_that_the_kubelet_restarts_runs_on() {
    let mut w = started("Worker=1:OnFailure");
    w.pod("worker-0").restarts_in_place(137);
    assert_eq!(w.reconcile().state(), "Created Running");
    assert_eq!(w.attempts().into_values().collect::<Vec<_>>(), [0]);
    // In a job of two workers the other one restarts as well.
    let mut w = started("Worker=2:OnFailure");
    w.pod("worker-0").restarts_in_place(137);
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(w.attempts().into_values().collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn an_unset_policy_is_never() {
    let mut w = PlanHarness::<JAXJob>::from_yaml(
        "{apiVersion: kubeflow.org/v1, kind: JAXJob, metadata: {name: job, namespace: team}, spec: \
         {jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: i}]}}}}}}",
    )
    .started();
    w.pod("worker-0").exits(137);
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert_eq!(
        w.message_of("Failed"),
        "JAXJob job is failed because 1 Worker replica(s) failed."
    );
}

/// The SDK finds the job's log by this label.
#[test]
fn worker_0_is_labeled() {
    let w = started("Worker=2");
    let is_master = |name: &str| {
        let labels = w.pods[name].metadata.labels.iter().flatten();
        labels
            .into_iter()
            .any(|(key, _)| key == "training.kubeflow.org/job-role")
    };
    assert!(is_master("job-worker-0") && !is_master("job-worker-1"));
}

#[test]
fn a_job_without_workers_is_invalid() {
    for roles in ["Worker=0", "Master=1 Worker=1"] {
        let mut w = PlanHarness::<JAXJob>::with(roles, "");
        assert_eq!(w.reconcile().state(), "Failed", "{roles}");
        assert!(w.pods.is_empty());
    }
}
