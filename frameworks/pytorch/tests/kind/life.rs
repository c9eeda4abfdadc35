//! Scenarios of PyTorchJobs: the recorded ones, and those in which a job hangs or fails without reason under the Go
//! operator.

use training_job_pytorch::PyTorchJob;
use training_job_testbed::PlanHarness;

const ELASTIC: &str = "elasticPolicy: {minReplicas: 1, maxReplicas: 3}";

fn started(roles: &str, fields: &str) -> PlanHarness<PyTorchJob> {
    PlanHarness::with(roles, fields).started()
}

#[test]
fn the_master_decides() {
    let mut w = PlanHarness::<PyTorchJob>::with("Master=1 Worker=2:ExitCode", "");
    w.reconcile().pod("worker-0").running().pod("worker-1").running();
    assert_eq!(w.reconcile().state(), "Created", "the master does not run yet");
    w.all_running();
    assert_eq!(w.message_of("Running"), "PyTorchJob job is running.");
    w.pod("worker-0").succeeds().pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("master-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
    assert_eq!(
        w.message_of("Succeeded"),
        "PyTorchJob job is successfully completed."
    );
    assert_eq!(w.counts("Worker"), (0, 2, 0));
}

/// The message differs from that of a job with a master.
#[test]
fn without_a_master_all_workers_decide() {
    let mut w = PlanHarness::<PyTorchJob>::with("Worker=2", "");
    w.reconcile().pod("worker-1").running();
    assert_eq!(w.reconcile().state(), "Created Running");
    assert_eq!(w.message_of("Running"), "PyTorchJob team/job is running.");
    w.all_running().pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
    assert_eq!(
        w.message_of("Succeeded"),
        "PyTorchJob team/job successfully completed."
    );
}

#[test]
fn the_first_worker_to_succeed_ends_an_elastic_job() {
    let mut w = started("Worker=3", ELASTIC);
    assert_eq!(w.state(), "Created Running");
    w.pod("worker-1").succeeds().reconcile().after(10).reconcile();
    assert_eq!(w.state(), "Created Succeeded");
    // A master takes precedence over that.
    let mut w = started("Master=1 Worker=3", ELASTIC);
    w.pod("worker-1").succeeds().reconcile().after(10).reconcile();
    assert_eq!(w.state(), "Created Running");
}

/// There is one verdict. Under the Go operator such a job both succeeds and fails.
#[test]
fn a_failure_that_is_final_outweighs_an_elastic_success() {
    let mut w = started("Worker=3", ELASTIC);
    w.pod("worker-0").succeeds().pod("worker-1").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert_eq!(
        w.message_of("Failed"),
        "PyTorchJob job is failed because 1 Worker replica(s) failed."
    );
}

#[test]
fn a_killed_rank_restarts_the_whole_job() {
    for roles in ["Master=1:ExitCode Worker=1:ExitCode", "Worker=2:ExitCode"] {
        let mut w = started(roles, "");
        w.pod("worker-0").exits(137).reconcile();
        assert_eq!(
            w.message_of("Restarting"),
            "job job is restarting because Worker replica(s) failed."
        );
        w.finish_deletions().reconcile();
        assert_eq!(w.attempts().into_values().collect::<Vec<_>>(), [1, 1], "{roles}");
        assert_eq!(w.all_running().state(), "Created Running");
    }
}

#[test]
fn an_elastic_worker_is_replaced_alone() {
    for (policy, attempts) in [("OnFailure", [0, 1, 0]), ("ExitCode", [1, 1, 1])] {
        let mut w = started(&format!("Worker=3:{policy}"), ELASTIC);
        w.pod("worker-1").exits(137);
        w.reconcile().finish_deletions().reconcile();
        assert_eq!(
            w.attempts().into_values().collect::<Vec<_>>(),
            attempts,
            "{policy}"
        );
    }
}

/// An autoscaler that outlives the pods' suspension would ask for more of them.
#[test]
fn the_autoscaler_goes_before_the_pods_of_a_suspended_job_have_ended() {
    let metrics = "metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]";
    let policy = format!("elasticPolicy: {{minReplicas: 1, maxReplicas: 3, {metrics}}}");
    let mut w = started("Worker=2", &policy);
    let count = |w: &PlanHarness<PyTorchJob>| w.objects.values().map(|of_kind| of_kind.len()).sum::<usize>();
    assert_eq!(count(&w), 1);
    w.suspend(true).reconcile();
    assert_eq!(
        w.pod_names(),
        ["(worker-0)", "(worker-1)"],
        "they are being deleted"
    );
    assert_eq!(count(&w), 0);
}

#[test]
fn a_lone_replica_is_restarted() {
    for (roles, replica) in [
        ("Master=1:ExitCode", "master-0"),
        ("Worker=1:ExitCode", "worker-0"),
    ] {
        let mut w = started(roles, "");
        w.pod(replica).exits(137).reconcile().all_running();
        w.pod(replica).succeeds();
        assert_eq!(w.reconcile().state(), "Created Succeeded", "{roles}");
    }
}

#[test]
fn a_wrong_exit_code_is_final() {
    let mut w = started("Master=1 Worker=2:ExitCode", "");
    w.pod("worker-1").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert_eq!(
        w.message_of("Failed"),
        "job \"job\" is failing because \"Worker\" replica(s) failed."
    );
    assert!(w.status().completion_time.is_some());
}

/// The Go operator requires the number.
#[test]
fn a_master_without_a_number_is_one() {
    let mut w = PlanHarness::<PyTorchJob>::from_yaml(
        "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: job, namespace: team}, spec: \
         {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}",
    );
    assert_eq!(w.reconcile().pod_names(), ["master-0"]);
    let pod = w.pod("master-0").object().spec.clone();
    assert_eq!(
        pod.and_then(|pod| pod.restart_policy).as_deref(),
        Some("OnFailure")
    );
}

#[test]
fn a_master_needs_no_workers() {
    let mut w = started("Master=1 Worker=0", "");
    assert_eq!(w.pod_names(), ["master-0"]);
    w.pod("master-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

/// The SDK finds the job's log by this label.
#[test]
fn the_master_or_worker_0_is_labeled() {
    for (roles, master) in [
        ("Master=1 Worker=2", "job-master-0"),
        ("Worker=2", "job-worker-0"),
    ] {
        let w = started(roles, "");
        let is_master = |pod: &k8s_openapi::api::core::v1::Pod| {
            let labels = pod.metadata.labels.iter().flatten();
            labels
                .into_iter()
                .any(|(key, _)| key == "training.kubeflow.org/job-role")
        };
        let labeled: Vec<_> = w
            .pods
            .iter()
            .filter(|(_, pod)| is_master(pod))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(labeled, [master]);
    }
}

/// Roles, fields of the spec, and a part of the error.
const REFUSED: &str = r#"
Master=2 | - | spec.pytorchReplicaSpecs.Master.replicas:
Master=0 Worker=0 | - | spec.pytorchReplicaSpecs:
Worker=1 | nprocPerNode: many | spec.nprocPerNode: must be auto, cpu, gpu, or a number of 1 or more in quotes
Worker=1 | nprocPerNode: '0' | spec.nprocPerNode: must be auto, cpu, gpu, or a number of 1 or more in quotes
Worker=1 | nprocPerNode: '' | spec.nprocPerNode: must be auto, cpu, gpu, or a number of 1 or more in quotes
Worker=1 | nprocPerNode: '2'; elasticPolicy: {nProcPerNode: 2} | spec.elasticPolicy.nProcPerNode: must not be set together with spec.nprocPerNode
Master=1 | elasticPolicy: {minReplicas: 1, maxReplicas: 3} | spec.pytorchReplicaSpecs: must have a Worker, because the workers of an elastic job meet at worker 0
Worker=2 | elasticPolicy: {minReplicas: 3, maxReplicas: 2} | spec.elasticPolicy.minReplicas: must be at most maxReplicas
Worker=2 | elasticPolicy: {minReplicas: -1} | spec.elasticPolicy.minReplicas: must be at least 1 (is -1)
Worker=2 | elasticPolicy: {rdzvBackend: c10} | spec.elasticPolicy.rdzvBackend: unknown value "c10"; did you mean c10d?
"#;

#[test]
fn jobs_that_cannot_be_are_refused() {
    for row in REFUSED.lines().skip(1) {
        let [roles, fields, error] = row.split(" | ").collect::<Vec<_>>()[..] else {
            unreachable!("{row}");
        };
        let fields = fields.trim_matches('-').replace("; ", "\n");
        let mut w = PlanHarness::<PyTorchJob>::with(roles, &fields);
        assert_eq!(w.reconcile().state(), "Failed", "{row}");
        assert!(w.pods.is_empty());
        let message = w.message_of("Failed");
        assert!(message.contains(error), "{row}: {message}");
    }
}
