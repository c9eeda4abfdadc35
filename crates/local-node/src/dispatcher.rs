//! Passes watch events to the tasks of pods, and starts these tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet, spawn_blocking};

use super::agent::Agent;
use super::api::{ApiError, PodRef};
use super::config::{Bind, DEFAULT_SCHEDULER};
use super::kill::sweep_pod;
use super::pod_task::{Command, PodTask};
use super::report::retries;
use kube_follow::Event;

/// The time beyond their grace period that pods may take to end at shutdown.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(10);

pub(super) type Events = mpsc::UnboundedReceiver<Event<Pod>>;

/// All pods that the watch has reported, and their tasks.
pub(super) struct Dispatcher {
    agent: Arc<Agent>,
    pods: BTreeMap<(String, String), KnownPod>,
    /// The pods of the current list.
    listing: Vec<Pod>,
    /// True once a list has been completed. Pods that are bound to this node in the first list were left by another
    /// agent.
    listed: bool,
    tasks: JoinSet<()>,
    /// The pod of each task.
    owners: BTreeMap<Id, PodRef>,
    binds: JoinSet<()>,
}

/// A pod that the watch has reported.
struct KnownPod {
    pod: Pod,
    uid: String,
    /// True if this agent has requested to bind the pod to this node.
    bind_requested: bool,
    /// Set once the pod is bound to this node.
    task: Option<Task>,
}

struct Task {
    commands: mpsc::UnboundedSender<Command>,
    /// Closed when the pod's processes have ended.
    ended: oneshot::Receiver<()>,
}

impl Task {
    /// Sends a command. A task that has ended needs none.
    fn send(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    /// Informs the task that its pod is gone. The returned receiver completes when the pod's processes have ended.
    fn stop(self) -> oneshot::Receiver<()> {
        self.send(Command::Gone);
        self.ended
    }
}

impl Dispatcher {
    pub(super) fn new(agent: Arc<Agent>) -> Self {
        Self {
            agent,
            pods: BTreeMap::new(),
            listing: Vec::new(),
            listed: false,
            tasks: JoinSet::new(),
            owners: BTreeMap::new(),
            binds: JoinSet::new(),
        }
    }

    /// Runs until a stop is requested, then ends the pods within the given grace period.
    pub(super) async fn run(mut self, mut watch: Events, mut stop: oneshot::Receiver<Duration>) {
        let grace = loop {
            tokio::select! {
                grace = &mut stop => match grace {
                    Ok(grace) => break grace,
                    Err(_) => return,
                },
                event = watch.recv() => match event {
                    Some(event) => self.handle(event),
                    // The watch does not end by itself.
                    None => break stop.await.unwrap_or_default(),
                },
                Some(ended) = self.tasks.join_next_with_id() => self.on_task_ended(ended),
                Some(_) = self.binds.join_next() => {}
            }
        };
        for task in self.pods.values().filter_map(|known| known.task.as_ref()) {
            task.send(Command::Shutdown(grace));
        }
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(grace + SHUTDOWN_MARGIN, all).await.is_err() {
            tracing::warn!("some pods did not end in time and are killed");
        }
    }

    fn handle(&mut self, event: Event<Pod>) {
        match event {
            Event::Applied(pod) => self.on_applied(pod),
            Event::Deleted(pod) => self.on_removed(&PodRef::from_pod(&pod)),
            Event::ListStarted => self.listing.clear(),
            Event::Listed(pod) => self.listing.push(pod),
            Event::ListDone => self.on_list_done(),
            Event::Forbidden(problem) => tracing::warn!(problem, "the pods cannot be watched, trying again"),
            Event::ListPage(_) | Event::Bookmark(_) | Event::Absent | Event::Failed => {}
        }
    }

    fn on_list_done(&mut self) {
        let listing = std::mem::take(&mut self.listing);
        // Deletions between two watches have no events.
        let there: BTreeSet<_> = listing.iter().filter_map(ResourceExt::uid).collect();
        let vanished = self.pods.values().filter(|known| !there.contains(&known.uid));
        let vanished: Vec<PodRef> = vanished.map(|known| PodRef::from_pod(&known.pod)).collect();
        for pod in vanished {
            self.on_removed(&pod);
        }
        if !self.listed {
            self.agent.take_over_output(&listing);
        }
        // All addresses are assigned before the first pod looks up the others.
        for pod in listing.iter().filter(|pod| self.is_mine(pod)) {
            self.agent.address(pod);
        }
        for pod in listing {
            self.on_applied(pod);
        }
        self.listed = true;
    }

    fn on_applied(&mut self, pod: Pod) {
        let at = PodRef::from_pod(&pod);
        let key = (at.namespace.clone(), at.name.clone());
        self.agent.track(&pod, true);
        let has_ended = has_ended(&pod);
        let mut before = None;
        let (mut bind_requested, mut task) = (false, None);
        match self.pods.remove(&key) {
            Some(known) if known.uid == at.uid => (bind_requested, task) = (known.bind_requested, known.task),
            // The new pod waits for the end of the earlier pod of its name, which had the same address and ports.
            Some(known) => before = known.task.map(Task::stop),
            None => {}
        }
        match &task {
            Some(task) => task.send(Command::Changed(Box::new(pod.clone()))),
            None if self.is_mine(&pod) => task = Some(self.spawn(pod.clone(), before)),
            None if !bind_requested => bind_requested = self.request_binding(&pod),
            None => {}
        }
        self.pods.insert(
            key,
            KnownPod {
                pod,
                uid: at.uid.clone(),
                bind_requested,
                task,
            },
        );
        if has_ended {
            self.free_devices(&at.uid);
        }
    }

    /// Requests that a pod is bound to this node, if it should be and its devices are free. Returns true if it did.
    fn request_binding(&mut self, pod: &Pod) -> bool {
        if !needs_binding(pod, self.agent.config.bind) {
            return false;
        }
        let at = PodRef::from_pod(pod);
        let agent = Arc::clone(&self.agent);
        let taken = self.agent.shares().take(pod);
        match taken {
            Ok(()) => {
                self.binds.spawn(bind(agent, at));
                return true;
            }
            Err(shortage) if is_reported(pod, &shortage) => {}
            Err(shortage) => drop(self.binds.spawn(report_shortage(agent, at, shortage))),
        }
        false
    }

    /// Frees the devices of a pod that has ended or is gone, for pods that wait for them. The oldest comes first.
    fn free_devices(&mut self, uid: &str) {
        if !self.agent.shares().give_back(uid) {
            return;
        }
        let waiting = self
            .pods
            .values()
            .filter(|known| !known.bind_requested && known.task.is_none());
        let mut waiting: Vec<Pod> = waiting.map(|known| known.pod.clone()).collect();
        waiting.sort_by_key(|pod| (pod.creation_timestamp(), pod.name_any()));
        for pod in waiting {
            let at = PodRef::from_pod(&pod);
            if self.request_binding(&pod)
                && let Some(known) = self.pods.get_mut(&(at.namespace, at.name))
            {
                known.bind_requested = true;
            }
        }
    }

    fn is_mine(&self, pod: &Pod) -> bool {
        node_of(pod) == Some(self.agent.config.name.as_str())
    }

    fn spawn(&mut self, pod: Pod, before: Option<oneshot::Receiver<()>>) -> Task {
        if let Err(shortage) = self.agent.shares().take(&pod) {
            tracing::warn!(
                pod = pod.name_any(),
                shortage,
                "a pod that is bound already gets no devices"
            );
        }
        let (commands, received) = mpsc::unbounded_channel();
        let (end, ended) = oneshot::channel::<()>();
        let agent = Arc::clone(&self.agent);
        let owner = PodRef::from_pod(&pod);
        // The processes of an ended pod were killed before its end was reported.
        let left = (!self.listed && !has_ended(&pod)).then(|| owner.uid.clone());
        let handle = self.tasks.spawn(async move {
            // Dropped when the task ends for any reason, which is the signal.
            let _end = end;
            if let Some(before) = before {
                let _ = before.await;
            }
            if let Some(uid) = left {
                // The guard of a killed agent may still be at work, or was killed too.
                let _ = spawn_blocking(move || sweep_pod(&uid)).await;
            }
            PodTask::new(agent, pod, received).run().await;
        });
        self.owners.insert(handle.id(), owner);
        Task { commands, ended }
    }

    fn on_removed(&mut self, at: &PodRef) {
        let key = (at.namespace.clone(), at.name.clone());
        // The deletion of an earlier pod of that name does not concern this one.
        if self.pods.get(&key).is_none_or(|known| known.uid != at.uid) {
            return;
        }
        if let Some(known) = self.pods.remove(&key) {
            self.agent.track(&known.pod, false);
            if let Some(task) = known.task {
                task.send(Command::Gone);
            }
            self.free_devices(&known.uid);
        }
    }

    fn on_task_ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        let owner = self.owners.remove(&id);
        let (Err(error), Some(at)) = (ended, owner) else {
            return;
        };
        tracing::error!(pod = at.name, %error, "the task of a pod ended unexpectedly");
        let key = (at.namespace, at.name);
        let Some(known) = self.pods.get(&key).filter(|known| known.uid == at.uid) else {
            return;
        };
        // The pod's processes died with its task, and the pod must not look alive.
        let mut lost = known.pod.clone();
        lost.status.get_or_insert_default().phase = Some("Running".to_owned());
        let task = self.spawn(lost, None);
        if let Some(known) = self.pods.get_mut(&key) {
            known.task = Some(task);
        }
    }
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec
        .as_ref()?
        .node_name
        .as_deref()
        .filter(|node| !node.is_empty())
}

/// Returns true if this agent should bind the pod to its node.
fn needs_binding(pod: &Pod, bind: Bind) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let scheduler = spec.scheduler_name.as_deref().unwrap_or(DEFAULT_SCHEDULER);
    let ours = match bind {
        Bind::None => false,
        Bind::DefaultScheduler => scheduler == DEFAULT_SCHEDULER,
        Bind::Any => true,
    };
    let gated = spec
        .scheduling_gates
        .as_ref()
        .is_some_and(|gates| !gates.is_empty());
    ours && node_of(pod).is_none() && !gated && pod.metadata.deletion_timestamp.is_none()
}

/// The reason that a pod is not bound, as a scheduler gives it.
const UNSCHEDULABLE: &str = "Unschedulable";

fn is_reported(pod: &Pod, shortage: &str) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions
        .any(|condition| condition.type_ == "PodScheduled" && condition.message.as_deref() == Some(shortage))
}

async fn report_shortage(agent: Arc<Agent>, pod: PodRef, shortage: String) {
    let status = PodStatus {
        phase: Some("Pending".to_owned()),
        conditions: Some(vec![PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some(UNSCHEDULABLE.to_owned()),
            message: Some(shortage),
            last_transition_time: Some(Time(Timestamp::now())),
            ..PodCondition::default()
        }]),
        ..PodStatus::default()
    };
    for delay in retries() {
        match agent.api.report(&pod, &status).await {
            Ok(()) | Err(ApiError::Gone | ApiError::Conflict(_)) => return,
            Err(error) => {
                error.before_retry(&pod.name, "report the state", delay).await;
            }
        }
    }
}

async fn bind(agent: Arc<Agent>, pod: PodRef) {
    for delay in retries() {
        match agent.api.bind(&pod, &agent.config.name).await {
            // After a conflict, the pod is bound already, or deleted.
            Ok(()) | Err(ApiError::Gone | ApiError::Conflict(_)) => return,
            Err(error) => {
                error.before_retry(&pod.name, "bind the pod", delay).await;
            }
        }
    }
}
