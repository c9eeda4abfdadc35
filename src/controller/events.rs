//! Events about jobs, as the Go operator's clients read them (`v1 Event`).

use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::job::TrainingJob;
use crate::plan::{ChildKind, PlannedEvent};

use super::apply::{Applied, ApplyError, noun};
use super::retry::call;
use super::stored::Stored;

/// The most names that one event lists.
const MAX_NAMES: usize = 10;

/// Sends events; one that cannot be sent is logged and lost, since nothing may depend on it.
pub(super) struct Recorder {
    client: Client,
    sent: AtomicU64,
}

impl Recorder {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            sent: AtomicU64::new(0),
        }
    }

    pub(super) async fn send<J: TrainingJob>(&self, job: &Stored<J>, event: &PlannedEvent, now: Timestamp) {
        use kube::Resource;
        let meta = job.meta();
        let namespace = meta.namespace.clone().unwrap_or_default();
        let name = meta.name.clone().unwrap_or_default();
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        // Names of events need only be unique: time and number are, within a job.
        let unique = format!("{name}.{:x}{:04x}", now.as_nanosecond(), number % 0x1_0000);
        let body = Event {
            metadata: ObjectMeta {
                name: Some(unique),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(J::api_version(&()).into_owned()),
                kind: Some(J::kind(&()).into_owned()),
                name: Some(name.clone()),
                namespace: Some(namespace.clone()),
                uid: meta.uid.clone(),
                resource_version: meta.resource_version.clone(),
                ..ObjectReference::default()
            },
            type_: Some(if event.warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some(event.reason.clone()),
            message: Some(event.message.clone()),
            source: Some(EventSource {
                component: Some(J::FRAMEWORK.controller.to_owned()),
                host: None,
            }),
            reporting_component: Some(J::FRAMEWORK.controller.to_owned()),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            count: Some(1),
            ..Event::default()
        };
        let api = Api::<Event>::namespaced(self.client.clone(), &namespace);
        if let Err(error) = call(api.create(&PostParams::default(), &body)).await {
            tracing::warn!(namespace, name, reason = event.reason, %error, "failed to send an event");
        }
    }
}

/// The events that tell what was done: one for all objects of a kind, however many they are.
pub(super) fn of_applied(applied: &Applied) -> Vec<PlannedEvent> {
    let done = [
        (
            "SuccessfulCreateService",
            "Created service",
            &applied.created_services,
        ),
        ("SuccessfulCreatePod", "Created pod", &applied.created_pods),
        ("SuccessfulDeletePod", "Deleted pod", &applied.deleted_pods),
        (
            "SuccessfulDeleteService",
            "Deleted service",
            &applied.deleted_services,
        ),
    ];
    let mut events = Vec::new();
    for (reason, done, names) in done {
        let message = match &names[..] {
            [] => continue,
            [name] => format!("{done}: {name}"),
            names if names.len() <= MAX_NAMES => format!("{done}s: {}", names.join(", ")),
            names => format!(
                "{done}s: {} and {} more",
                names[..MAX_NAMES].join(", "),
                names.len() - MAX_NAMES
            ),
        };
        events.push(PlannedEvent {
            warning: false,
            reason: reason.to_owned(),
            message,
        });
    }
    events
}

/// The events that tell what could not be done: one for each kind and cause.
pub(super) fn of_failures(applied: &Applied) -> Vec<PlannedEvent> {
    let mut events: Vec<PlannedEvent> = Vec::new();
    for failure in &applied.failures {
        // Waiting for a predecessor to go is no failure.
        if matches!(failure.problem, ApplyError::StillThere | ApplyError::NotTried) {
            continue;
        }
        let (verb, doing) = if failure.creating {
            ("Create", "creating")
        } else {
            ("Delete", "deleting")
        };
        let object = match failure.kind {
            ChildKind::Pod => "Pod",
            ChildKind::Service => "Service",
        };
        let reason = format!("Failed{verb}{object}");
        if events.iter().all(|e| e.reason != reason) {
            let message = format!(
                "Error {doing}: {} {}: {}",
                noun(failure.kind),
                failure.name,
                failure.problem
            );
            events.push(PlannedEvent {
                warning: true,
                reason,
                message: message.chars().take(1_000).collect(),
            });
        }
    }
    events
}
