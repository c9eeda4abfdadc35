//! Simulated nodes: each pod goes through the phases of its fate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use kube_memory::{Action, Cluster, Object};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::faults::{LastEnd, PodFate};
use crate::random::Random;
use crate::world::pod;
use crate::world::{direct, job};

/// The time that a pod takes to start, and to stop.
const START_OR_STOP: Duration = Duration::from_secs(1);

/// Returns the fate of a pod by its name and attempt. It is called once for each pod.
pub type PodFates = Box<dyn Fn(&str, u32) -> PodFate + Send + Sync>;

/// A change that nodes or controllers make to a pod.
#[derive(Clone, Debug)]
enum PodStep {
    Bind,
    /// Writes the status. Its terminated containers ended this many seconds ago.
    WriteStatus(Value, i64),
    /// Deletes the pod gracefully, like a scheduler or a node controller.
    Delete,
    Remove,
}

struct RunningPod {
    namespace: String,
    name: String,
    /// The UID of the job.
    job: String,
    container: String,
    /// The restart policy of the pod.
    policy: String,
    fate: PodFate,
    deleting: bool,
    running: bool,
    /// True if the steps are scheduled. The steps of a pod with another scheduler are scheduled when it is bound.
    bound: bool,
}

type Changed = Arc<Mutex<Vec<(Action, Arc<Object>)>>>;

/// The scheduled steps, by time and pod. The name comes before the UID, because the UID is random.
type Schedule = BTreeMap<(Instant, String, String, usize), PodStep>;

/// All nodes of a cluster. Clones share the same state.
#[derive(Clone, Default)]
pub struct Nodes {
    /// The number of scheduled steps.
    scheduled: Arc<AtomicUsize>,
    restored: Arc<AtomicBool>,
    notify: Arc<Notify>,
    clocks_differ: bool,
}

/// The maximum difference between the clock of a node and that of the cluster, in seconds. With the two seconds for
/// which an end may be reported late, it is below five minutes.
const MAX_CLOCK_DIFFERENCE: u64 = 295;

impl Nodes {
    /// Creates the nodes of a cluster. If `clocks_differ`, each pod runs on a node with a clock of its own.
    pub fn new(clocks_differ: bool) -> Self {
        Self {
            clocks_differ,
            ..Self::default()
        }
    }

    /// Returns true if steps of a pod are scheduled.
    pub fn have_pending_steps(&self) -> bool {
        self.scheduled.load(Ordering::Relaxed) > 0
    }

    /// Restarts each pod after the cluster was restored from a backup.
    pub fn on_restored(&self) {
        self.restored.store(true, Ordering::Relaxed);
        self.notify.notify_one();
    }

    /// Runs all pods of the cluster forever. `now` is the nodes' clock.
    pub async fn run(self, cluster: Cluster, pod_fates: PodFates, now: impl Fn() -> Timestamp) {
        let changed: Changed = Arc::default();
        let (waker, sink) = (self.notify.clone(), changed.clone());
        cluster.on_change(move |_, change| {
            if change.plural() == "pods" {
                let mut sink = sink.lock();
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
            let mut changes = std::mem::take(&mut *changed.lock());
            if self.restored.swap(false, Ordering::Relaxed) {
                state.forget_pods();
                // Pods that have ended do not run again, but terminating pods still have to be removed.
                let pods = cluster.list("pods", None).into_iter();
                let pods = pods.filter(|pod| !pod::has_ended(&**pod) || job::is_deleting(&**pod));
                changes = pods.map(|pod| (Action::Added, pod)).collect();
            }
            for (action, pod) in changes {
                state.on_change(action, &pod);
            }
            self.scheduled.store(state.schedule.len(), Ordering::Relaxed);
            let next = state.schedule.first_key_value().map(|((at, ..), _)| *at);
            match next {
                Some(at) if at <= Instant::now() => {
                    if let Some(((_, name, uid, _), step)) = state.schedule.pop_first()
                        && let Some(pod) = state.pods.get(&uid)
                    {
                        let ahead = if self.clocks_differ {
                            clock_difference(&name)
                        } else {
                            0
                        };
                        let by_node = now() + SignedDuration::from_secs(ahead);
                        carry_out(&cluster, pod, &uid, step, now(), by_node).await;
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

/// The nodes' state of the pods, by UID.
struct NodeState {
    pod_fates: PodFates,
    /// Kept so that a pod from a restored backup has the same fate as before.
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
            let fate = *fate.or_insert_with(|| (self.pod_fates)(name, pod::attempt(object)));
            let container = object["spec"]["containers"][0]["name"].as_str();
            let job = job::controller(object);
            let pod = RunningPod {
                namespace: text("namespace").to_owned(),
                name: name.to_owned(),
                job: job.unwrap_or_default().to_owned(),
                container: container.unwrap_or_default().to_owned(),
                policy: object["spec"]["restartPolicy"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                fate,
                deleting: false,
                running: false,
                bound: false,
            };
            self.pods.insert(uid.to_owned(), pod);
        }
        let is_bound = pod::is_bound(object) || !pod::has_scheduler(object);
        if let Some(pod) = self.pods.get_mut(uid).filter(|pod| is_bound && !pod.bound) {
            pod.bound = true;
            for (wait, step) in pod.steps() {
                self.schedule_step(name, uid, wait, step);
            }
        }
        if pod::phase(object) == "Running" {
            self.on_running(uid);
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
            let end = pod.last_end().filter(|_| pod::phase(object) == "Running");
            self.schedule.retain(|(_, _, other, _), _| *other != uid);
            let more = end.as_ref().map_or(Duration::ZERO, |_| START_OR_STOP);
            if let Some(end) = end {
                self.schedule_step(name, uid, START_OR_STOP, end);
            }
            self.schedule_step(name, uid, wait + more, PodStep::Remove);
        }
    }

    /// Schedules the ends of pods that wait for each other once all of them run.
    fn on_running(&mut self, uid: &str) {
        let Some(pod) = self.pods.get_mut(uid).filter(|pod| !pod.running) else {
            return;
        };
        pod.running = true;
        let PodFate::SucceedsWith(pods, seconds) = pod.fate else {
            return;
        };
        let job = pod.job.clone();
        let together = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.job == job && pod.running && !pod.deleting);
        let ends: Vec<_> = together
            .map(|(uid, pod)| (pod.name.clone(), uid.clone(), pod.ended("Succeeded", 0)))
            .collect();
        if ends.len() == pods {
            for (name, uid, end) in ends {
                self.schedule_step(&name, &uid, Duration::from_secs(seconds), end);
            }
        }
    }

    fn schedule_step(&mut self, name: &str, uid: &str, wait: Duration, step: PodStep) {
        let number = self.schedule.len();
        let key = (Instant::now() + wait, name.to_owned(), uid.to_owned(), number);
        self.schedule.insert(key, step);
    }
}

impl RunningPod {
    /// Returns the steps of the pod's fate, and the time of each. A deletion replaces them.
    fn steps(&self) -> Vec<(Duration, PodStep)> {
        let write = |status: Value| PodStep::WriteStatus(status, 0);
        let runs = || write(json!({"phase": "Running"}));
        let after = |seconds: u64| START_OR_STOP + Duration::from_secs(seconds);
        let mut steps = vec![(START_OR_STOP, PodStep::Bind)];
        let rest = match self.fate {
            PodFate::Pends => return Vec::new(),
            PodFate::Runs | PodFate::SucceedsWith(..) => vec![(START_OR_STOP, runs())],
            PodFate::Succeeds(s) => vec![(START_OR_STOP, runs()), (after(s), self.ended("Succeeded", 0))],
            PodFate::Fails(code, s) => vec![(START_OR_STOP, runs()), (after(s), self.ended("Failed", code))],
            PodFate::Evicted(s) => {
                let status =
                    json!({"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"});
                vec![(START_OR_STOP, runs()), (after(s), write(status))]
            }
            PodFate::Preempted(s) => {
                let mark = write(disruption("PreemptionByScheduler"));
                vec![
                    (START_OR_STOP, runs()),
                    (after(s), mark),
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
            PodFate::EndsWhenDeleted(_) => vec![(START_OR_STOP, runs())],
            PodFate::Drained(_, s) => vec![
                (START_OR_STOP, runs()),
                (after(s), write(disruption("EvictionByEvictionAPI"))),
                (after(s), PodStep::Delete),
            ],
            PodFate::ShutDown(code, s) => vec![
                (START_OR_STOP, runs()),
                (after(s), write(disruption("TerminationByKubelet"))),
                (after(s + 1), self.exited(code)),
            ],
            PodFate::SidecarRestarts(s) => vec![
                (START_OR_STOP, runs()),
                (after(s), self.with_sidecar(&running(&self.container), 1)),
                (after(s + 1), self.with_sidecar(&running(&self.container), 2)),
                (after(2 * s + 1), self.ended("Succeeded", 0)),
            ],
            PodFate::SidecarStays(code, s) | PodFate::SidecarWorks(code, s, _)
                if self.policy == "Always" || self.policy == "OnFailure" && code != 0 =>
            {
                vec![
                    (START_OR_STOP, runs()),
                    (after(s), self.restarted(code)),
                    (after(2 * s), self.ended("Succeeded", 0)),
                ]
            }
            PodFate::SidecarStays(code, s) => vec![
                (START_OR_STOP, runs()),
                (
                    after(s),
                    self.with_sidecar(&terminated(&self.container, code, 0), 0),
                ),
            ],
            PodFate::SidecarWorks(code, s, more) => {
                let main = terminated(&self.container, code, 0);
                let phase = if code == 0 { "Succeeded" } else { "Failed" };
                let works = self.with_sidecar(&main, 0);
                let mut ended = self.end(phase, code);
                ended["containerStatuses"] = json!([main, terminated("sidecar", 0, 0)]);
                vec![
                    (START_OR_STOP, runs()),
                    (after(s), works),
                    (after(s + more), PodStep::WriteStatus(ended, more.cast_signed())),
                ]
            }
            PodFate::InitFails(times, s) => {
                let fails = |restarts: u64| {
                    let init = json!({"name": "init", "image": "i", "imageID": "i", "ready": false, "restartCount": restarts,
                        "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}});
                    (
                        after(restarts),
                        write(json!({"phase": "Pending", "initContainerStatuses": [init]})),
                    )
                };
                let ends = [
                    (after(times + 1), runs()),
                    (after(times + 1 + s), self.ended("Succeeded", 0)),
                ];
                (1..=times).map(fails).chain(ends).collect()
            }
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
        PodStep::WriteStatus(self.end(phase, code), 0)
    }

    fn end(&self, phase: &str, code: i32) -> Value {
        json!({"phase": phase, "containerStatuses": [terminated(&self.container, code, 0)]})
    }

    /// Returns the step that ends the pod with this exit code, in the phase that follows from it.
    fn exited(&self, code: i32) -> PodStep {
        self.ended(if code == 0 { "Succeeded" } else { "Failed" }, code)
    }

    /// Returns the last status of the pod if it is deleted while it runs, if its fate defines one.
    fn last_end(&self) -> Option<PodStep> {
        match self.fate {
            PodFate::EndsWhenDeleted(LastEnd::After(code)) | PodFate::Drained(code, _) => {
                Some(self.exited(code))
            }
            PodFate::EndsWhenDeleted(LastEnd::Before) => {
                Some(PodStep::WriteStatus(self.end("Succeeded", 0), 2))
            }
            _ => None,
        }
    }

    /// Returns the status of a running pod whose sidecar container has been restarted this many times.
    fn with_sidecar(&self, main: &Value, restarts: u64) -> PodStep {
        let mut sidecar = running("sidecar");
        sidecar["restartCount"] = json!(restarts);
        if restarts > 0 {
            sidecar["lastState"] = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
        }
        PodStep::WriteStatus(
            json!({"phase": "Running", "containerStatuses": [main, sidecar]}),
            0,
        )
    }

    fn restarted(&self, code: i32) -> PodStep {
        let last = json!({"terminated": {"exitCode": code, "reason": "Error"}});
        let mut main = running(&self.container);
        main["restartCount"] = json!(1);
        main["lastState"] = last;
        PodStep::WriteStatus(json!({"phase": "Running", "containerStatuses": [main]}), 0)
    }
}

fn disruption(reason: &str) -> Value {
    let ready = json!({"type": "Ready", "status": "True"});
    json!({"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason}, ready]})
}

fn running(container: &str) -> Value {
    json!({
        "name": container, "image": "i", "imageID": "i", "ready": true, "restartCount": 0, "state": {"running": {}},
    })
}

/// Sets the end times of terminated containers and the transition times of conditions in a status.
fn enter_times(status: &mut Value, ended: Timestamp, now: Timestamp, by_node: Timestamp) {
    let second = |time: Timestamp| json!(Timestamp::from_second(time.as_second()).unwrap_or(time));
    for list in ["initContainerStatuses", "containerStatuses"] {
        let containers = status.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            for state in ["state", "lastState"] {
                let end = container
                    .get_mut(state)
                    .and_then(|state| state.get_mut("terminated"));
                if let Some(end) = end {
                    end["finishedAt"] = second(ended);
                }
            }
        }
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let by_kubelet = condition["reason"] == "TerminationByKubelet";
        condition["lastTransitionTime"] = second(if by_kubelet { by_node } else { now });
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

/// Binds a pod to a node, unless it is bound.
pub(crate) async fn bind(cluster: &Cluster, namespace: &str, name: &str) {
    let binding = json!({"apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}});
    let path = direct::pod(namespace, name, "/binding");
    direct::send(cluster, Method::POST, &path, &binding).await;
}

/// Returns the number of seconds that the clock of a pod's node is ahead.
fn clock_difference(pod: &str) -> i64 {
    let difference = Random::about(0, pod, 0).between(0, 2 * MAX_CLOCK_DIFFERENCE);
    difference.cast_signed() - MAX_CLOCK_DIFFERENCE.cast_signed()
}

/// Carries out a step. It fails if the pod is gone, which is harmless. `by_node` is the time by the clock of the node.
async fn carry_out(
    cluster: &Cluster,
    pod: &RunningPod,
    uid: &str,
    step: PodStep,
    now: Timestamp,
    by_node: Timestamp,
) {
    let path = |below| direct::pod(&pod.namespace, &pod.name, below);
    let only_this = json!({"preconditions": {"uid": uid}});
    match step {
        PodStep::Bind => bind(cluster, &pod.namespace, &pod.name).await,
        PodStep::WriteStatus(mut status, ago) => {
            if status["phase"] == "Running" {
                status["conditions"] = json!([{"type": "Ready", "status": "True"}]);
            }
            enter_times(
                &mut status,
                by_node - SignedDuration::from_secs(ago),
                now,
                by_node,
            );
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
