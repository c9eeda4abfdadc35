//! A cluster, its nodes and an operator that may die.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Api, Client, discovery::ApiResource};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use training_job::controller::Clock;
use training_job::memory::{Change, Cluster, Description, View};
use training_job::{Operator, Options};
use training_job_mxnet::MXJob;

use super::kubelet::{self, Fate};
use super::network::Network;

/// 2030-01-01T00:00:00Z.
const START: i64 = 1_893_456_000;

/// A clock that follows Tokio's.
#[derive(Clone, Copy)]
pub(crate) struct Virtual(Instant);

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(START).unwrap() + self.0.elapsed()
    }
}

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) network: Network,
    /// A client of users, whose calls nothing disturbs.
    pub(crate) user: Client,
    clock: Virtual,
    running: Option<(JoinHandle<()>, Arc<AtomicBool>)>,
    /// What must never happen and did.
    broken: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// A cluster with nodes and an operator.
    pub(crate) fn new(script: impl Fn(&str, u32) -> Fate + Send + Sync + 'static) -> Self {
        let mut world = Self::without_operator(script);
        world.start();
        world
    }

    pub(crate) fn without_operator(script: impl Fn(&str, u32) -> Fate + Send + Sync + 'static) -> Self {
        let clock = Virtual(Instant::now());
        let cluster = Cluster::with_clock(move || clock.now());
        cluster.install(Description::new("kubeflow.org", "v1", "MXJob", "mxjobs").with_status());
        let broken = Arc::new(Mutex::new(Vec::new()));
        let found = broken.clone();
        cluster.on_change(move |view, change| {
            if let Some(problem) = violation(view, change) {
                found.lock().unwrap().push(problem);
            }
        });
        tokio::spawn(kubelet::run(cluster.clone(), Box::new(script)));
        Self {
            network: Network::new(&cluster),
            user: cluster.client("default"),
            cluster,
            clock,
            running: None,
            broken,
        }
    }

    /// Starts an operator with an empty memory.
    pub(crate) fn start(&mut self) {
        let (client, dead) = self.network.connect();
        let options = Options {
            clock: Arc::new(self.clock),
            ..Options::default()
        };
        let operator = Operator::new(client, options).manage::<MXJob>();
        self.running = Some((tokio::spawn(operator.run()), dead));
    }

    /// Kills the operator.
    pub(crate) async fn kill(&mut self) {
        let (task, dead) = self.running.take().unwrap();
        dead.store(true, Ordering::Relaxed);
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled(), "the operator panicked");
    }

    /// Lets this many seconds pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// As [`pass`](Self::pass); an operator that dies meanwhile is replaced.
    pub(crate) async fn pass_with_deaths(&mut self, seconds: u64) {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            tokio::select! {
                biased;
                () = self.network.died() => {}
                () = tokio::time::sleep_until(end) => return,
            }
            self.kill().await;
            self.start();
        }
    }

    pub(crate) async fn create(&self, job: Value) {
        let job: DynamicObject = serde_json::from_value(job).unwrap();
        self.jobs().create(&PostParams::default(), &job).await.unwrap();
    }

    /// Merges `patch` into a job.
    pub(crate) async fn edit(&self, name: &str, patch: Value) {
        self.jobs()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.jobs()
            .delete(name, &DeleteParams::background())
            .await
            .unwrap();
    }

    pub(crate) fn jobs(&self) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("kubeflow.org", "v1", "MXJob"),
            "mxjobs",
        );
        Api::default_namespaced_with(self.user.clone(), &kind)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.user.clone())
    }

    pub(crate) async fn delete_pod(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// An object as it is stored.
    pub(crate) fn stored(&self, resource: &str, name: &str) -> Value {
        self.cluster
            .get(resource, "default", name)
            .map_or(Value::Null, |o| o.value().clone())
    }

    pub(crate) fn status(&self, job: &str) -> Value {
        self.stored("mxjobs", job)["status"].clone()
    }

    /// The job's conditions in order, as `Created Running=False Succeeded`.
    pub(crate) fn conditions(&self, job: &str) -> String {
        let status = self.status(job);
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let word = |c: &Value| match c["status"].as_str().unwrap() {
            "True" => c["type"].as_str().unwrap().to_owned(),
            other => format!("{}={other}", c["type"].as_str().unwrap()),
        };
        conditions.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    /// All pods, as `job-worker-0:Running`, with `+1` behind the name for attempt 1, and `!` if terminating.
    pub(crate) fn pods_now(&self) -> Vec<String> {
        let text = |pod: &Value| {
            let attempt = match kubelet::attempt(pod) {
                0 => String::new(),
                n => format!("+{n}"),
            };
            let deleting = if pod["metadata"]["deletionTimestamp"].is_null() {
                ""
            } else {
                "!"
            };
            let phase = pod["status"]["phase"].as_str().unwrap_or("Pending");
            format!(
                "{}{attempt}:{phase}{deleting}",
                pod["metadata"]["name"].as_str().unwrap()
            )
        };
        self.cluster
            .list("pods", None)
            .iter()
            .map(|o| text(o.value()))
            .collect()
    }

    pub(crate) fn services_now(&self) -> Vec<String> {
        let objects = self.cluster.list("services", None);
        objects
            .iter()
            .map(|o| o.value()["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The reasons of all events, in the order of their creation.
    pub(crate) fn events(&self) -> Vec<String> {
        let mut events = self.cluster.list("events", None);
        events.sort_by_key(|e| e.resource_version());
        events
            .iter()
            .map(|e| e.value()["reason"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Whether nothing happened that must never happen.
    pub(crate) fn check(&self) {
        let broken = self.broken.lock().unwrap();
        assert!(broken.is_empty(), "{broken:#?}");
        if let Some((task, _)) = &self.running {
            assert!(!task.is_finished(), "the operator ended");
        }
    }
}

/// What a change breaks that may never be broken.
fn violation(view: &View<'_>, change: &Change) -> Option<String> {
    let object = change.object().value();
    let finished = |job: &Value| {
        let conditions = job["status"]["conditions"].as_array();
        conditions.into_iter().flatten().find_map(|c| {
            let ended = matches!(c["type"].as_str(), Some("Succeeded" | "Failed")) && c["status"] == "True";
            ended.then(|| c["type"].to_string())
        })
    };
    match (change.plural(), change.action().as_str()) {
        ("pods" | "services", "ADDED") => {
            let owner = object.pointer("/metadata/ownerReferences/0/uid")?.as_str()?;
            let job = view.by_uid(owner)?;
            // A job that failed for its spec alone may begin when that is mended.
            job.value()["status"]["startTime"].as_str()?;
            let end = finished(job.value())?;
            Some(format!(
                "{} {} was created after the end: {end}",
                change.kind(),
                change.name()
            ))
        }
        ("mxjobs", "MODIFIED") => {
            let before = change.previous()?.value();
            let (old, new) = (
                &before["status"]["restartCount"],
                &object["status"]["restartCount"],
            );
            if new.as_i64().unwrap_or(0) < old.as_i64().unwrap_or(0) {
                return Some(format!("restartCount fell from {old} to {new}"));
            }
            let end = finished(before).filter(|_| !before["status"]["startTime"].is_null())?;
            (finished(object).as_ref() != Some(&end)).then(|| format!("{end} was taken back"))
        }
        _ => None,
    }
}

/// A job with so many replicas of each role, all of restart policy ExitCode.
pub(crate) fn train(name: &str, roles: &[(&str, i32)]) -> Value {
    let replica = |n: &i32| {
        json!({
            "replicas": n, "restartPolicy": "ExitCode",
            "template": {"spec": {"containers": [{"name": "mxnet", "image": "i"}]}},
        })
    };
    let specs: serde_json::Map<String, Value> = roles
        .iter()
        .map(|(role, n)| ((*role).to_owned(), replica(n)))
        .collect();
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": specs},
    })
}

/// One scheduler, one server and two workers.
pub(crate) const SMALL: [(&str, i32); 3] = [("Scheduler", 1), ("Server", 1), ("Worker", 2)];

/// `job` with `patch` merged into its spec.
pub(crate) fn with(mut job: Value, patch: Value) -> Value {
    merge(&mut job["spec"], patch);
    job
}

fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch,
    }
}
