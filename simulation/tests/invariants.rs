//! Each invariant can be violated: here is how.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use http::Method;
use kube_memory::{Cluster, Description};
use serde_json::{Value, json};
use training_job_simulation::direct::request;
use training_job_simulation::faults::CallFault;
use training_job_simulation::history::History;
use training_job_simulation::invariants::at_rest::SettledCluster;
use training_job_simulation::invariants::{AllowedStaleness, Monitor};
use training_job_simulation::job::{self, JobType};
use training_job_simulation::network::Network;

/// A cluster with a job, and an operator's client that the test uses.
struct Bench {
    cluster: Cluster,
    network: Network,
    monitor: Monitor,
    operator: kube::Client,
}

impl Bench {
    async fn new() -> Self {
        Self::with(job::new(JobType::Train, "job", &[("Worker", 2)], "Never")).await
    }

    /// With a compact job.
    async fn compact() -> Self {
        let mut job = job::new(JobType::Train, "job", &[("Worker", 2)], "Never");
        job["spec"]["runPolicy"] = json!({"layout": "Compact"});
        Self::with(job).await
    }

    async fn with(job: Value) -> Self {
        let cluster = Cluster::new();
        cluster.install(Description::new("kubeflow.org", "v1", "MXJob", "mxjobs").with_status());
        let history = History::default();
        let network = Network::new(&cluster, history.clone());
        let staleness = AllowedStaleness {
            of_others: 1_000,
            of_own: 0,
        };
        let monitor = Monitor::attach(&cluster, &network, &history, staleness);
        let (operator, ..) = network.connect();
        let bench = Self {
            cluster,
            network,
            monitor,
            operator,
        };
        bench.user("POST", JOBS, job).await;
        bench
    }

    async fn call(client: &kube::Client, method: &str, path: &str, body: Value) {
        let request = request(method.parse().unwrap(), path, &body);
        client.request::<Value>(request).await.unwrap();
    }

    async fn user(&self, method: &str, path: &str, body: Value) {
        Self::call(&self.cluster.client("default"), method, path, body).await;
    }

    async fn operator(&self, method: &str, path: &str, body: Value) {
        Self::call(&self.operator, method, path, body).await;
    }

    fn job(&self) -> Value {
        self.cluster
            .get("mxjobs", "default", "job")
            .unwrap()
            .value()
            .clone()
    }

    /// A pod of the job.
    fn pod(&self, name: &str) -> Value {
        let index = name.rsplit('-').next().unwrap();
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "default",
                "labels": {
                    "training.kubeflow.org/operator-name": "mxjob-controller",
                    "training.kubeflow.org/replica-type": "worker",
                    "training.kubeflow.org/replica-index": index,
                },
                "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "job",
                    "uid": self.job()["metadata"]["uid"], "controller": true}],
            },
            "spec": {"containers": [{"name": "mxnet", "image": "i"}]},
        })
    }

    /// A child of the job that is no pod.
    fn child(&self, kind: &str, name: &str) -> Value {
        let mut child = self.pod(name);
        child["kind"] = json!(kind);
        child["spec"] = match kind {
            "Service" => json!({"clusterIP": "None"}),
            _ => Value::Null,
        };
        child
    }

    /// A pod of the job whose environment refers to [`SHARED`], and ends as that of rank 0.
    fn sharing_pod(&self, name: &str) -> Value {
        let mut pod = self.pod(name);
        let container = &mut pod["spec"]["containers"][0];
        container["envFrom"] = json!([{"configMapRef": {"name": SHARED}}]);
        container["env"] = json!([{"name": "MX_CONFIG", "value": "$(MX_CONFIG)0}}"}]);
        pod
    }

    async fn create(&self, name: &str) {
        self.operator("POST", PODS, self.pod(name)).await;
    }

    /// Writes that a pod has succeeded, as its node does.
    async fn succeed(&self, name: &str) {
        let path = format!("{PODS}/{name}/status");
        let status = json!({"status": {"phase": "Succeeded"}});
        self.user("PATCH", &path, status).await;
    }

    async fn status(&self, status: Value) {
        let path = format!("{JOBS}/job/status");
        self.operator("PATCH", &path, json!({"status": status})).await;
    }

    /// Has the operator watch pods from this version on. Nobody reads what it is told.
    async fn watch(&self, version: u64) {
        let path = format!("/api/v1/pods?watch=true&resourceVersion={version}");
        let request = request(Method::GET, &path, &Value::Null);
        // A call with a fault fails.
        let _ = self.operator.send(request.map(Into::into)).await;
    }

    async fn wait_past_allowed_staleness() {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }

    fn violated(&self) -> Vec<&'static str> {
        self.monitor.violations().iter().map(|v| v.id).collect()
    }
}

const JOBS: &str = "/apis/kubeflow.org/v1/namespaces/default/mxjobs";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The name of a ConfigMap that the compact job's pods may share.
const SHARED: &str = "job-env-0123456789abcdef";

fn condition(condition_type: &str) -> Value {
    json!({"type": condition_type, "status": "True"})
}

#[tokio::test(start_paused = true)]
async fn a_correct_operator_violates_nothing() {
    let bench = Bench::new().await;
    bench.create("job-worker-0").await;
    bench.create("job-worker-1").await;
    let status = json!({"startTime": "2030-01-01T00:00:00Z", "conditions": [condition("Running")],
        "replicaStatuses": {"Worker": {"active": 2}}});
    bench.status(status).await;
    assert!(bench.violated().is_empty(), "{:?}", bench.monitor.violations());
}

#[tokio::test(start_paused = true)]
async fn i1_a_second_pod_of_a_rank() {
    let bench = Bench::new().await;
    bench.create("job-worker-0").await;
    let mut twin = bench.pod("job-worker-1");
    twin["metadata"]["labels"]["training.kubeflow.org/replica-index"] = json!("0");
    bench.operator("POST", PODS, twin).await;
    assert_eq!(bench.violated(), ["I1"]);
}

#[tokio::test(start_paused = true)]
async fn i2_a_pod_beyond_the_replicas() {
    let bench = Bench::new().await;
    bench.create("job-worker-2").await;
    assert_eq!(bench.violated(), ["I2"]);
}

#[tokio::test(start_paused = true)]
async fn i2_children_of_the_other_layout() {
    let (service, map) = ("job-hosts", SHARED);
    let plain = Bench::new().await;
    plain
        .operator("POST", SERVICES, plain.child("Service", service))
        .await;
    plain.operator("POST", MAPS, plain.child("ConfigMap", map)).await;
    assert_eq!(plain.violated(), ["I2", "I2"]);
    let compact = Bench::compact().await;
    compact
        .operator("POST", SERVICES, compact.child("Service", service))
        .await;
    compact
        .operator("POST", MAPS, compact.child("ConfigMap", map))
        .await;
    assert_eq!(compact.violated(), [""; 0]);
    compact
        .operator("POST", SERVICES, compact.child("Service", "job-worker-0"))
        .await;
    compact
        .operator("POST", MAPS, compact.child("ConfigMap", "job-env"))
        .await;
    assert_eq!(compact.violated(), ["I2", "I2"]);
}

#[tokio::test(start_paused = true)]
async fn i3_a_finished_job_that_runs_again_and_a_pod_after_its_end() {
    let bench = Bench::new().await;
    bench.create("job-worker-1").await;
    bench.succeed("job-worker-1").await;
    bench
        .status(json!({"conditions": [condition("Succeeded")]}))
        .await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    bench.create("job-worker-0").await;
    bench.status(json!({"conditions": [condition("Running")]})).await;
    assert_eq!(bench.violated(), ["I3", "I3"]);
}

#[tokio::test(start_paused = true)]
async fn i4_a_succeeded_replica_that_runs_again() {
    let bench = Bench::new().await;
    bench.create("job-worker-0").await;
    let path = format!("{PODS}/job-worker-0");
    bench.succeed("job-worker-0").await;
    bench
        .status(json!({"recovery": {"completed": {"Worker": "0"}}}))
        .await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    bench
        .user("DELETE", &path, json!({"gracePeriodSeconds": 0}))
        .await;
    bench.create("job-worker-0").await;
    assert_eq!(bench.violated(), ["I4"]);
}

#[tokio::test(start_paused = true)]
async fn i5_a_pod_of_a_deleted_job() {
    let bench = Bench::new().await;
    let pod = bench.pod("job-worker-0");
    bench.user("DELETE", &format!("{JOBS}/job"), json!({})).await;
    Bench::wait_past_allowed_staleness().await;
    bench.operator("POST", PODS, pod).await;
    assert_eq!(bench.violated(), ["I5"]);
}

#[tokio::test(start_paused = true)]
async fn i6_a_delete_that_names_no_uid_and_a_foreign_object() {
    let bench = Bench::new().await;
    let mut foreign = bench.pod("foreign");
    foreign["metadata"]["ownerReferences"] = json!(null);
    bench.user("POST", PODS, foreign).await;
    let uid = bench.cluster.get("pods", "default", "foreign").unwrap().value()["metadata"]["uid"].clone();
    let options = json!({"preconditions": {"uid": uid}, "gracePeriodSeconds": 0});
    bench
        .operator("DELETE", &format!("{PODS}/foreign"), options)
        .await;
    // One change marks it, another one removes it.
    assert_eq!(bench.violated(), ["I6", "I6"]);
    bench.create("job-worker-0").await;
    bench
        .operator("DELETE", &format!("{PODS}/job-worker-0"), json!({}))
        .await;
    assert!(!bench.network.deletes_without_uid().is_empty());
}

#[tokio::test(start_paused = true)]
async fn i6_a_patch_that_names_no_uid_or_changes_more_than_labels() {
    let bench = Bench::new().await;
    bench.create("job-worker-0").await;
    let pod = bench.cluster.get("pods", "default", "job-worker-0").unwrap();
    let uid = &pod.value()["metadata"]["uid"];
    for (uid, change, violated) in [
        (uid, json!({"labels": {"a": "b"}}), 0),
        (&Value::Null, json!({"labels": {"a": "c"}}), 1),
        (uid, json!({"annotations": {"a": "b"}}), 1),
    ] {
        let before = bench.violated().len();
        let mut meta = change;
        if !uid.is_null() {
            meta["uid"] = uid.clone();
        }
        let patch = json!({ "metadata": meta });
        bench
            .operator("PATCH", &format!("{PODS}/job-worker-0"), patch)
            .await;
        assert_eq!(
            bench.violated().len() - before,
            violated,
            "{:?}",
            bench.violated()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn i9_a_pod_that_is_created_again_and_again() {
    let bench = Bench::new().await;
    let now = json!({"gracePeriodSeconds": 0});
    for _ in 0..13 {
        bench.create("job-worker-0").await;
        bench
            .user("DELETE", &format!("{PODS}/job-worker-0"), now.clone())
            .await;
    }
    assert_eq!(bench.violated(), ["I9"]);
}

#[tokio::test(start_paused = true)]
async fn i10_counters_that_fall_and_conditions_that_contradict() {
    let bench = Bench::new().await;
    bench
        .status(json!({"restartCount": 2, "startTime": "2030-01-01T00:00:00Z"}))
        .await;
    bench.status(json!({"restartCount": 1})).await;
    bench.status(json!({"startTime": "2030-01-01T00:00:01Z"})).await;
    bench
        .status(json!({"conditions": [condition("Running"), condition("Failed")]}))
        .await;
    assert_eq!(bench.violated(), ["I10", "I10", "I10"]);
}

#[tokio::test(start_paused = true)]
async fn i10_more_replicas_than_there_are() {
    let bench = Bench::new().await;
    bench
        .status(json!({"replicaStatuses": {"Worker": {"active": 2, "failed": 1}}}))
        .await;
    assert_eq!(bench.violated(), ["I10"]);
}

#[tokio::test(start_paused = true)]
async fn i10_successes_that_never_happened() {
    let bench = Bench::new().await;
    bench.create("job-worker-0").await;
    bench.create("job-worker-1").await;
    let completed = |workers: &str| json!({"recovery": {"completed": {"Worker": workers}}});
    let succeeded = json!({"conditions": [condition("Succeeded")]});
    bench.status(succeeded.clone()).await;
    assert_eq!(bench.violated(), ["I10"]);
    bench.succeed("job-worker-0").await;
    bench.status(completed("0")).await;
    assert_eq!(bench.violated(), ["I10"], "this one succeeded");
    bench.status(completed("0-1")).await;
    assert_eq!(bench.violated(), ["I10", "I10"]);
}

#[tokio::test(start_paused = true)]
async fn i11_a_deletion_without_a_reason() {
    let bench = Bench::new().await;
    bench.create("job-worker-0").await;
    let uid = bench
        .cluster
        .get("pods", "default", "job-worker-0")
        .unwrap()
        .value()["metadata"]["uid"]
        .clone();
    let options = json!({"preconditions": {"uid": uid}});
    bench
        .operator("DELETE", &format!("{PODS}/job-worker-0"), options)
        .await;
    assert_eq!(bench.violated(), ["I11"]);
}

#[tokio::test(start_paused = true)]
async fn i11_a_map_that_is_deleted_while_the_job_runs() {
    let bench = Bench::compact().await;
    bench
        .operator("POST", MAPS, bench.child("ConfigMap", SHARED))
        .await;
    let map = bench.cluster.get("configmaps", "default", SHARED).unwrap();
    let options = json!({"preconditions": {"uid": map.value()["metadata"]["uid"]}});
    bench
        .operator("DELETE", &format!("{MAPS}/{SHARED}"), options)
        .await;
    assert_eq!(bench.violated(), ["I11"]);
}

#[tokio::test(start_paused = true)]
async fn i13_a_pod_whose_environment_is_not_there() {
    let bench = Bench::compact().await;
    bench
        .operator("POST", PODS, bench.sharing_pod("job-worker-0"))
        .await;
    assert_eq!(bench.violated(), ["I13"], "it never was");
    bench
        .operator("POST", MAPS, bench.child("ConfigMap", SHARED))
        .await;
    bench
        .operator("POST", PODS, bench.sharing_pod("job-worker-1"))
        .await;
    assert_eq!(bench.violated(), ["I13"], "this one is");
    let now = json!({"gracePeriodSeconds": 0});
    bench.user("DELETE", &format!("{MAPS}/{SHARED}"), json!({})).await;
    bench.user("DELETE", &format!("{PODS}/job-worker-0"), now).await;
    Bench::wait_past_allowed_staleness().await;
    bench
        .operator("POST", PODS, bench.sharing_pod("job-worker-0"))
        .await;
    assert_eq!(bench.violated(), ["I13", "I13"], "it is gone for long");
}

#[tokio::test(start_paused = true)]
async fn i18_a_watch_that_is_not_renewed_in_time() {
    let bench = Bench::new().await;
    let known = bench.cluster.resource_version();
    bench.create("job-worker-0").await;
    bench.watch(known).await;
    Bench::wait_past_allowed_staleness().await;
    bench.watch(bench.cluster.resource_version()).await;
    assert_eq!(bench.violated(), [""; 0], "there is no news");
    bench.watch(known).await;
    assert_eq!(bench.violated(), ["I18"]);
    bench.network.fail_next("watch", "pods", 1, CallFault::Reset);
    bench.watch(known).await;
    bench.watch(known).await;
    assert_eq!(bench.violated(), ["I18"], "the network is to blame");
    Bench::wait_past_allowed_staleness().await;
    bench.watch(known).await;
    assert_eq!(bench.violated(), ["I18", "I18"], "not for so long");
}

#[tokio::test(start_paused = true)]
async fn at_rest_a_job_has_what_it_asks_for() {
    let bench = Bench::new().await;
    let ids = || -> Vec<&str> {
        let problems = SettledCluster::read(&bench.cluster).problems();
        problems.into_iter().map(|(id, _)| id).collect()
    };
    assert_eq!(ids(), ["I7"], "it has no pods");
    for name in ["job-worker-0", "job-worker-1"] {
        bench.create(name).await;
        bench
            .operator("POST", SERVICES, bench.child("Service", name))
            .await;
        let path = format!("{PODS}/{name}/status");
        bench
            .user("PATCH", &path, json!({"status": {"phase": "Running"}}))
            .await;
    }
    let running = json!({"conditions": [condition("Running")], "replicaStatuses": {"Worker": {"active": 2}}});
    bench.status(running).await;
    assert!(
        ids().is_empty(),
        "{:?}",
        SettledCluster::read(&bench.cluster).problems()
    );
    bench
        .status(json!({"replicaStatuses": {"Worker": {"active": 1}}}))
        .await;
    assert_eq!(ids(), ["I10"], "the counts are wrong");
    let ended = json!({"conditions": [condition("Succeeded")]});
    bench.status(ended).await;
    assert_eq!(ids(), ["I7"], "its pods run on");
}

#[tokio::test(start_paused = true)]
async fn at_rest_a_compact_job_has_what_it_asks_for() {
    let bench = Bench::compact().await;
    let problem = || -> String {
        let mut problems = SettledCluster::read(&bench.cluster).problems();
        problems
            .pop()
            .map_or_else(String::new, |(id, what)| format!("{id} {what}"))
    };
    for name in ["job-worker-0", "job-worker-1"] {
        bench.operator("POST", PODS, bench.sharing_pod(name)).await;
        let running = json!({"status": {"phase": "Running"}});
        bench
            .user("PATCH", &format!("{PODS}/{name}/status"), running)
            .await;
    }
    let running = json!({"conditions": [condition("Running")], "replicaStatuses": {"Worker": {"active": 2}}});
    bench.status(running).await;
    assert_eq!(problem(), "I7 MXJob job: service job-hosts is missing");
    bench
        .operator("POST", SERVICES, bench.child("Service", "job-hosts"))
        .await;
    assert_eq!(problem(), format!("I7 MXJob job: ConfigMap {SHARED} is missing"));
    bench
        .operator("POST", MAPS, bench.child("ConfigMap", SHARED))
        .await;
    assert_eq!(problem(), "");
    let data = json!({"data": {"MX_CONFIG": "{\"cluster\":{},\"task\":{\"index\":"}});
    bench.user("PATCH", &format!("{MAPS}/{SHARED}"), data).await;
    assert_eq!(problem(), "I13 MXJob job: two pods are {\"index\":0}");
    for name in ["job-worker-0", "job-worker-1"] {
        bench.succeed(name).await;
    }
    bench
        .status(json!({"conditions": [condition("Succeeded")]}))
        .await;
    assert_eq!(
        problem(),
        format!("I7 MXJob job: {SHARED} is left, though no pod runs")
    );
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_left_of_a_deleted_job_and_ranks_differ() {
    let bench = Bench::new().await;
    let mut orphan = bench.pod("orphan");
    for n in 0..2 {
        let mut pod = bench.pod(&format!("job-worker-{n}"));
        let config = json!({"cluster": {"worker": n}, "task": {"type": "worker", "index": n}});
        pod["spec"]["containers"][0]["env"] = json!([{"name": "MX_CONFIG", "value": config.to_string()}]);
        bench.operator("POST", PODS, pod).await;
    }
    let problems = SettledCluster::read(&bench.cluster).problems();
    assert!(problems.iter().any(|(id, _)| *id == "I13"), "{problems:?}");
    orphan["metadata"]["ownerReferences"][0]["uid"] = json!("gone");
    let settled = SettledCluster::new(Vec::new(), vec![orphan], Vec::new(), Vec::new());
    assert_eq!(settled.problems()[0].0, "I5");
}
