//! A simulated gang scheduler. It binds all pods of a group together or none of them, in a cluster with a limited
//! capacity for pods. Its triggers and conditions follow the observed behavior of Volcano and the coscheduling
//! plugin.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use kube_memory::{Action, Change, Cluster, Object};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::sleep;
use training_job::GangScheduler;

use crate::world::job;
use crate::world::json::Json;
use crate::world::pod;
use crate::world::{direct, kubelet};

/// The time from a change to the scheduling cycle that handles it.
const CYCLE_DELAY: Duration = Duration::from_secs(1);

/// A simulated gang scheduler. Clones share the same state.
#[derive(Clone)]
pub(crate) struct SimulatedScheduler {
    scheduler: GangScheduler,
    /// The maximum number of bound pods, or `None` for no limit.
    capacity: Arc<Mutex<Option<usize>>>,
    /// The names of the groups that changed since the last cycle.
    changed: Arc<Mutex<BTreeSet<String>>>,
    works: Arc<AtomicBool>,
    notify: Arc<Notify>,
}

impl SimulatedScheduler {
    /// Creates a scheduler with unlimited capacity, which does not run yet.
    pub(crate) fn new(scheduler: GangScheduler) -> Self {
        Self {
            scheduler,
            capacity: Arc::default(),
            changed: Arc::default(),
            works: Arc::default(),
            notify: Arc::default(),
        }
    }

    /// Returns the kind of the scheduler.
    pub(crate) fn scheduler(&self) -> &GangScheduler {
        &self.scheduler
    }

    /// Sets the capacity of the cluster to this many pods. Bound pods stay bound.
    pub(crate) fn set_capacity(&self, pods: Option<usize>) {
        *self.capacity.lock() = pods;
        if self.scheduler == GangScheduler::Volcano {
            self.look_at(None);
        }
    }

    /// Simulates a restart of the scheduler, after which it handles all groups.
    pub(crate) fn restart(&self, cluster: &Cluster) {
        self.look_at(None);
        for group in cluster.list(job::GROUPS, None) {
            self.look_at(Some(&text(&group, "name")));
        }
    }

    /// Returns true if a cycle is pending.
    pub(crate) fn is_busy(&self) -> bool {
        self.works.load(Ordering::Relaxed)
    }

    fn look_at(&self, group: Option<&str>) {
        let mut changed = self.changed.lock();
        changed.extend(group.map(str::to_owned));
        self.works.store(true, Ordering::Relaxed);
        self.notify.notify_one();
    }

    /// Runs forever. `clock` is the cluster's clock.
    pub(crate) async fn run(self, cluster: Cluster, clock: impl Fn() -> Timestamp) {
        let listening = self.clone();
        cluster.on_change(move |_, change| listening.on_change(change));
        loop {
            self.notify.notified().await;
            sleep(CYCLE_DELAY).await;
            // Changes from here on belong to the next cycle.
            self.works.store(false, Ordering::Relaxed);
            let changed = std::mem::take(&mut *self.changed.lock());
            let capacity = *self.capacity.lock();
            let steps = match self.scheduler {
                GangScheduler::Volcano => volcano(&cluster, capacity),
                _ => coscheduling(&cluster, capacity, &changed),
            };
            for step in steps {
                step.carry_out(&cluster, clock()).await;
            }
        }
    }

    /// Marks the groups to handle. Volcano handles all groups in each cycle. Coscheduling handles only groups that
    /// changed or have new pods.
    fn on_change(&self, change: &Change) {
        let object = change.object();
        let is_new = change.action() == Action::Added;
        let group = match change.plural() {
            job::GROUPS => {
                let before = change.previous().filter(|_| !is_new);
                let same = |key| before.is_some_and(|before| before.member(key) == object.member(key));
                let annotations = |group: &Object| Json::meta(group, "annotations").clone();
                let noted = before.is_none_or(|before| annotations(before) != annotations(object));
                (noted || !same("spec")).then(|| text(object, "name"))
            }
            "pods" if is_new => group_of(object),
            "pods" => None,
            _ => return,
        };
        if group.is_some() || self.scheduler == GangScheduler::Volcano {
            self.look_at(group.as_deref());
        }
    }
}

enum Step {
    Bind(Arc<Object>),
    /// Marks the pod as unschedulable.
    Refuse(Arc<Object>),
    /// Sets the phase of a Volcano group.
    SetPhase(Arc<Object>, &'static str),
    /// Reports that a Volcano group waits for capacity. Volcano keeps this condition until the group is deleted.
    SayWhy(Arc<Object>),
}

impl Step {
    /// Carries out the step. It fails if the object is gone, which is harmless.
    async fn carry_out(self, cluster: &Cluster, now: Timestamp) {
        match self {
            Self::Bind(pod) => kubelet::bind(cluster, &text(&pod, "namespace"), &text(&pod, "name")).await,
            Self::Refuse(pod) => {
                let why = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                    "message": "no room for the gang", "lastTransitionTime": now.to_string()});
                let patch = json!({"metadata": {"uid": pod.meta("uid")}, "status": {"conditions": [why]}});
                let path = direct::pod(&text(&pod, "namespace"), &text(&pod, "name"), "/status");
                direct::send(cluster, Method::PATCH, &path, &patch).await;
            }
            Self::SetPhase(group, phase) => {
                write_status(cluster, &group, &json!({"phase": phase})).await;
            }
            Self::SayWhy(group) => {
                let why = json!({"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources",
                    "message": "no room for the gang"});
                write_status(cluster, &group, &json!({"conditions": [why]})).await;
            }
        }
    }
}

async fn write_status(cluster: &Cluster, group: &Object, status: &Value) {
    let patch = json!({"metadata": {"uid": group.meta("uid")}, "status": status});
    let path = direct::path_of(group, job::GROUPS);
    direct::send(cluster, Method::PATCH, &path, &patch).await;
}

/// A group and its pods that have not ended.
struct Gang {
    group: Arc<Object>,
    bound: usize,
    running: usize,
    succeeded: usize,
    /// The unbound pods that are not being deleted.
    waiting: Vec<Arc<Object>>,
}

impl Gang {
    /// Returns all groups, and the number of bound pods in the cluster.
    fn all(cluster: &Cluster) -> (Vec<Self>, usize) {
        let groups = cluster.list(job::GROUPS, None).into_iter();
        let gang = |group: Arc<Object>| {
            let name = text(&group, "name");
            let empty = Self {
                group,
                bound: 0,
                running: 0,
                succeeded: 0,
                waiting: Vec::new(),
            };
            (name, empty)
        };
        let mut gangs: BTreeMap<String, Self> = groups.map(gang).collect();
        let mut held = 0;
        for pod in cluster.list("pods", None) {
            let is_bound = pod::is_bound(&*pod) && !pod::has_ended(&*pod);
            held += usize::from(is_bound);
            let Some(gang) = group_of(&pod).and_then(|name| gangs.get_mut(&name)) else {
                continue;
            };
            gang.bound += usize::from(is_bound);
            gang.running += usize::from(pod::phase(&*pod) == "Running");
            gang.succeeded += usize::from(pod::phase(&*pod) == "Succeeded");
            if !is_bound && !pod::has_ended(&*pod) && !job::is_deleting(&*pod) {
                gang.waiting.push(pod);
            }
        }
        (gangs.into_values().collect(), held)
    }

    fn fewest(&self) -> usize {
        let fewest = self.group["spec"]["minMember"].as_u64().unwrap_or(0);
        usize::try_from(fewest).unwrap_or(usize::MAX)
    }

    /// Returns the capacity that the group requests, in pods. Each pod requests one CPU.
    fn asked(&self) -> usize {
        let asked = self.group["spec"]["minResources"]["cpu"].as_str();
        asked.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Binds the waiting pods that fit if they and `members` reach the group's minimum, and marks the others as
    /// unschedulable. Returns the number of pods that it binds.
    fn place(&self, members: usize, free: usize, steps: &mut Vec<Step>) -> usize {
        let fitting = free.min(self.waiting.len());
        let placed = if members + fitting >= self.fewest() {
            fitting
        } else {
            0
        };
        let (placed_pods, others) = self.waiting.split_at(placed);
        steps.extend(placed_pods.iter().cloned().map(Step::Bind));
        let untold = others.iter().filter(|pod| !is_refused(pod));
        steps.extend(untold.cloned().map(Step::Refuse));
        placed
    }
}

/// Plans a Volcano cycle. A group is admitted when the capacity suffices for its whole request, and its pods are
/// bound then.
fn volcano(cluster: &Cluster, capacity: Option<usize>) -> Vec<Step> {
    let (gangs, held) = Gang::all(cluster);
    let mut free = capacity.map_or(usize::MAX, |capacity| capacity.saturating_sub(held));
    let phase = |gang: &Gang| {
        gang.group["status"]["phase"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let let_in = gangs.iter().filter(|gang| phase(gang) == "Inqueue");
    // Capacity reserved for admitted groups whose pods are not bound yet.
    let mut kept: usize = let_in.map(|gang| gang.asked().saturating_sub(gang.bound)).sum();
    let mut steps = Vec::new();
    for gang in &gangs {
        let before = phase(gang);
        let mut is_let_in = before == "Inqueue";
        if before == "Pending" && gang.asked() <= free.saturating_sub(kept) {
            is_let_in = true;
            kept += gang.asked();
        }
        let mut members = gang.bound + gang.succeeded;
        if is_let_in || matches!(&*before, "Running" | "Unknown" | "Completed") {
            let placed = gang.place(members, free, &mut steps);
            members += placed;
            free -= placed;
        }
        let after = match () {
            () if members > 0 && gang.bound + gang.waiting.len() == 0 => "Completed",
            () if members >= gang.fewest() && members > 0 => "Running",
            () if gang.running > 0 => "Unknown",
            () if is_let_in => "Inqueue",
            () => "Pending",
        };
        if after != before {
            steps.push(Step::SetPhase(gang.group.clone(), after));
        } else if after == "Pending" && gang.group["status"]["conditions"].is_null() {
            steps.push(Step::SayWhy(gang.group.clone()));
        }
    }
    steps
}

/// Plans a coscheduling cycle for the groups in `changed`. Pods that have ended are not members.
fn coscheduling(cluster: &Cluster, capacity: Option<usize>, changed: &BTreeSet<String>) -> Vec<Step> {
    let (gangs, held) = Gang::all(cluster);
    let mut free = capacity.map_or(usize::MAX, |capacity| capacity.saturating_sub(held));
    let mut steps = Vec::new();
    for gang in gangs
        .iter()
        .filter(|gang| changed.contains(&text(&gang.group, "name")))
    {
        free -= gang.place(gang.bound, free, &mut steps);
    }
    steps
}

/// Returns the group that a pod is a member of.
fn group_of(pod: &Object) -> Option<String> {
    let label = &Json::meta(pod, "labels")["scheduling.x-k8s.io/pod-group"];
    let annotation = &Json::meta(pod, "annotations")["scheduling.k8s.io/group-name"];
    label.as_str().or(annotation.as_str()).map(str::to_owned)
}

fn is_refused(pod: &Object) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .into_iter()
        .any(|c| c["type"] == "PodScheduled" && c["status"] == "False")
}

fn text(object: &Object, key: &str) -> String {
    Json::meta(object, key).as_str().unwrap_or_default().to_owned()
}
