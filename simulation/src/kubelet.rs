//! Nodes without machines: pods go through their phases by a script.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use kube_memory::{Action, Cluster, Object};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::{job, wire};

/// How long a pod takes to start, and to stop.
const MOMENT: Duration = Duration::from_secs(1);

/// What becomes of a pod once it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It runs until it is deleted.
    Runs,
    /// It ends well after so many seconds.
    Succeeds(u64),
    /// It ends with this code after so many seconds.
    Fails(i32, u64),
    /// It never starts.
    Pends,
    /// It is evicted after so many seconds: failed, without a word of its containers.
    Evicted(u64),
    /// It is preempted after so many seconds: marked, ended with 143 and deleted.
    Preempted(u64),
    /// Its node is lost after so many seconds: it is deleted, and gone so many seconds later.
    NodeLost(u64, u64),
    /// The kubelet restarts its container, which ended with this code, after so many seconds; it ends
    /// well after so many more.
    RestartsInPlace(i32, u64, u64),
    /// It has ended well before anybody saw it run.
    AtOnce,
    /// It is seen running, pending, and running again before it ends well after so many seconds.
    Flickers(u64),
    /// Its main container ends well after so many seconds, and another with 1.
    SidecarFails(u64),
}

/// Says what becomes of a pod, by name and attempt; asked once for each pod.
pub type Script = Box<dyn Fn(&str, u32) -> Fate + Send + Sync>;

/// The attempt that a pod was made for.
pub fn attempt(pod: &impl job::Json) -> u32 {
    let annotation = &pod.meta("annotations")["training.kubeflow.org/restart-attempt"];
    annotation.as_str().and_then(|a| a.parse().ok()).unwrap_or(0)
}

/// What is done to a pod at a time.
#[derive(Clone, Debug)]
enum Step {
    Bind,
    Say(Value),
    /// It is asked to go, as by a scheduler or a node controller.
    Delete,
    /// It is gone.
    Remove,
}

/// A pod that is looked after.
struct Held {
    namespace: String,
    name: String,
    container: String,
    fate: Fate,
    deleting: bool,
}

/// What becomes of each pod, by UID.
type Fates = BTreeMap<String, Fate>;

type Changed = Arc<Mutex<Vec<(Action, Arc<Object>)>>>;

/// When what is done to which pod; the name before the UID, which says nothing.
type Agenda = BTreeMap<(Instant, String, String, usize), Step>;

/// All nodes of a cluster. Clones are handles to the same.
#[derive(Clone, Default)]
pub struct Nodes {
    /// How many things are due to happen.
    ahead: Arc<AtomicUsize>,
    restored: Arc<AtomicBool>,
    notify: Arc<Notify>,
}

impl Nodes {
    /// Whether pods are about to do something by themselves.
    pub fn are_busy(&self) -> bool {
        self.ahead.load(Ordering::Relaxed) > 0
    }

    /// The cluster was set back: what pods do is told again from the beginning.
    pub fn restored(&self) {
        self.restored.store(true, Ordering::Relaxed);
        self.notify.notify_one();
    }

    /// Runs all pods of the cluster for ever.
    pub async fn run(self, cluster: Cluster, script: Script) {
        let changed: Changed = Arc::default();
        let (waker, sink) = (self.notify.clone(), changed.clone());
        cluster.on_change(move |_, change| {
            if change.plural() == "pods" {
                let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
                sink.push((change.action(), change.object().clone()));
                waker.notify_one();
            }
        });
        let mut held: BTreeMap<String, Held> = BTreeMap::new();
        let mut fates: Fates = BTreeMap::new();
        let mut gone: BTreeSet<String> = BTreeSet::new();
        let mut agenda = Agenda::new();
        loop {
            let mut fresh = std::mem::take(&mut *changed.lock().unwrap_or_else(PoisonError::into_inner));
            if self.restored.swap(false, Ordering::Relaxed) {
                held.clear();
                gone.clear();
                agenda.clear();
                // What has ended stays so.
                let pods = cluster
                    .list("pods", None)
                    .into_iter()
                    .filter(|p| !job::has_ended(&**p));
                fresh = pods.map(|pod| (Action::Added, pod)).collect();
            }
            for (action, object) in fresh {
                notice(
                    action,
                    &object,
                    (&script, &mut fates),
                    &mut held,
                    &mut gone,
                    &mut agenda,
                );
            }
            self.ahead.store(agenda.len(), Ordering::Relaxed);
            let next = agenda.first_key_value().map(|((at, ..), _)| *at);
            match next {
                Some(at) if at <= Instant::now() => {
                    if let Some(((_, _, uid, _), step)) = agenda.pop_first()
                        && let Some(pod) = held.get(&uid)
                    {
                        act(&cluster, pod, &uid, step).await;
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

fn notice(
    action: Action,
    pod: &Object,
    (script, fates): (&Script, &mut Fates),
    held: &mut BTreeMap<String, Held>,
    gone: &mut BTreeSet<String>,
    agenda: &mut Agenda,
) {
    let text = |key: &str| pod.meta(key).and_then(Value::as_str).unwrap_or_default();
    let uid = text("uid").to_owned();
    if action == Action::Deleted {
        held.remove(&uid);
        gone.insert(uid);
        return;
    }
    if gone.contains(&uid) {
        return;
    }
    let name = text("name").to_owned();
    let now = Instant::now();
    let put = |agenda: &mut Agenda, at: Duration, step: Step| {
        let number = agenda.len();
        agenda.insert((now + at, name.clone(), uid.clone(), number), step);
    };
    if !held.contains_key(&uid) {
        let pod = Held {
            namespace: text("namespace").to_owned(),
            name: name.clone(),
            container: pod["spec"]["containers"][0]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            fate: *fates
                .entry(uid.clone())
                .or_insert_with(|| script(&name, attempt(pod))),
            deleting: false,
        };
        for (at, step) in pod.life() {
            put(agenda, at, step);
        }
        held.insert(uid.clone(), pod);
    }
    let deleting = !text("deletionTimestamp").is_empty();
    if let Some(pod) = held.get_mut(&uid)
        && deleting
        && !pod.deleting
    {
        pod.deleting = true;
        agenda.retain(|(_, _, other, _), _| *other != uid);
        let wait = match pod.fate {
            Fate::NodeLost(_, away) => Duration::from_secs(away),
            _ => MOMENT,
        };
        put(agenda, wait, Step::Remove);
    }
}

impl Held {
    /// All that happens to it if nobody deletes it.
    fn life(&self) -> Vec<(Duration, Step)> {
        let say = |status: Value| Step::Say(status);
        let runs = || say(json!({"phase": "Running"}));
        let after = |seconds: u64| MOMENT + Duration::from_secs(seconds);
        let mut life = vec![(MOMENT, Step::Bind)];
        let rest = match self.fate {
            Fate::Pends => return Vec::new(),
            Fate::Runs => vec![(MOMENT, runs())],
            Fate::Succeeds(s) => vec![(MOMENT, runs()), (after(s), self.ended("Succeeded", 0))],
            Fate::Fails(code, s) => vec![(MOMENT, runs()), (after(s), self.ended("Failed", code))],
            Fate::Evicted(s) => {
                let status =
                    json!({"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"});
                vec![(MOMENT, runs()), (after(s), say(status))]
            }
            Fate::Preempted(s) => {
                let mark = json!({"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]});
                vec![
                    (MOMENT, runs()),
                    (after(s), say(mark)),
                    (after(s), self.ended("Failed", 143)),
                    (after(s), Step::Delete),
                ]
            }
            Fate::NodeLost(s, _) => vec![(MOMENT, runs()), (after(s), Step::Delete)],
            Fate::RestartsInPlace(code, s, more) => vec![
                (MOMENT, runs()),
                (after(s), self.restarted(code)),
                (after(s + more), self.ended("Succeeded", 0)),
            ],
            Fate::AtOnce => vec![(MOMENT, self.ended("Succeeded", 0))],
            Fate::Flickers(s) => vec![
                (MOMENT, runs()),
                (after(0), say(json!({"phase": "Pending"}))),
                (after(1), runs()),
                (after(s + 1), self.ended("Succeeded", 0)),
            ],
            Fate::SidecarFails(s) => {
                let end = |name: &str, code: i32| terminated(name, code, 0);
                let status = json!({"phase": "Failed", "containerStatuses": [
                    end(&self.container, 0), end("sidecar", 1)]});
                vec![(MOMENT, runs()), (after(s), say(status))]
            }
        };
        life.extend(rest);
        life
    }

    fn ended(&self, phase: &str, code: i32) -> Step {
        Step::Say(json!({"phase": phase, "containerStatuses": [terminated(&self.container, code, 0)]}))
    }

    fn restarted(&self, code: i32) -> Step {
        let last = json!({"terminated": {"exitCode": code, "reason": "Error"}});
        Step::Say(json!({"phase": "Running", "containerStatuses": [{
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

/// Does a step, if the pod is there; whether it is does not matter to anybody here.
async fn act(cluster: &Cluster, pod: &Held, uid: &str, step: Step) {
    let path = |below| wire::pod(&pod.namespace, &pod.name, below);
    let only_this = json!({"preconditions": {"uid": uid}});
    match step {
        Step::Bind => {
            let binding = json!({"apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": pod.name}, "target": {"kind": "Node", "name": "n"}});
            wire::send(cluster, Method::POST, &path("/binding"), &binding).await;
        }
        Step::Say(status) => {
            let patch = json!({"metadata": {"uid": uid}, "status": status});
            wire::send(cluster, Method::PATCH, &path("/status"), &patch).await;
        }
        Step::Delete => {
            wire::send(cluster, Method::DELETE, &path(""), &only_this).await;
        }
        Step::Remove => {
            let mut now = only_this;
            now["gracePeriodSeconds"] = json!(0);
            wire::send(cluster, Method::DELETE, &path(""), &now).await;
        }
    }
}
