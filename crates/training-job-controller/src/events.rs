//! Events of jobs (`v1 Event`), as clients of the Go operator read them.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams, Request};
use kube::{Client, Resource};
use kube_follow::{CallError, backoff};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use training_job::ObjectDefinition;
use training_job::api::FailureRecord;
use training_job::plan::{ChildKind, PlannedEvent, printable, reasons};

use super::answers::Answer;
use super::cache::stored_job::StoredJob;
use super::calls::{CallLimiter, Urgency};
use super::event_series::{Decision, EventKey, EventSeries, Repetition};
use super::metrics::{DropCause, Metrics};
use super::steps::{Action, Applied, ApplyError, ApplyFailure, ChildAction};

/// Maximum number of names in one event.
const MAX_NAMES_IN_MESSAGE: usize = 10;

/// Maximum length of an event's message in bytes, set by the API.
const MAX_MESSAGE_BYTES: usize = 1_024;

/// Maximum length of the job's name within an event's name, in bytes. Object names have at most 253.
const MAX_JOB_NAME_BYTES: usize = 200;

/// Maximum number of events that wait to be sent: a burst of some thousand jobs.
const MAX_QUEUED_EVENTS: usize = 10_000;

/// Maximum number of events in flight.
const MAX_EVENTS_IN_FLIGHT: usize = 8;

/// Maximum number of times that an event is sent whose outcome is unknown, unless the server is away.
const MAX_SENDS: u32 = 3;

/// The end of a refusal's message if the job gave its part back.
const GAVE_BACK: &str = "; deleted what was created for this job, because an earlier job of this namespace waits with a part \
    of what it needs";

/// An event that waits to be sent.
struct QueuedEvent {
    namespace: String,
    /// The name of the job.
    name: String,
    reason: String,
    key: EventKey,
    write: EventWrite,
    /// The place in the queue.
    number: u64,
    /// Number of sends with an unknown outcome.
    failures: u32,
}

/// The way an event is written.
enum EventWrite {
    /// As a new object. The serialized form takes half the memory.
    Create(Vec<u8>),
    /// By raising the count of the stored object.
    Repeat,
}

/// Sends events at the lowest priority. While the server is away, they wait in their order. An event that cannot be sent
/// otherwise is logged and lost, because nothing may depend on events.
pub(super) struct Recorder {
    client: Client,
    calls: CallLimiter,
    metrics: Metrics,
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Default)]
struct Waiting {
    /// Ordered by number, so that an event can be put back at its place.
    events: VecDeque<QueuedEvent>,
    next_number: u64,
    /// Repetitions, and events that are sent again, with their due times.
    later: Vec<(Instant, QueuedEvent)>,
    series: EventSeries,
    closed: Option<Instant>,
}

impl Waiting {
    /// Queues the events that are due, or all of them after `close`. Returns when the next one is due.
    fn queue_due(&mut self) -> Option<Instant> {
        let (now, all) = (Instant::now(), self.closed.is_some());
        let due: Vec<_> = self.later.extract_if(.., |(at, _)| all || *at <= now).collect();
        due.into_iter().for_each(|(_, event)| self.queue(event));
        self.later.iter().map(|(at, _)| *at).min()
    }

    fn queue(&mut self, mut event: QueuedEvent) {
        event.number = self.next_number;
        self.next_number += 1;
        self.events.push_back(event);
    }

    /// Queues an event again at its place.
    fn put_back(&mut self, event: QueuedEvent) {
        let place = self.events.partition_point(|other| other.number < event.number);
        self.events.insert(place, event);
    }
}

impl Recorder {
    pub(super) fn new(client: Client, calls: CallLimiter, metrics: Metrics) -> Self {
        Self {
            client,
            calls,
            metrics,
            waiting: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Queues an event. `ends_job` is true for an event that reports the end of the job.
    pub(super) fn record(&self, job: &StoredJob, event: &PlannedEvent, now: Timestamp, ends_job: bool) {
        let meta = job.meta();
        let name = meta.name.clone().unwrap_or_default();
        let uid = meta.uid.clone().unwrap_or_default();
        let unique = unique_name(&name, Some(&uid), event, now);
        let mut waiting = self.waiting.lock();
        let decision = waiting.series.record(&uid, event, &unique, now, ends_job);
        let queued = |key, write| QueuedEvent {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: name.clone(),
            reason: event.reason.clone(),
            key: (uid.clone(), key),
            write,
            number: 0,
            failures: 0,
        };
        match decision {
            Decision::Create(key, message) => {
                let event = PlannedEvent {
                    message,
                    ..event.clone()
                };
                // Strings, numbers and times always serialize.
                let body = serde_json::to_vec(&to_event(job, unique, &event, now)).unwrap_or_default();
                let event = queued(key, EventWrite::Create(body));
                if waiting.events.len() < MAX_QUEUED_EVENTS {
                    waiting.queue(event);
                } else {
                    waiting.series.failed(&event.key, false);
                    drop(waiting);
                    self.metrics.event_dropped(DropCause::Queue, 1);
                    log_dropped(&event, "too many events are queued");
                }
            }
            Decision::RepeatAt(key, at) => {
                let event = queued(key, EventWrite::Repeat);
                waiting.later.push((at, event));
            }
            Decision::Counted => {}
            Decision::Drop => {
                self.metrics.event_dropped(DropCause::RateLimit, 1);
                tracing::debug!(
                    namespace = meta.namespace,
                    job = name,
                    reason = event.reason,
                    "dropped an event because the job has too many"
                );
            }
        }
        self.changed.notify_one();
    }

    /// Sends events until the recorder is closed and the last event is sent, or until its deadline has passed.
    pub(super) async fn run(&self) {
        let mut sending = FuturesUnordered::new();
        loop {
            let (closed, next) = {
                let mut waiting = self.waiting.lock();
                let next = waiting.queue_due();
                let free = MAX_EVENTS_IN_FLIGHT
                    .saturating_sub(sending.len())
                    .min(waiting.events.len());
                sending.extend(waiting.events.drain(..free).map(|event| self.send(event)));
                (waiting.closed, next)
            };
            if closed.is_some() && sending.is_empty() {
                return;
            }
            let end = sleep_until(closed.unwrap_or_else(Instant::now));
            let due = sleep_until(next.unwrap_or_else(Instant::now));
            tokio::select! {
                Some(()) = sending.next() => {},
                () = self.changed.notified() => {},
                () = due, if next.is_some() => {},
                () = end, if closed.is_some() => {
                    let events = sending.len() + self.waiting.lock().events.len();
                    self.metrics.event_dropped(DropCause::Stop, events);
                    tracing::warn!(events, "abandoned the queued events");
                    return;
                },
            }
        }
    }

    /// Closes the recorder: no further events will come, and sending must end at `end`.
    pub(super) fn close(&self, end: Instant) {
        self.waiting.lock().closed = Some(end);
        self.changed.notify_one();
    }

    async fn send(&self, mut event: QueuedEvent) {
        let path = Event::url_path(&(), Some(&event.namespace));
        let is_patch = matches!(event.write, EventWrite::Repeat);
        let request = match &event.write {
            EventWrite::Create(body) => Request::new(path).create(&PostParams::default(), body.clone()),
            EventWrite::Repeat => {
                let repetition = self.waiting.lock().series.repetition(&event.key);
                let Some(repetition) = repetition else { return };
                let patch = Patch::Merge(repeat(&repetition));
                Request::new(path).patch(&repetition.name, &PatchParams::default(), &patch)
            }
        };
        let call = async {
            let request = request.map_err(kube::Error::BuildRequest)?;
            // The response contains no new data.
            self.client.request_text(request).await.map(drop)
        };
        match self.calls.call(Urgency::Event, &event.key.0, 0, call).await {
            Err(CallError::Away) => self.waiting.lock().put_back(event),
            Err(error) if event.failures + 1 < MAX_SENDS && Answer::from(&error) == Answer::Unknown => {
                event.failures += 1;
                let wait = backoff(event.failures, event.key.1).max(error.retry_after().unwrap_or_default());
                self.waiting.lock().later.push((Instant::now() + wait, event));
            }
            // An earlier send took effect, and its answer was lost.
            Err(error) if !is_patch && error.already_exists() => self.sent(event),
            Ok(()) => self.sent(event),
            Err(error) => {
                // An expired token or a busy server (401, 429) denies no patches for good.
                let denied = is_patch && error.code() == Some(403);
                self.waiting.lock().series.failed(&event.key, denied);
                self.metrics.event_dropped(DropCause::Call, 1);
                log_dropped(&event, &error.to_string());
            }
        }
    }

    /// Queues the next repetition of a stored event, if it has occurred meanwhile.
    fn sent(&self, mut event: QueuedEvent) {
        let mut waiting = self.waiting.lock();
        if let Some(at) = waiting.series.written(&event.key) {
            event.write = EventWrite::Repeat;
            event.failures = 0;
            waiting.later.push((at, event));
        }
    }
}

/// Returns the patch that raises the count of a stored event.
fn repeat(repetition: &Repetition) -> Value {
    let mut patch = json!({"count": repetition.count, "lastTimestamp": Time(repetition.last)});
    if let Some(message) = &repetition.message {
        patch["message"] = json!(stored_message(message));
    }
    patch
}

fn log_dropped(event: &QueuedEvent, error: &str) {
    let (namespace, job, reason) = (&event.namespace, &event.name, &event.reason);
    tracing::warn!(namespace, job, reason, problem = error, "failed to send an event");
}

/// Converts an event to the object that is stored under this name.
fn to_event(job: &StoredJob, unique: String, event: &PlannedEvent, now: Timestamp) -> Event {
    let kind = job.kind();
    let meta = job.meta();
    let framework = job.framework();
    let source = framework.event_source.unwrap_or(framework.controller).to_owned();
    Event {
        metadata: ObjectMeta {
            name: Some(unique),
            namespace: meta.namespace.clone(),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(kind.resource.api_version.clone()),
            kind: Some(kind.name().to_owned()),
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            ..ObjectReference::default()
        },
        type_: Some(if event.warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(event.reason.clone()),
        message: Some(stored_message(&event.message)),
        source: Some(EventSource {
            component: Some(source.clone()),
            host: None,
        }),
        reporting_component: Some(source),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        ..Event::default()
    }
}

/// Returns a printable message, cut to the API's limit.
fn stored_message(message: &str) -> String {
    cut(&printable(message.to_owned()), MAX_MESSAGE_BYTES).to_owned()
}

/// Logs an event in one line; for a failure, with the replica that failed first.
pub(super) fn log(
    kind: &str,
    namespace: &str,
    job: &str,
    failure: Option<&FailureRecord>,
    event: &PlannedEvent,
) {
    let (reason, message) = (&event.reason, printable(event.message.clone()));
    let role = failure.and_then(|f| f.role.as_ref());
    let index = failure.and_then(|f| f.index);
    if event.warning {
        tracing::warn!(kind, namespace, job, role, index, reason, "{message}");
    } else {
        tracing::info!(kind, namespace, job, reason, "{message}");
    }
}

/// Returns a unique name for an event: job, time, and a hash of UID, reason and message. A counter would restart with
/// each operator. The time comes first because event times are in seconds, and kubectl leaves events of the same
/// second in the order of their names.
fn unique_name(job: &str, uid: Option<&str>, event: &PlannedEvent, now: Timestamp) -> String {
    let mut hasher = DefaultHasher::new();
    (uid, &event.reason, &event.message).hash(&mut hasher);
    let job = cut(job, MAX_JOB_NAME_BYTES).trim_end_matches(['.', '-']);
    format!("{job}.{:016x}.{:016x}", now.as_nanosecond(), hasher.finish())
}

/// Returns the beginning of a text, at most this many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the events for the completed actions: one for all pods or services. Objects that the kind declares have none,
/// and others, such as a PodGroup, only for their deletion, as under the Go operator. Such events were 11 of the 28 calls
/// for an MPIJob of v1 with two workers.
pub(super) fn for_applied(applied: &Applied, declared: &[ObjectDefinition]) -> Vec<PlannedEvent> {
    let is_told = |done: &&ChildAction| match (done.kind, done.action) {
        (ChildKind::Object(_), Action::Create | Action::Patch) => false,
        (ChildKind::Object(kind), Action::Delete) => !declared.iter().any(|d| d.kind == kind),
        _ => true,
    };
    let event = |done: &ChildAction| {
        let (verb, participle, _) = verbs(done.action);
        let names = format!("{}: {}", noun(done.kind, done.names.len()), list(&done.names));
        if (done.action, done.kind) == (Action::Patch, ChildKind::Pod) {
            return PlannedEvent {
                warning: true,
                reason: reasons::POD_LABELS_CHANGED.to_owned(),
                message: format!(
                    "Another client changed labels by which services and the operator select the pod; restored on {names}"
                ),
            };
        }
        PlannedEvent {
            warning: false,
            reason: format!("Successful{verb}{}", done.kind.object_kind().kind),
            message: format!("{participle} {names}"),
        }
    };
    applied.done.iter().filter(is_told).map(event).collect()
}

/// Returns the noun for this many children of a kind.
fn noun(kind: ChildKind, count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{}{plural}", kind.noun())
}

/// Returns the first names, and how many more there are.
fn list(names: &[String]) -> String {
    match names.split_at_checked(MAX_NAMES_IN_MESSAGE) {
        Some((first, rest)) if !rest.is_empty() => format!("{} and {} more", first.join(", "), rest.len()),
        _ => names.join(", "),
    }
}

/// Returns the words for an action: for reasons, for completed actions, and for failures.
fn verbs(action: Action) -> (&'static str, &'static str, &'static str) {
    match action {
        Action::Create => ("Create", "Created", "creating"),
        Action::Adopt => ("Adopt", "Adopted", "adopting"),
        Action::Patch => ("Patch", "Patched", "patching"),
        Action::Delete => ("Delete", "Deleted", "deleting"),
    }
}

/// Returns the reason of the event about a failed action, such as `FailedCreatePod`.
pub(super) fn failure_reason(failure: &ApplyFailure) -> String {
    let (verb, ..) = verbs(failure.action);
    format!("Failed{verb}{}", failure.kind.object_kind().kind)
}

/// Returns the events for failures, one for each reason, each with its cause. If `has_waited_long` is true, objects of a predecessor that
/// are still being deleted are reported too.
pub(super) fn for_failures(applied: &Applied, has_waited_long: bool) -> Vec<(PlannedEvent, String)> {
    let mut events: Vec<(PlannedEvent, String)> = Vec::new();
    for failure in &applied.failures {
        let is_told = match failure.problem {
            // A predecessor is gone after its grace period, unless its node is lost or a finalizer keeps it.
            ApplyError::StillThere => has_waited_long,
            // The watch will deliver the object, or another failure is the cause.
            ApplyError::NotCached | ApplyError::NotTried | ApplyError::Call(CallError::Away) => false,
            _ => true,
        };
        if !is_told {
            continue;
        }
        let doing = match (failure.action, failure.kind) {
            (Action::Patch, ChildKind::Pod) => "restoring labels",
            (action, _) => verbs(action).2,
        };
        let reason = failure_reason(failure);
        if events.iter().all(|(event, _)| event.reason != reason) {
            let gave_back = if applied.gave_back && failure.lacks_capacity() {
                GAVE_BACK
            } else {
                ""
            };
            let cause = failure.cause();
            let others = applied.failures.iter().filter(|other| {
                let is_same_action = (other.action, other.kind) == (failure.action, failure.kind);
                is_same_action && other.cause() == cause
            });
            let names: Vec<_> = others.map(|other| other.name.clone()).collect();
            let message = format!(
                "Error {doing}: {} {}: {}{gave_back}",
                noun(failure.kind, names.len()),
                list(&names),
                failure.problem
            );
            let event = PlannedEvent {
                warning: true,
                reason,
                message,
            };
            events.push((event, cause + gave_back));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_follow::CallError;

    fn event(message: &str) -> PlannedEvent {
        PlannedEvent {
            warning: false,
            reason: "Why".to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn event_names_are_unique_ordered_and_valid() {
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
        let long = name(
            &format!("{}-{}", "a".repeat(MAX_JOB_NAME_BYTES - 1), "b".repeat(99)),
            "a",
        );
        assert!(long.len() <= 253 && !long.contains("-."), "{long}");
    }

    #[test]
    fn completed_actions_are_reported_with_at_most_ten_names() {
        let messages = |count: usize| {
            let mut applied = Applied::default();
            let deleted = (0..count).map(|n| Ok(((), format!("s{n}")))).collect();
            applied.add(Action::Delete, ChildKind::Service, deleted);
            for_applied(&applied, &[])
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
    fn failures_are_reported_once_for_each_kind_and_cause() {
        let failure = |kind, action, name: &str, problem| ApplyFailure {
            kind,
            action,
            name: name.to_owned(),
            problem,
        };
        let taken = || ApplyError::NameTaken(None);
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
        let events = |has_waited_long| -> Vec<_> {
            let events = for_failures(&applied, has_waited_long).into_iter();
            let told = events.map(|(e, _)| (e.warning, format!("{}: {}", e.reason, e.message)));
            told.collect()
        };
        let taken = "the name is taken by an object that this job does not control (it has no controller)";
        let expected = [
            format!("FailedCreatePod: Error creating: pod b: {taken}"),
            format!("FailedCreateService: Error creating: service d: {taken}"),
            "FailedDeleteService: Error deleting: service f: no response within 30 s".to_owned(),
        ];
        assert_eq!(events(false), expected.map(|text| (true, text)));
        let still_there =
            "FailedCreatePod: Error creating: pod a: an object of that name is still being deleted";
        assert_eq!(events(true)[0], (true, still_there.to_owned()));
    }

    #[test]
    fn texts_are_cut_at_character_boundaries() {
        assert_eq!(cut("aéé", 4), "aé");
        assert_eq!(cut("short", 9), "short");
    }
}
