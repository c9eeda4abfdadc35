//! The invariants of a settled cluster.

use serde_json::json;
use training_job_simulation::invariants::at_rest::SettledCluster;
use training_job_simulation::world::job::{self, JobType};

use crate::fixture::{Fixture, SHARED, condition};

/// Returns the invariants that the cluster violates.
fn ids(fixture: &Fixture) -> Vec<&'static str> {
    let problems = SettledCluster::read(&fixture.cluster).problems();
    problems.into_iter().map(|(id, _)| id).collect()
}

#[tokio::test(start_paused = true)]
async fn at_rest_a_job_has_its_wanted_objects() {
    let fixture = Fixture::new().await;
    assert_eq!(ids(&fixture), ["I7"], "it has no pods");
    for name in ["job-worker-0", "job-worker-1"] {
        fixture.create(name).await;
        fixture.make("Service", name).await;
        fixture.run(name).await;
    }
    let running = json!({"conditions": [condition("Running")], "replicaStatuses": {"Worker": {"active": 2}}});
    fixture.status(running).await;
    assert!(
        ids(&fixture).is_empty(),
        "{:?}",
        SettledCluster::read(&fixture.cluster).problems()
    );
    fixture
        .status(json!({"replicaStatuses": {"Worker": {"active": 1}}}))
        .await;
    assert_eq!(ids(&fixture), ["I10"], "the counts are wrong");
    fixture.set_condition("Succeeded").await;
    assert_eq!(ids(&fixture), ["I7"], "its pods run on");
}

#[tokio::test(start_paused = true)]
async fn at_rest_a_compact_job_has_its_wanted_objects() {
    let fixture = Fixture::compact().await;
    let problem = || -> String {
        let mut problems = SettledCluster::read(&fixture.cluster).problems();
        problems
            .pop()
            .map_or_else(String::new, |(id, what)| format!("{id} {what}"))
    };
    for name in ["job-worker-0", "job-worker-1"] {
        fixture.post(fixture.sharing_pod(name)).await;
        fixture.run(name).await;
    }
    let running = json!({"conditions": [condition("Running")], "replicaStatuses": {"Worker": {"active": 2}}});
    fixture.status(running).await;
    assert_eq!(problem(), "I7 MXJob job: service job-hosts is missing");
    fixture.make("Service", "job-hosts").await;
    assert_eq!(problem(), format!("I7 MXJob job: ConfigMap {SHARED} is missing"));
    fixture.make("ConfigMap", SHARED).await;
    assert_eq!(problem(), "");
    let data = json!({"data": {"MX_CONFIG": "{\"cluster\":{},\"task\":{\"index\":"}});
    fixture.user("PATCH", "configmaps", SHARED, data).await;
    assert_eq!(problem(), "I13 MXJob job: two pods are {\"index\":0}");
    for name in ["job-worker-0", "job-worker-1"] {
        fixture.succeed(name).await;
    }
    fixture.set_condition("Succeeded").await;
    assert_eq!(
        problem(),
        format!("I7 MXJob job: {SHARED} is left, though no pod runs")
    );
}

#[tokio::test(start_paused = true)]
async fn at_rest_a_blocked_job_has_a_waiting_reason() {
    let fixture = Fixture::new().await;
    let mut foreign = fixture.pod("job-worker-0");
    foreign["metadata"]["ownerReferences"] = json!([]);
    fixture.user("POST", "pods", "", foreign).await;
    assert_eq!(ids(&fixture), ["I24"], "nothing says so");
    let warn = async |name: &str, message: &str| {
        let about = json!({"kind": "MXJob", "name": "job", "namespace": "default", "uid": fixture.job()["metadata"]["uid"]});
        let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about,
            "type": "Warning", "reason": "FailedCreatePod", "message": message});
        fixture.post(event).await;
    };
    warn("another", "pod job-worker-1: the name is taken").await;
    assert_eq!(ids(&fixture), ["I24"], "it names another");
    warn("one", "pod job-worker-0: the name is taken").await;
    assert!(ids(&fixture).is_empty());
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_left_of_a_deleted_job_and_ranks_differ() {
    let fixture = Fixture::new().await;
    let mut orphan = fixture.pod("orphan");
    for n in 0..2 {
        let mut pod = fixture.pod(&format!("job-worker-{n}"));
        let config = json!({"cluster": {"worker": n}, "task": {"type": "worker", "index": n}});
        pod["spec"]["containers"][0]["env"] = json!([{"name": "MX_CONFIG", "value": config.to_string()}]);
        fixture.post(pod).await;
    }
    let problems = SettledCluster::read(&fixture.cluster).problems();
    assert!(problems.iter().any(|(id, _)| *id == "I13"), "{problems:?}");
    orphan["metadata"]["ownerReferences"][0]["uid"] = json!("gone");
    let settled = SettledCluster::new(Vec::new(), [("pods", vec![orphan])]);
    assert_eq!(settled.problems()[0].0, "I5");
}

#[tokio::test(start_paused = true)]
async fn at_rest_a_job_has_the_objects_of_its_kind() {
    let job = job::new(JobType::Mpi, "job", &[("Launcher", 1), ("Worker", 1)], "Never");
    let fixture = Fixture::with(job).await;
    let problem = || -> String {
        let problems = SettledCluster::read(&fixture.cluster).problems();
        let first = problems.into_iter().next();
        first.map_or_else(String::new, |(_, what)| what)
    };
    assert_eq!(problem(), "MPIJob job: pod job-worker-0 is missing");
    fixture.create("job-worker-0").await;
    // The launcher correctly waits for the worker.
    assert_eq!(problem(), "MPIJob job: configmaps job-config is missing");
    fixture.make("ConfigMap", "job-config").await;
    fixture.make("ServiceAccount", "job-launcher").await;
    assert_eq!(problem(), "MPIJob job: roles job-launcher is missing");
    fixture.make("ServiceAccount", "other").await;
    assert_eq!(
        problem(),
        "MPIJob job: serviceaccounts other is more than its kind has"
    );
}
