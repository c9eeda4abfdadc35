//! A cluster, its nodes and operators that may die.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Api, Client, discovery::ApiResource};
use kube_memory::{Backup, Cluster, Description, Versions};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use training_job::controller::Clock;
use training_job::{Operator, Options};
use training_job_mxnet::MXJob;
use training_job_tensorflow::TFJob;
use training_job_xgboost::XGBoostJob;

use crate::history::History;
use crate::invariants::{Monitor, Patience};
use crate::job::{self, Kind};
use crate::kubelet::{self, Fate, Nodes, Script};
use crate::network::Network;

/// 2030-01-01T00:00:00Z.
const START: i64 = 1_893_456_000;

/// A clock that follows Tokio's, and may be set to another time than it.
#[derive(Clone)]
struct Virtual {
    start: Instant,
    /// Seconds that it is ahead.
    ahead: Arc<AtomicI64>,
}

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        let second = START + self.ahead.load(Ordering::Relaxed);
        Timestamp::from_second(second).unwrap_or_default() + self.start.elapsed()
    }
}

/// How a world is made.
pub struct Setup {
    /// What becomes of pods.
    pub script: Script,
    /// Whether operators take on all kinds of jobs, or MXJobs alone.
    pub all_kinds: bool,
    /// How many jobs an operator works on at once.
    pub concurrency: usize,
    /// How old what operators act on may be.
    pub patience: Patience,
}

impl Setup {
    /// MXJobs alone, sixteen at once, and pods of this script. Tests name what each fault must lead to; what it may
    /// excuse is the random runs' to say.
    pub fn of(script: impl Fn(&str, u32) -> Fate + Send + Sync + 'static) -> Self {
        Self {
            script: Box::new(script),
            all_kinds: false,
            concurrency: 16,
            patience: Patience {
                others: 600_000,
                own: 0,
            },
        }
    }
}

/// An operator that runs.
struct Running {
    task: JoinHandle<()>,
    dead: Arc<AtomicBool>,
}

/// Lives through this on a clock that goes on only when nothing is left to be done.
///
/// # Panics
/// If Tokio cannot make a runtime.
pub fn on_paused_clock<F: Future>(life: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(life)
}

/// A cluster, its nodes and operators.
pub struct World {
    /// The cluster.
    pub cluster: Cluster,
    /// What the operators' calls go through.
    pub network: Network,
    /// A client of users, whose calls nothing disturbs.
    pub user: Client,
    /// What happened.
    pub history: History,
    /// What must never happen and did.
    pub monitor: Monitor,
    /// The operators' clock.
    clock: Virtual,
    all_kinds: bool,
    concurrency: usize,
    running: BTreeMap<usize, Running>,
    panicked: bool,
    nodes: Nodes,
    backup: Option<Backup>,
    restored: bool,
}

impl World {
    /// A cluster with nodes and an operator.
    pub fn new(script: impl Fn(&str, u32) -> Fate + Send + Sync + 'static) -> Self {
        let mut world = Self::without_operator(script);
        world.start();
        world
    }

    /// A cluster with nodes.
    pub fn without_operator(script: impl Fn(&str, u32) -> Fate + Send + Sync + 'static) -> Self {
        Self::with(Setup::of(script))
    }

    /// A cluster with nodes, made as `setup` says.
    pub fn with(setup: Setup) -> Self {
        let history = History::default();
        let clock = || Virtual {
            start: history.start(),
            ahead: Arc::default(),
        };
        let of_cluster = clock();
        let clock = clock();
        let cluster = Cluster::builder()
            .clock(move || of_cluster.now())
            .bookmark_interval(Some(Duration::from_secs(60)))
            .build();
        let kinds = [Kind::Train, Kind::Boost, Kind::Flow];
        for kind in &kinds[..if setup.all_kinds { 3 } else { 1 }] {
            let [name, plural, ..] = kind.words();
            cluster.install(Description::new("kubeflow.org", "v1", name, plural).with_status());
        }
        let network = Network::new(&cluster, history.clone());
        let monitor = Monitor::attach(&cluster, &network, &history, setup.patience);
        let nodes = Nodes::default();
        tokio::spawn(nodes.clone().run(cluster.clone(), setup.script));
        Self {
            network,
            user: cluster.client("default"),
            cluster,
            history,
            monitor,
            clock,
            all_kinds: setup.all_kinds,
            concurrency: setup.concurrency,
            running: BTreeMap::new(),
            panicked: false,
            nodes,
            backup: None,
            restored: false,
        }
    }

    /// Starts an operator with an empty memory, and returns its number.
    pub fn start(&mut self) -> usize {
        let all_kinds = self.all_kinds;
        self.start_as(move |client, options| {
            let mut operator = Operator::new(client, options).manage::<MXJob>();
            if all_kinds {
                operator = operator.manage::<XGBoostJob>().manage::<TFJob>();
            }
            operator.run()
        })
    }

    /// Starts an operator that is made and run by `life`, which does not end.
    pub fn start_as<F>(&mut self, life: impl FnOnce(Client, Options) -> F) -> usize
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (client, number, dead) = self.network.connect();
        let options = Options {
            clock: Arc::new(self.clock.clone()),
            concurrency: self.concurrency,
            ..Options::default()
        };
        let task = tokio::spawn(life(client, options));
        self.history.note(format_args!("op{number} starts"));
        self.running.insert(number, Running { task, dead });
        number
    }

    /// Kills all operators.
    pub async fn kill(&mut self) {
        for number in self.running.keys().copied().collect::<Vec<_>>() {
            self.kill_one(number).await;
        }
    }

    /// Kills an operator, and returns whether it was there.
    pub async fn kill_one(&mut self, number: usize) -> bool {
        let Some(Running { task, dead }) = self.running.remove(&number) else {
            return false;
        };
        dead.store(true, Ordering::Relaxed);
        task.abort();
        self.history.note(format_args!("op{number} is killed"));
        // It never ends by itself.
        self.panicked |= !task.await.is_err_and(|error| error.is_cancelled());
        true
    }

    /// How many operators run.
    pub fn operators(&self) -> usize {
        self.running.len()
    }

    /// Whether an operator ended though nobody killed it.
    pub fn has_panicked(&self) -> bool {
        self.panicked || self.running.values().any(|r| r.task.is_finished())
    }

    /// Whether pods are about to do something by themselves.
    pub fn is_busy(&self) -> bool {
        self.nodes.are_busy()
    }

    /// Sets the operators' clocks so many seconds ahead of the cluster's.
    pub fn set_clock(&self, ahead: i64) {
        self.clock.ahead.store(ahead, Ordering::Relaxed);
    }

    /// Makes a backup of the cluster, instead of one made before.
    pub fn back_up(&mut self) {
        self.backup = Some(self.cluster.back_up());
    }

    /// Sets the cluster back to its backup, if there is one.
    pub fn restore(&mut self, versions: Versions) {
        if let Some(backup) = &self.backup {
            self.cluster.restore(backup, versions);
            self.monitor.restored(&self.cluster, self.history.now());
            self.nodes.restored();
            self.restored = true;
        }
    }

    /// Whether it was ever set back.
    pub fn was_restored(&self) -> bool {
        self.restored
    }

    /// Lets this many seconds pass.
    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// As [`pass`](Self::pass); an operator that dies meanwhile is replaced.
    pub async fn pass_with_deaths(&mut self, seconds: u64) {
        self.until(Instant::now() + Duration::from_secs(seconds)).await;
    }

    /// Lets time pass until then; an operator that dies meanwhile is replaced.
    pub async fn until(&mut self, end: Instant) {
        loop {
            let dead = tokio::select! {
                biased;
                dead = self.network.died() => dead,
                () = tokio::time::sleep_until(end) => return,
            };
            for number in dead {
                if self.kill_one(number).await {
                    self.start();
                }
            }
        }
    }

    /// Makes a job.
    ///
    /// # Panics
    /// If the cluster refuses.
    pub async fn create(&self, job: Value) {
        let job: DynamicObject = serde_json::from_value(job).unwrap();
        self.jobs().create(&PostParams::default(), &job).await.unwrap();
    }

    /// Merges `patch` into a job.
    ///
    /// # Panics
    /// If the cluster refuses.
    pub async fn edit(&self, name: &str, patch: Value) {
        self.jobs()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// Deletes a job.
    ///
    /// # Panics
    /// If the cluster refuses.
    pub async fn delete(&self, name: &str) {
        self.jobs()
            .delete(name, &DeleteParams::background())
            .await
            .unwrap();
    }

    /// The users' MXJobs.
    pub fn jobs(&self) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("kubeflow.org", "v1", "MXJob"),
            "mxjobs",
        );
        Api::default_namespaced_with(self.user.clone(), &kind)
    }

    /// The users' pods.
    pub fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.user.clone())
    }

    /// Deletes a pod.
    ///
    /// # Panics
    /// If the cluster refuses.
    pub async fn delete_pod(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// An object as it is stored.
    pub fn stored(&self, resource: &str, name: &str) -> Value {
        self.cluster
            .get(resource, "default", name)
            .map_or(Value::Null, |o| o.value().clone())
    }

    /// The status of an MXJob.
    pub fn status(&self, job: &str) -> Value {
        self.stored("mxjobs", job)["status"].clone()
    }

    /// The job's conditions in order, as `Created Running=False Succeeded`.
    pub fn conditions(&self, job: &str) -> String {
        let Some(job) = self.cluster.get("mxjobs", "default", job) else {
            return String::new();
        };
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let word = |c: &Value| match &c["status"] {
            status if status == "True" => text(&c["type"]),
            status => format!("{}={}", text(&c["type"]), text(status)),
        };
        job::conditions(&*job).map(word).collect::<Vec<_>>().join(" ")
    }

    /// All pods, as `job-worker-0:Running`, with `+1` behind the name for attempt 1, and `!` if terminating.
    pub fn pods_now(&self) -> Vec<String> {
        let text = |pod: &Value| {
            let attempt = match kubelet::attempt(pod) {
                0 => String::new(),
                n => format!("+{n}"),
            };
            let deleting = if job::is_deleting(pod) { "!" } else { "" };
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            format!("{name}{attempt}:{}{deleting}", job::phase(pod))
        };
        let pods = self.cluster.list("pods", None);
        pods.iter().map(|o| text(o.value())).collect()
    }

    /// The names of all services.
    pub fn services_now(&self) -> Vec<String> {
        let objects = self.cluster.list("services", None);
        let name = |o: &Value| o["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        objects.iter().map(|o| name(o.value())).collect()
    }

    /// The reasons of all events, in the order of their creation.
    pub fn events(&self) -> Vec<String> {
        let mut events = self.cluster.list("events", None);
        events.sort_by_key(|e| e.resource_version());
        let reason = |o: &Value| o["reason"].as_str().unwrap_or_default().to_owned();
        events.iter().map(|e| reason(e.value())).collect()
    }

    /// Whether nothing happened that must never happen.
    ///
    /// # Panics
    /// If something did.
    pub fn check(&self) {
        let found = self.monitor.found();
        assert!(found.is_empty(), "{found:#?}");
        assert!(!self.has_panicked(), "the operator ended");
    }
}

/// A training with so many replicas of each role, all of restart policy ExitCode.
pub fn train(name: &str, roles: &[(&str, i32)]) -> Value {
    job::of(Kind::Train, name, roles, "ExitCode")
}

/// One scheduler, one server and two workers.
pub const SMALL: [(&str, i32); 3] = [("Scheduler", 1), ("Server", 1), ("Worker", 2)];

/// `job` with `patch` merged into its spec.
pub fn with(mut job: Value, patch: Value) -> Value {
    merge(&mut job["spec"], patch);
    job
}

fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key).or_insert(json!(null)), value);
            }
        }
        (into, patch) => *into = patch,
    }
}
