//! An API stored in a map, behind the agent's own trait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Node as NodeObject, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::api::{ApiError, PodApi, PodRef, ServiceRef};
use crate::env_values::{ConfigData, ConfigEntries, ConfigRef};
use crate::{LogLine, Node, NodeConfig, NodeEvent};
use kube_follow::Event;

#[derive(Default)]
struct Objects {
    pods: BTreeMap<String, Pod>,
    services: Vec<ServiceRef>,
    config_refs: ConfigData,
    /// All reported phases, by pod name.
    phases: BTreeMap<String, Vec<String>>,
    nodes: Vec<NodeObject>,
}

pub(super) struct Fake {
    objects: Mutex<Objects>,
    events: mpsc::UnboundedSender<Event<Pod>>,
    changed: watch::Sender<()>,
    /// The number of next writes that fail.
    pub(super) failures: AtomicU32,
}

/// A node on a fake API, and its events.
pub(super) struct Bench {
    pub(super) api: Arc<Fake>,
    pub(super) node: Option<Node>,
    pub(super) events: mpsc::Receiver<NodeEvent>,
}

impl Bench {
    pub(super) fn new(config: NodeConfig) -> Self {
        Self::with(config, |_| {})
    }

    /// `before` adds objects before the node starts.
    pub(super) fn with(config: NodeConfig, before: impl FnOnce(&Fake)) -> Self {
        let (events, received) = mpsc::unbounded_channel();
        let api = Arc::new(Fake {
            objects: Mutex::default(),
            events,
            changed: watch::Sender::new(()),
            failures: AtomicU32::new(0),
        });
        before(&api);
        api.list();
        let (send, events) = mpsc::channel(1000);
        let node = Node::start_on(Arc::clone(&api) as Arc<dyn PodApi>, received, config, send).unwrap();
        Self {
            api,
            node: Some(node),
            events,
        }
    }

    /// Returns the lines written so far, as they are displayed.
    pub(super) fn lines(&mut self) -> Vec<String> {
        let events = std::iter::from_fn(|| self.events.try_recv().ok());
        let line = |event| {
            if let NodeEvent::Log(line) = event {
                Some(LogLine::to_string(&line))
            } else {
                None
            }
        };
        events.filter_map(line).collect()
    }

    pub(super) async fn line(&mut self, wanted: &str) -> String {
        let found = async {
            loop {
                match self.events.recv().await.unwrap() {
                    NodeEvent::Log(line) if line.text.contains(wanted) => return line.text,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, found)
            .await
            .unwrap_or_else(|_| panic!("no line with {wanted:?}"))
    }
}

const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

impl Fake {
    /// Adds a service of the pod of this name.
    pub(super) fn service(&self, name: &str) {
        self.service_of(name, name);
    }

    /// Adds a service of the pods whose label `app` has this value.
    pub(super) fn service_of(&self, name: &str, app: &str) {
        let service = ServiceRef {
            name: name.to_owned(),
            selector: [("app".to_owned(), app.to_owned())].into(),
        };
        self.objects.lock().services.push(service);
    }

    pub(super) fn config_map(&self, name: &str, key: &str, value: &str) {
        let entries = BTreeMap::from([(key.to_owned(), value.as_bytes().to_owned())]);
        self.objects
            .lock()
            .config_refs
            .insert(ConfigRef::ConfigMap(name.to_owned()), entries);
    }

    /// Adds a pod with `spec`, and merges `extra` over the whole object.
    pub(super) fn create(&self, name: &str, uid: &str, spec: &Value, extra: Value) {
        let mut pod: Value = json!({
            "metadata": {"name": name, "namespace": "ns", "uid": uid}, "spec": spec, "status": {"phase": "Pending"},
        });
        for (part, fields) in extra.as_object().into_iter().flatten() {
            for (field, value) in fields.as_object().unwrap() {
                pod[part][field] = value.clone();
            }
        }
        self.put(serde_json::from_value(pod).unwrap(), Event::Applied);
    }

    /// Deletes a pod without an event, so that only the next list shows it.
    pub(super) fn vanish(&self, name: &str) {
        self.objects.lock().pods.remove(name);
        self.list();
    }

    fn list(&self) {
        let pods: Vec<Pod> = self.objects.lock().pods.values().cloned().collect();
        let listed = pods.into_iter().map(Event::Listed);
        for event in [Event::ListStarted]
            .into_iter()
            .chain(listed)
            .chain([Event::ListDone])
        {
            self.events.send(event).unwrap();
        }
    }

    /// Requests the deletion of a pod, as a user does.
    pub(super) fn delete_gracefully(&self, name: &str, seconds: i64) {
        let mut pod = self.get(name).unwrap();
        pod.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::now()));
        pod.metadata.deletion_grace_period_seconds = Some(seconds);
        self.put(pod, Event::Applied);
    }

    pub(super) fn get(&self, name: &str) -> Option<Pod> {
        self.objects.lock().pods.get(name).cloned()
    }

    pub(super) fn phases(&self, name: &str) -> Vec<String> {
        self.objects.lock().phases.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn nodes(&self) -> Vec<NodeObject> {
        self.objects.lock().nodes.clone()
    }

    /// Waits until the pod (or its absence) is as wanted.
    pub(super) async fn until(&self, name: &str, wanted: impl Fn(Option<&Pod>) -> bool) -> Option<Pod> {
        let mut changes = self.changed.subscribe();
        let reached = async {
            loop {
                let pod = self.get(name);
                if wanted(pod.as_ref()) {
                    return pod;
                }
                changes.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(WAIT_TIMEOUT, reached).await {
            Ok(pod) => pod,
            Err(_) => panic!("{name} did not get there: {:#?}", self.get(name)),
        }
    }

    pub(super) async fn phase(&self, name: &str, phase: &str) -> PodStatus {
        let wanted =
            |pod: Option<&Pod>| pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some(phase);
        self.until(name, wanted).await.unwrap().status.unwrap()
    }

    pub(super) async fn gone(&self, name: &str) {
        self.until(name, |pod| pod.is_none()).await;
    }

    fn put(&self, pod: Pod, event: fn(Pod) -> Event<Pod>) {
        self.objects.lock().pods.insert(pod.name_any(), pod.clone());
        let _ = self.events.send(event(pod));
        self.changed.send_replace(());
    }

    fn write(&self, at: &PodRef) -> Result<Pod, ApiError> {
        let failing = |left: u32| left.checked_sub(1);
        if self
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, failing)
            .is_ok()
        {
            return Err(ApiError::Failed("as the test wants".to_owned()));
        }
        self.get(&at.name)
            .filter(|pod| pod.uid().as_deref() == Some(&at.uid))
            .ok_or(ApiError::Gone)
    }
}

#[async_trait]
impl PodApi for Fake {
    async fn bind(&self, at: &PodRef, node: &str) -> Result<(), ApiError> {
        let mut pod = self.write(at)?;
        pod.spec.as_mut().unwrap().node_name = Some(node.to_owned());
        self.put(pod, Event::Applied);
        Ok(())
    }

    async fn report(&self, at: &PodRef, status: &PodStatus) -> Result<(), ApiError> {
        let mut pod = self.write(at)?;
        {
            let mut objects = self.objects.lock();
            let phases = objects.phases.entry(at.name.clone()).or_default();
            let phase = status.phase.clone().unwrap();
            if phases.last() != Some(&phase) {
                phases.push(phase);
            }
        }
        pod.status = Some(status.clone());
        self.put(pod, Event::Applied);
        Ok(())
    }

    async fn delete(&self, at: &PodRef) -> Result<(), ApiError> {
        let pod = self.write(at)?;
        self.objects.lock().pods.remove(&at.name);
        let _ = self.events.send(Event::Deleted(pod));
        self.changed.send_replace(());
        Ok(())
    }

    async fn services(&self, _: &str, names: &BTreeSet<String>) -> Result<Vec<ServiceRef>, ApiError> {
        let services = self.objects.lock().services.clone().into_iter();
        Ok(services.filter(|service| names.contains(&service.name)).collect())
    }

    async fn contents(&self, _: &str, store: &ConfigRef) -> Result<Option<ConfigEntries>, ApiError> {
        Ok(self.objects.lock().config_refs.get(store).cloned())
    }

    async fn register(&self, node: &NodeObject) -> Result<(), ApiError> {
        self.objects.lock().nodes.push(node.clone());
        self.changed.send_replace(());
        Ok(())
    }

    async fn unregister(&self, node: &str) -> Result<(), ApiError> {
        let others = |other: &NodeObject| other.name_any() != node;
        self.objects.lock().nodes.retain(others);
        Ok(())
    }
}
