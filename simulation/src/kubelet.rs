//! Simulated nodes: each pod goes through its phases as its fate says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use kube_memory::{Action, Cluster, Object};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::faults::PodFate;
use crate::{direct, gang_scheduler, job};

/// How long a pod takes to start, and to stop.
const START_OR_STOP: Duration = Duration::from_secs(1);

/// Says the fate of a pod, by name and attempt. It is asked once for each pod.
pub type PodFates = Box<dyn Fn(&str, u32) -> PodFate + Send + Sync>;

/// The attempt that a pod was made for.
pub fn attempt(pod: &impl job::Json) -> u32 {
    let annotation = &pod.meta("annotations")["training.kubeflow.org/restart-attempt"];
    annotation.as_str().and_then(|a| a.parse().ok()).unwrap_or(0)
}

/// Something that nodes or controllers do to a pod.
#[derive(Clone, Debug)]
enum PodStep {
    Bind,
    WriteStatus(Value),
    /// It is deleted gracefully, as by a scheduler or a node controller.
    Delete,
    /// It is removed.
    Remove,
}

/// A pod on a node.
struct RunningPod {
    namespace: String,
    name: String,
    container: String,
    fate: PodFate,
    deleting: bool,
    /// Whether its steps are scheduled: those of a pod that another scheduler binds are when it has done so.
    bound: bool,
}

type Changed = Arc<Mutex<Vec<(Action, Arc<Object>)>>>;

/// What is due when for which pod, in this order: the name comes before the UID, which is random.
type Schedule = BTreeMap<(Instant, String, String, usize), PodStep>;

/// All nodes of a cluster. Clones are handles to the same.
#[derive(Clone, Default)]
pub struct Nodes {
    /// How many steps are scheduled.
    scheduled: Arc<AtomicUsize>,
    restored: Arc<AtomicBool>,
    notify: Arc<Notify>,
}

impl Nodes {
    /// Whether a pod is about to change by itself.
    pub fn have_pending_steps(&self) -> bool {
        self.scheduled.load(Ordering::Relaxed) > 0
    }

    /// The cluster was set back to a backup: each pod starts again.
    pub fn on_restored(&self) {
        self.restored.store(true, Ordering::Relaxed);
        self.notify.notify_one();
    }

    /// Runs all pods of the cluster for ever.
    pub async fn run(self, cluster: Cluster, pod_fates: PodFates) {
        let changed: Changed = Arc::default();
        let (waker, sink) = (self.notify.clone(), changed.clone());
        cluster.on_change(move |_, change| {
            if change.plural() == "pods" {
                let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
                sink.push((change.action(), change.object().clone()));
                waker.notify_one();
            }
        });
        let mut state = NodeState {
            pod_fates,
            fates: BTreeMap::new(),
            pods: BTreeMap::new(),
            removed: BTreeSet::new(),
            schedule: Schedule::new(),
        };
        loop {
            let mut changes = std::mem::take(&mut *changed.lock().unwrap_or_else(PoisonError::into_inner));
            if self.restored.swap(false, Ordering::Relaxed) {
                state.forget_pods();
                // Pods that have ended do not run again.
                let pods = cluster.list("pods", None).into_iter();
                let pods = pods.filter(|pod| !job::has_ended(&**pod));
                changes = pods.map(|pod| (Action::Added, pod)).collect();
            }
            for (action, pod) in changes {
                state.on_change(action, &pod);
            }
            self.scheduled.store(state.schedule.len(), Ordering::Relaxed);
            let next = state.schedule.first_key_value().map(|((at, ..), _)| *at);
            match next {
                Some(at) if at <= Instant::now() => {
                    if let Some(((_, _, uid, _), step)) = state.schedule.pop_first()
                        && let Some(pod) = state.pods.get(&uid)
                    {
                        carry_out(&cluster, pod, &uid, step).await;
                    }
                }
                Some(at) => {
                    tokio::select! { biased; () = self.notify.notified() => {}, () = sleep_until(at) => {} }
                }
                None => self.notify.notified().await,
            }
        }
    }
}

/// What the nodes know of pods, by UID.
struct NodeState {
    pod_fates: PodFates,
    /// A pod that a backup brings back has the fate it had before.
    fates: BTreeMap<String, PodFate>,
    pods: BTreeMap<String, RunningPod>,
    removed: BTreeSet<String>,
    schedule: Schedule,
}

impl NodeState {
    fn forget_pods(&mut self) {
        self.pods.clear();
        self.removed.clear();
        self.schedule.clear();
    }

    fn on_change(&mut self, action: Action, object: &Object) {
        let text = |key: &str| object.meta(key).and_then(Value::as_str).unwrap_or_default();
        let (name, uid) = (text("name"), text("uid"));
        if action == Action::Deleted {
            self.pods.remove(uid);
            self.removed.insert(uid.to_owned());
            return;
        }
        if self.removed.contains(uid) {
            return;
        }
        if !self.pods.contains_key(uid) {
            let fate = self.fates.entry(uid.to_owned());
            let fate = *fate.or_insert_with(|| (self.pod_fates)(name, attempt(object)));
            let container = object["spec"]["containers"][0]["name"].as_str();
            let pod = RunningPod {
                namespace: text("namespace").to_owned(),
                name: name.to_owned(),
                container: container.unwrap_or_default().to_owned(),
                fate,
                deleting: false,
                bound: false,
            };
            self.pods.insert(uid.to_owned(), pod);
        }
        let is_bound = gang_scheduler::is_bound(object) || !gang_scheduler::binds(object);
        if let Some(pod) = self.pods.get_mut(uid).filter(|pod| is_bound && !pod.bound) {
            pod.bound = true;
            for (wait, step) in pod.steps() {
                self.schedule_step(name, uid, wait, step);
            }
        }
        if !text("deletionTimestamp").is_empty()
            && let Some(pod) = self.pods.get_mut(uid)
            && !pod.deleting
        {
            pod.deleting = true;
            let wait = match pod.fate {
                PodFate::NodeLost(_, away) => Duration::from_secs(away),
                _ => START_OR_STOP,
            };
            self.schedule.retain(|(_, _, other, _), _| *other != uid);
            self.schedule_step(name, uid, wait, PodStep::Remove);
        }
    }

    fn schedule_step(&mut self, name: &str, uid: &str, wait: Duration, step: PodStep) {
        let number = self.schedule.len();
        let key = (Instant::now() + wait, name.to_owned(), uid.to_owned(), number);
        self.schedule.insert(key, step);
    }
}

impl RunningPod {
    /// The steps of its fate if nobody deletes it, and when each is due.
    fn steps(&self) -> Vec<(Duration, PodStep)> {
        let write = |status: Value| PodStep::WriteStatus(status);
        let runs = || write(json!({"phase": "Running"}));
        let after = |seconds: u64| START_OR_STOP + Duration::from_secs(seconds);
        let mut steps = vec![(START_OR_STOP, PodStep::Bind)];
        let rest = match self.fate {
            PodFate::Pends => return Vec::new(),
            PodFate::Runs => vec![(START_OR_STOP, runs())],
            PodFate::Succeeds(s) => vec![(START_OR_STOP, runs()), (after(s), self.ended("Succeeded", 0))],
            PodFate::Fails(code, s) => vec![(START_OR_STOP, runs()), (after(s), self.ended("Failed", code))],
            PodFate::Evicted(s) => {
                let status =
                    json!({"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"});
                vec![(START_OR_STOP, runs()), (after(s), write(status))]
            }
            PodFate::Preempted(s) => {
                let mark = json!({"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]});
                vec![
                    (START_OR_STOP, runs()),
                    (after(s), write(mark)),
                    (after(s), self.ended("Failed", 143)),
                    (after(s), PodStep::Delete),
                ]
            }
            PodFate::NodeLost(s, _) => vec![(START_OR_STOP, runs()), (after(s), PodStep::Delete)],
            PodFate::RestartsInPlace(code, s, more) => vec![
                (START_OR_STOP, runs()),
                (after(s), self.restarted(code)),
                (after(s + more), self.ended("Succeeded", 0)),
            ],
            PodFate::AtOnce => vec![(START_OR_STOP, self.ended("Succeeded", 0))],
            PodFate::Flickers(s) => vec![
                (START_OR_STOP, runs()),
                (after(0), write(json!({"phase": "Pending"}))),
                (after(1), runs()),
                (after(s + 1), self.ended("Succeeded", 0)),
            ],
            PodFate::SidecarFails(s) => {
                let end = |name: &str, code: i32| terminated(name, code, 0);
                let status = json!({"phase": "Failed", "containerStatuses": [
                    end(&self.container, 0), end("sidecar", 1)]});
                vec![(START_OR_STOP, runs()), (after(s), write(status))]
            }
        };
        steps.extend(rest);
        steps
    }

    fn ended(&self, phase: &str, code: i32) -> PodStep {
        PodStep::WriteStatus(
            json!({"phase": phase, "containerStatuses": [terminated(&self.container, code, 0)]}),
        )
    }

    fn restarted(&self, code: i32) -> PodStep {
        let last = json!({"terminated": {"exitCode": code, "reason": "Error"}});
        PodStep::WriteStatus(json!({"phase": "Running", "containerStatuses": [{
            "name": self.container, "image": "i", "imageID": "i", "ready": true, "restartCount": 1,
            "state": {"running": {}}, "lastState": last,
        }]}))
    }
}

fn terminated(container: &str, code: i32, restarts: i32) -> Value {
    let reason = match code {
        0 => "Completed",
        137 => "OOMKilled",
        _ => "Error",
    };
    json!({
        "name": container, "image": "i", "imageID": "i", "ready": false, "restartCount": restarts,
        "state": {"terminated": {"exitCode": code, "reason": reason}},
    })
}

/// Puts a pod on a node, unless it has one.
pub(crate) async fn bind(cluster: &Cluster, namespace: &str, name: &str) {
    let binding = json!({"apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}});
    let path = direct::pod(namespace, name, "/binding");
    direct::send(cluster, Method::POST, &path, &binding).await;
}

/// Carries a step out. It fails if the pod is gone, which does not matter.
async fn carry_out(cluster: &Cluster, pod: &RunningPod, uid: &str, step: PodStep) {
    let path = |below| direct::pod(&pod.namespace, &pod.name, below);
    let only_this = json!({"preconditions": {"uid": uid}});
    match step {
        PodStep::Bind => bind(cluster, &pod.namespace, &pod.name).await,
        PodStep::WriteStatus(status) => {
            let patch = json!({"metadata": {"uid": uid}, "status": status});
            direct::send(cluster, Method::PATCH, &path("/status"), &patch).await;
        }
        PodStep::Delete => {
            direct::send(cluster, Method::DELETE, &path(""), &only_this).await;
        }
        PodStep::Remove => {
            let mut now = only_this;
            now["gracePeriodSeconds"] = json!(0);
            direct::send(cluster, Method::DELETE, &path(""), &now).await;
        }
    }
}
