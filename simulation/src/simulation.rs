//! A simulated cluster: the in-memory API, nodes, and operators that may die.

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
use training_job::{GangScheduler, Operator, Options};

use crate::faults::{ClusterFault, PodFate};
use crate::gang_scheduler::PlayedScheduler;
use crate::history::History;
use crate::invariants::at_rest::SettledCluster;
use crate::invariants::{AllowedStaleness, Monitor};
use crate::job::{self, JobType};
use crate::kubelet::{self, Nodes, PodFates};
use crate::network::Network;

/// 2030-01-01T00:00:00Z.
const START: i64 = 1_893_456_000;

/// A clock that follows Tokio's clock, ahead by an adjustable number of seconds.
#[derive(Clone)]
struct SimulatedClock {
    start: Instant,
    /// The number of seconds that the clock is ahead.
    ahead: Arc<AtomicI64>,
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let second = START + self.ahead.load(Ordering::Relaxed);
        Timestamp::from_second(second).unwrap_or_default() + self.start.elapsed()
    }
}

/// The setup of a simulation.
pub struct Setup {
    /// The fates of pods.
    pub pod_fates: PodFates,
    /// The job types whose kinds the operators manage. [`Simulation::jobs`] and similar methods use the first.
    pub job_types: &'static [JobType],
    /// The number of jobs that an operator reconciles concurrently.
    pub concurrency: usize,
    /// The allowed age of the state that operators act on.
    pub staleness: AllowedStaleness,
    /// The gang scheduler that is configured in the operators, and that binds the pods.
    pub gang_scheduler: Option<GangScheduler>,
}

impl Setup {
    /// Returns a setup with only MXJobs, a concurrency of sixteen, and pods with these fates. The allowed staleness
    /// is large, because tests assert the effects of a fault themselves. Only random runs need a precise limit.
    pub fn mxjobs(pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static) -> Self {
        Self {
            pod_fates: Box::new(pod_fates),
            job_types: JobType::MXJOBS,
            concurrency: 16,
            staleness: AllowedStaleness {
                of_others: 600_000,
                of_own: 0,
            },
            gang_scheduler: None,
        }
    }

    /// Returns the same setup with ToyJobs.
    pub fn toyjobs(pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static) -> Self {
        Self {
            job_types: &[JobType::Toy],
            ..Self::mxjobs(pod_fates)
        }
    }
}

/// A running operator.
struct RunningOperator {
    task: JoinHandle<()>,
    dead: Arc<AtomicBool>,
}

/// Returns the first job type of each kind.
fn of_different_kinds(types: &'static [JobType]) -> impl Iterator<Item = JobType> {
    let is_first = |at: usize, job_type: &JobType| types[..at].iter().all(|t| t.kind() != job_type.kind());
    let kinds = types.iter().enumerate();
    kinds
        .filter(move |(at, job_type)| is_first(*at, job_type))
        .map(|(_, job_type)| *job_type)
}

/// Runs a future on a clock that advances only when every task waits.
///
/// # Panics
/// Panics if Tokio cannot create a runtime.
pub fn on_paused_clock<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

/// A cluster, its nodes and operators.
pub struct Simulation {
    /// The cluster.
    pub cluster: Cluster,
    /// The network between the operators and the cluster.
    pub network: Network,
    /// A client of users, whose calls have no faults.
    pub user: Client,
    /// The log of the run.
    pub history: History,
    /// Checks the invariants at each change.
    pub monitor: Monitor,
    /// The operators' clock.
    clock: SimulatedClock,
    job_types: &'static [JobType],
    concurrency: usize,
    running: BTreeMap<usize, RunningOperator>,
    operator_ended: bool,
    nodes: Nodes,
    gang_scheduler: Option<PlayedScheduler>,
    backup: Option<Backup>,
    restored: bool,
}

impl Simulation {
    /// Creates a cluster with nodes and an operator.
    pub fn new(pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static) -> Self {
        let mut sim = Self::without_operator(pod_fates);
        sim.start();
        sim
    }

    /// Creates a cluster with nodes and no operator.
    pub fn without_operator(pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static) -> Self {
        Self::with_setup(Setup::mxjobs(pod_fates))
    }

    /// Creates a cluster with nodes and this setup.
    pub fn with_setup(setup: Setup) -> Self {
        let history = History::default();
        let clock = || SimulatedClock {
            start: history.start(),
            ahead: Arc::default(),
        };
        let cluster_clock = clock();
        let clock = clock();
        let cluster = Cluster::builder()
            .clock({
                let clock = cluster_clock.clone();
                move || clock.now()
            })
            .bookmark_interval(Some(Duration::from_secs(60)))
            .build();
        for job_type in of_different_kinds(setup.job_types) {
            let (kind, plural) = (job_type.kind(), job_type.plural());
            cluster.install(Description::new("kubeflow.org", "v1", kind, plural).with_status());
            for object in job_type.objects() {
                let kind = object.kind;
                cluster.install_missing(Description::new(kind.group, kind.version, kind.kind, kind.plural));
            }
        }
        let gang_scheduler = setup.gang_scheduler.map(|scheduler| {
            let kind = scheduler.pod_group();
            let groups = Description::new(kind.group, kind.version, kind.kind, kind.plural);
            cluster.install(match scheduler {
                GangScheduler::Volcano => groups,
                _ => groups.with_status(),
            });
            let (played, clock) = (PlayedScheduler::new(scheduler), cluster_clock.clone());
            tokio::spawn(played.clone().run(cluster.clone(), move || clock.now()));
            played
        });
        let network = Network::new(&cluster, history.clone());
        let monitor = Monitor::attach(&cluster, &network, &history, setup.staleness);
        let nodes = Nodes::default();
        let nodes_clock = cluster_clock.clone();
        let run = nodes.clone();
        tokio::spawn(run.run(cluster.clone(), setup.pod_fates, move || nodes_clock.now()));
        Self {
            network,
            user: cluster.client("default"),
            cluster,
            history,
            monitor,
            clock,
            job_types: setup.job_types,
            concurrency: setup.concurrency,
            running: BTreeMap::new(),
            operator_ended: false,
            nodes,
            gang_scheduler,
            backup: None,
            restored: false,
        }
    }

    /// Starts an operator with empty caches, and returns its number.
    pub fn start(&mut self) -> usize {
        let job_types = self.job_types;
        self.start_as(move |client, options| {
            let operator = Operator::new(client, options);
            let kinds = of_different_kinds(job_types);
            kinds
                .fold(operator, |operator, kind| kind.managed_by(operator))
                .run()
        })
    }

    /// Starts an operator with the future that `run` returns. The future must not end.
    pub fn start_as<F>(&mut self, run: impl FnOnce(Client, Options) -> F) -> usize
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (client, number, dead) = self.network.connect();
        let mut options = Options {
            clock: Arc::new(self.clock.clone()),
            concurrency: self.concurrency,
            ..Options::default()
        };
        options.settings.gang_scheduler = self.gang_scheduler().cloned();
        let task = tokio::spawn(run(client, options));
        self.history.note(format_args!("op{number} starts"));
        self.running.insert(number, RunningOperator { task, dead });
        number
    }

    /// Injects a fault.
    pub async fn inject(&mut self, fault: &ClusterFault) {
        match fault {
            ClusterFault::Cut(resource) => {
                self.cluster.cut_watches(*resource);
            }
            ClusterFault::Compact => {
                self.cluster.compact();
                self.cluster.cut_watches(None);
            }
            ClusterFault::Freeze(resource) => {
                self.cluster.freeze_watches(Some(resource));
            }
            ClusterFault::EndWatches(after) => self.network.end_watches(*after),
            ClusterFault::Kill => {
                let operators = self.operators();
                self.kill().await;
                for _ in 0..operators {
                    self.start();
                }
            }
            ClusterFault::SetClock(seconds) => self.set_clock(*seconds),
            ClusterFault::Backup => self.back_up(),
            ClusterFault::Restore => self.restore(Versions::GoOn),
            ClusterFault::Room(pods) => self.set_room(*pods),
        }
    }

    /// Kills all operators.
    pub async fn kill(&mut self) {
        for number in self.running.keys().copied().collect::<Vec<_>>() {
            self.kill_one(number).await;
        }
    }

    /// Kills an operator. Returns true if it was running.
    pub async fn kill_one(&mut self, number: usize) -> bool {
        let Some(RunningOperator { task, dead }) = self.running.remove(&number) else {
            return false;
        };
        dead.store(true, Ordering::Relaxed);
        task.abort();
        self.history.note(format_args!("op{number} is killed"));
        // An operator ends only if it panics or is canceled.
        self.operator_ended |= !task.await.is_err_and(|error| error.is_cancelled());
        true
    }

    /// Returns the number of running operators.
    pub fn operators(&self) -> usize {
        self.running.len()
    }

    /// Returns true if an operator ended without being killed, for example after a panic.
    pub fn has_operator_ended(&self) -> bool {
        self.operator_ended || self.running.values().any(|r| r.task.is_finished())
    }

    /// Returns the number of pods that have not started.
    pub fn pending_pods(&self) -> usize {
        let pods = self.cluster.list("pods", None);
        let pending = pods.iter().filter(|pod| job::phase(pod.value()) == "Pending");
        pending.count()
    }

    /// Returns true if a pod has scheduled steps, or a cycle of the gang scheduler is pending.
    pub fn has_pending_steps(&self) -> bool {
        let is_busy = self.gang_scheduler.as_ref().is_some_and(PlayedScheduler::is_busy);
        self.nodes.have_pending_steps() || is_busy
    }

    /// Returns the gang scheduler of the cluster, if any.
    pub fn gang_scheduler(&self) -> Option<&GangScheduler> {
        self.gang_scheduler.as_ref().map(PlayedScheduler::scheduler)
    }

    /// Sets the capacity of the cluster for pods of gangs, or removes the limit. Bound pods stay bound.
    pub fn set_room(&self, pods: Option<usize>) {
        if let Some(scheduler) = &self.gang_scheduler {
            scheduler.set_room(pods);
        }
    }

    /// Sets the operators' clocks this many seconds ahead of the cluster's clock.
    pub fn set_clock(&self, ahead: i64) {
        self.clock.ahead.store(ahead, Ordering::Relaxed);
    }

    /// Backs up the cluster, and replaces an earlier backup.
    pub fn back_up(&mut self) {
        self.backup = Some(self.cluster.back_up());
    }

    /// Restores the cluster from its backup, if there is one.
    pub fn restore(&mut self, versions: Versions) {
        if let Some(backup) = &self.backup {
            self.cluster.restore(backup, versions);
            self.monitor.on_restored(&self.cluster, self.history.now());
            self.nodes.on_restored();
            if let Some(scheduler) = &self.gang_scheduler {
                scheduler.restart(&self.cluster);
            }
            self.restored = true;
        }
    }

    /// Returns true if the cluster was ever restored from a backup.
    pub fn was_restored(&self) -> bool {
        self.restored
    }

    /// Lets this many seconds pass.
    pub async fn advance(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Lets this many seconds pass, and replaces operators that die in the meantime.
    pub async fn advance_replacing_dead(&mut self, seconds: u64) {
        self.advance_until(Instant::now() + Duration::from_secs(seconds))
            .await;
    }

    /// Lets time pass until `end`, and replaces operators that die in the meantime.
    pub async fn advance_until(&mut self, end: Instant) {
        loop {
            let dead = tokio::select! {
                biased;
                dead = self.network.next_deaths() => dead,
                () = tokio::time::sleep_until(end) => return,
            };
            for number in dead {
                if self.kill_one(number).await {
                    self.start();
                }
            }
        }
    }

    /// Creates a job.
    ///
    /// # Panics
    /// Panics if the cluster rejects the call.
    pub async fn create(&self, job: Value) {
        let job: DynamicObject = serde_json::from_value(job).unwrap();
        self.jobs().create(&PostParams::default(), &job).await.unwrap();
    }

    /// Merges `patch` into a job.
    ///
    /// # Panics
    /// Panics if the cluster rejects the call.
    pub async fn edit(&self, name: &str, patch: Value) {
        self.jobs()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// Merges a patch into the status of a job.
    ///
    /// # Panics
    /// Panics if the cluster rejects the call.
    pub async fn edit_status(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        let edited = self
            .jobs()
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        edited.unwrap();
    }

    /// Deletes a job.
    ///
    /// # Panics
    /// Panics if the cluster rejects the call.
    pub async fn delete(&self, name: &str) {
        self.jobs()
            .delete(name, &DeleteParams::background())
            .await
            .unwrap();
    }

    /// Returns the users' API of jobs.
    pub fn jobs(&self) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("kubeflow.org", "v1", self.job_types[0].kind()),
            self.job_types[0].plural(),
        );
        Api::default_namespaced_with(self.user.clone(), &kind)
    }

    /// Returns the users' API of pods.
    pub fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.user.clone())
    }

    /// Deletes a pod.
    ///
    /// # Panics
    /// Panics if the cluster rejects the call.
    pub async fn delete_pod(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Returns a stored object, or null if it does not exist.
    pub fn stored(&self, resource: &str, name: &str) -> Value {
        self.cluster
            .get(resource, "default", name)
            .map_or(Value::Null, |o| o.value().clone())
    }

    /// Returns the status of a job.
    pub fn status(&self, job: &str) -> Value {
        self.stored(self.job_types[0].plural(), job)["status"].clone()
    }

    /// Returns the job's conditions in order, such as `Created Running=False Succeeded`.
    pub fn conditions(&self, job: &str) -> String {
        let Some(job) = self.cluster.get(self.job_types[0].plural(), "default", job) else {
            return String::new();
        };
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let word = |c: &Value| match &c["status"] {
            status if status == "True" => text(&c["type"]),
            status => format!("{}={}", text(&c["type"]), text(status)),
        };
        job::conditions(&*job).map(word).collect::<Vec<_>>().join(" ")
    }

    /// Returns all pods, such as `job-worker-0:Running`, with `+1` after the name for attempt 1, and `!` if
    /// terminating.
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

    /// Returns the names of all services.
    pub fn services_now(&self) -> Vec<String> {
        let objects = self.cluster.list("services", None);
        let name = |o: &Value| o["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        objects.iter().map(|o| name(o.value())).collect()
    }

    /// Returns the reasons of all events, in the order of their creation.
    pub fn events(&self) -> Vec<String> {
        let mut events = self.cluster.list("events", None);
        events.sort_by_key(|e| e.resource_version());
        let reason = |o: &Value| o["reason"].as_str().unwrap_or_default().to_owned();
        events.iter().map(|e| reason(e.value())).collect()
    }

    /// Returns the state of the cluster, for the checks of a settled cluster.
    pub fn settled(&self) -> SettledCluster {
        SettledCluster::read(&self.cluster).with_gangs(self.gang_scheduler().cloned())
    }

    /// Asserts that no invariant has been violated.
    ///
    /// # Panics
    /// Panics if an invariant was violated, or an operator ended by itself.
    pub fn assert_no_violations(&self) {
        let found = self.monitor.violations();
        assert!(found.is_empty(), "{found:#?}");
        assert!(!self.has_operator_ended(), "the operator ended");
    }
}

/// Returns an MXJob for training with these roles and numbers of replicas, all with restart policy ExitCode.
pub fn train(name: &str, roles: &[(&str, i32)]) -> Value {
    job::new(JobType::Train, name, roles, "ExitCode")
}

/// One scheduler, one server and two workers.
pub const SMALL: [(&str, i32); 3] = [("Scheduler", 1), ("Server", 1), ("Worker", 2)];

/// Merges `patch` into the spec of `job`, and returns the job.
pub fn with_spec(mut job: Value, patch: Value) -> Value {
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
