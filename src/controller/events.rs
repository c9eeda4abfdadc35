//! Events about jobs, as the Go operator's clients read them (`v1 Event`).

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{PostParams, Request};
use kube::{Client, Resource};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::api::FailureRecord;
use crate::job::TrainingJob;
use crate::plan::PlannedEvent;

use super::cache::stored_job::StoredJob;
use super::calls::{Calls, Urgency};
use super::steps::{Action, Applied, ApplyError, Done};

/// The most names that one event lists.
const MAX_NAMES: usize = 10;

/// The most bytes of an event's message, as the API has it.
const MAX_MESSAGE: usize = 1_024;

/// The most bytes of the job's name in an event's: names of objects have 253 at most.
const MAX_NAME: usize = 200;

/// The most events that wait to be sent: a burst of some thousand jobs.
const MOST_WAITING: usize = 10_000;

/// Events that are sent at once.
const AT_ONCE: usize = 8;

/// An event that waits to be sent. As text it takes half the memory.
struct Told {
    namespace: String,
    /// The job, and its UID.
    name: String,
    uid: String,
    reason: String,
    body: Vec<u8>,
}

/// Sends events, behind everything else; one that cannot be sent is logged and lost, since nothing may depend on it.
pub(super) struct Recorder {
    client: Client,
    calls: Calls,
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Told>,
    closed: Option<Instant>,
}

impl Recorder {
    pub(super) fn new(client: Client, calls: Calls) -> Self {
        Self {
            client,
            calls,
            waiting: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Has an event sent.
    pub(super) fn record<J: TrainingJob>(&self, job: &StoredJob<J>, event: &PlannedEvent, now: Timestamp) {
        let meta = job.meta();
        let event = Told {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            reason: event.reason.clone(),
            // Texts, numbers and times always serialize.
            body: serde_json::to_vec(&about(job, event, now)).unwrap_or_default(),
        };
        let mut waiting = self.lock();
        if waiting.events.len() < MOST_WAITING {
            waiting.events.push_back(event);
        } else {
            drop(waiting);
            lost(&event, "too many events wait");
        }
        self.changed.notify_one();
    }

    /// Sends events as they come, until it is closed and the last one is sent, or it is to end.
    pub(super) async fn run(&self) {
        let mut sending = FuturesUnordered::new();
        loop {
            let closed = {
                let mut waiting = self.lock();
                let room = AT_ONCE.saturating_sub(sending.len()).min(waiting.events.len());
                sending.extend(waiting.events.drain(..room).map(|event| self.send(event)));
                waiting.closed
            };
            if closed.is_some() && sending.is_empty() {
                return;
            }
            let end = sleep_until(closed.unwrap_or_else(Instant::now));
            tokio::select! {
                Some(()) = sending.next() => {},
                () = self.changed.notified() => {},
                () = end, if closed.is_some() => {
                    let events = sending.len() + self.lock().events.len();
                    tracing::warn!(events, "events are abandoned");
                    return;
                },
            }
        }
    }

    /// Says that no further events will come, and when who sends them must end.
    pub(super) fn close(&self, end: Instant) {
        self.lock().closed = Some(end);
        self.changed.notify_one();
    }

    async fn send(&self, mut event: Told) {
        let body = std::mem::take(&mut event.body);
        let create = self.create(&event.namespace, body);
        if let Err(error) = self.calls.call(Urgency::Event, &event.uid, 0, create).await {
            lost(&event, &error.to_string());
        }
    }

    async fn create(&self, namespace: &str, body: Vec<u8>) -> kube::Result<()> {
        let path = Event::url_path(&(), Some(namespace));
        let request = Request::new(path).create(&PostParams::default(), body);
        let request = request.map_err(kube::Error::BuildRequest)?;
        // The answer has nothing that is not known.
        self.client.request_text(request).await.map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // No code that holds the lock can leave it half-changed.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lost(event: &Told, error: &str) {
    let (namespace, name, reason) = (&event.namespace, &event.name, &event.reason);
    tracing::warn!(namespace, name, reason, error, "failed to send an event");
}

/// The event as it is stored.
fn about<J: TrainingJob>(job: &StoredJob<J>, event: &PlannedEvent, now: Timestamp) -> Event {
    let meta = job.meta();
    let name = meta.name.clone().unwrap_or_default();
    let unique = unique_name(&name, meta.uid.as_deref(), event, now);
    Event {
        metadata: ObjectMeta {
            name: Some(unique),
            namespace: meta.namespace.clone(),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(J::api_version(&()).into_owned()),
            kind: Some(J::kind(&()).into_owned()),
            name: Some(name),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            ..ObjectReference::default()
        },
        type_: Some(if event.warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(event.reason.clone()),
        message: Some(cut(&event.message, MAX_MESSAGE).to_owned()),
        source: Some(EventSource {
            component: Some(J::FRAMEWORK.controller.to_owned()),
            host: None,
        }),
        reporting_component: Some(J::FRAMEWORK.controller.to_owned()),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        ..Event::default()
    }
}

/// One line for what an event tells; of a failure, with the replica that failed first.
pub(super) fn log(
    kind: &str,
    namespace: &str,
    job: &str,
    failure: Option<&FailureRecord>,
    event: &PlannedEvent,
) {
    let (reason, message) = (&event.reason, &event.message);
    let role = failure.and_then(|f| f.role.as_ref());
    let index = failure.and_then(|f| f.index);
    if event.warning {
        tracing::warn!(kind, namespace, job, role, index, reason, "{message}");
    } else {
        tracing::info!(kind, namespace, job, reason, "{message}");
    }
}

/// A name that no other event has: what is said of which job, and when. A counter would begin anew with
/// each operator. The time comes first: times of events are in seconds, and kubectl leaves those of
/// one second in the order of their names.
fn unique_name(job: &str, uid: Option<&str>, event: &PlannedEvent, now: Timestamp) -> String {
    let mut hasher = DefaultHasher::new();
    (uid, &event.reason, &event.message).hash(&mut hasher);
    let job = cut(job, MAX_NAME).trim_end_matches(['.', '-']);
    format!("{job}.{:016x}.{:016x}", now.as_nanosecond(), hasher.finish())
}

/// The beginning of a text, of so many bytes at most.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The events that tell what was done: one for all objects of a kind, however many they are.
pub(super) fn for_applied(applied: &Applied) -> Vec<PlannedEvent> {
    let event = |done: &Done| {
        let (verb, participle, _) = verbs(done.action);
        let noun = done.kind.noun();
        let message = match &done.names[..] {
            [name] => format!("{participle} {noun}: {name}"),
            names if names.len() <= MAX_NAMES => format!("{participle} {noun}s: {}", names.join(", ")),
            names => format!(
                "{participle} {noun}s: {} and {} more",
                names[..MAX_NAMES].join(", "),
                names.len() - MAX_NAMES
            ),
        };
        PlannedEvent {
            warning: false,
            reason: format!("Successful{verb}{}", done.kind.object_kind().kind),
            message,
        }
    };
    applied.done.iter().map(event).collect()
}

/// The verb for an action in reasons, in what was done, and in what could not be done.
fn verbs(action: Action) -> (&'static str, &'static str, &'static str) {
    match action {
        Action::Create => ("Create", "Created", "creating"),
        Action::Adopt => ("Adopt", "Adopted", "adopting"),
        Action::Patch => ("Patch", "Patched", "patching"),
        Action::Delete => ("Delete", "Deleted", "deleting"),
    }
}

/// The events that tell what could not be done: one for each kind and cause.
pub(super) fn for_failures(applied: &Applied) -> Vec<PlannedEvent> {
    let mut events: Vec<PlannedEvent> = Vec::new();
    for failure in &applied.failures {
        // Waiting for a predecessor to go, or for the watch, is no failure.
        let waits = matches!(
            failure.problem,
            ApplyError::StillThere | ApplyError::NotCached | ApplyError::NotTried
        );
        if waits {
            continue;
        }
        let (verb, _, doing) = verbs(failure.action);
        let object = failure.kind.object_kind().kind;
        let reason = format!("Failed{verb}{object}");
        if events.iter().all(|e| e.reason != reason) {
            let message = format!(
                "Error {doing}: {} {}: {}",
                failure.kind.noun(),
                failure.name,
                failure.problem
            );
            events.push(PlannedEvent {
                warning: true,
                reason,
                message,
            });
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::super::steps::ApplyFailure;
    use super::*;
    use crate::plan::ChildKind;
    use kube_follow::CallError;

    fn event(message: &str) -> PlannedEvent {
        PlannedEvent {
            warning: false,
            reason: "Why".to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn names_differ_and_are_names() {
        let now = Timestamp::UNIX_EPOCH;
        let name = |job: &str, message| unique_name(job, Some("u"), &event(message), now);
        assert_ne!(name("job", "a"), name("job", "b"));
        assert_eq!(name("job", "a"), name("job", "a"));
        let later = |nanoseconds| {
            let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
            let at = now.checked_add(jiff::SignedDuration::from_nanos(nanoseconds));
            unique_name("job", Some("u"), &event("a"), at.unwrap())
        };
        let names: Vec<_> = [0, 1, 255, 256, 1_000_000_000].map(later).into();
        assert!(names.is_sorted(), "{names:?}");
        let long = name(&format!("{}-{}", "a".repeat(MAX_NAME - 1), "b".repeat(99)), "a");
        assert!(long.len() <= 253 && !long.contains("-."), "{long}");
    }

    #[test]
    fn what_was_done_is_told_by_ten_names_at_most() {
        let messages = |count: usize| {
            let mut applied = Applied::default();
            let deleted = (0..count).map(|n| Ok(((), format!("s{n}")))).collect();
            applied.add(Action::Delete, ChildKind::Service, deleted);
            for_applied(&applied)
                .into_iter()
                .map(|e| e.message)
                .collect::<Vec<_>>()
        };
        let ten = "Deleted services: s0, s1, s2, s3, s4, s5, s6, s7, s8, s9";
        assert_eq!(messages(0), [""; 0]);
        assert_eq!(messages(1), ["Deleted service: s0"]);
        assert_eq!(messages(10), [ten]);
        assert_eq!(messages(13), [format!("{ten} and 3 more")]);
    }

    #[test]
    fn failures_are_told_of_once_for_each_kind_and_cause() {
        let failure = |kind, action, name: &str, problem| ApplyFailure {
            kind,
            action,
            name: name.to_owned(),
            problem,
        };
        let taken = || ApplyError::NameTaken;
        let applied = Applied {
            failures: vec![
                failure(ChildKind::Pod, Action::Create, "a", ApplyError::StillThere),
                failure(ChildKind::Pod, Action::Create, "b", taken()),
                failure(ChildKind::Pod, Action::Create, "c", taken()),
                failure(ChildKind::Service, Action::Create, "d", taken()),
                failure(ChildKind::Pod, Action::Create, "e", ApplyError::NotTried),
                failure(
                    ChildKind::Service,
                    Action::Delete,
                    "f",
                    ApplyError::Call(CallError::Timeout(std::time::Duration::from_secs(30))),
                ),
            ],
            ..Applied::default()
        };
        let events: Vec<_> = for_failures(&applied)
            .into_iter()
            .map(|e| (e.warning, format!("{}: {}", e.reason, e.message)))
            .collect();
        let taken = "the name is taken by an object that this job does not control";
        let expected = [
            format!("FailedCreatePod: Error creating: pod b: {taken}"),
            format!("FailedCreateService: Error creating: service d: {taken}"),
            "FailedDeleteService: Error deleting: service f: no answer within 30 s".to_owned(),
        ];
        assert_eq!(events, expected.map(|text| (true, text)));
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("aéé", 4), "aé");
        assert_eq!(cut("short", 9), "short");
    }
}
