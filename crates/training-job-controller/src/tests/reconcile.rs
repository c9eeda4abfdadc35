use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::cache::stored_job::RawJob;
use super::super::clock::Clock;
use super::super::events;
use super::super::job_state::JobState;
use super::super::metrics::Metrics;
use super::super::operator::{Operator, Options};
use super::super::reconcile::reconcile;
use super::super::reconciler::{FirstList, JobReconciler};
use super::super::watch::on_job_event;
use super::log::Log;
use super::server::{client, failure};
use super::toy::{MADE, ToyJob, raw, raw_job as job, with_workers};
use kube_follow::Event;
use training_job::Kind;
use training_job::api::FailureRecord;
use training_job::plan::observed::ServiceRecord;
use training_job::plan::{ChildKind, PlannedEvent};

/// A reconciler of one kind, its operator, and a flag for the completed first list.
struct Bench {
    operator: Operator,
    kind: JobReconciler,
    listed: watch::Sender<FirstList>,
}

impl Bench {
    /// Creates a bench whose calls never get a response.
    fn new() -> Self {
        let deaf = |_| std::future::pending::<std::io::Result<http::Response<kube::client::Body>>>();
        Self::with(
            Client::new(tower::service_fn(deaf), "default"),
            Options::default(),
        )
    }

    fn with(client: Client, options: Options) -> Self {
        Self {
            operator: Operator::new(client, options).manage::<ToyJob>(),
            kind: JobReconciler::new(Arc::new(Kind::of::<ToyJob>()), 0, &Metrics::default()),
            listed: FirstList::sender(),
        }
    }

    fn take(&self, event: Event<RawJob>) {
        on_job_event(&self.kind, &self.operator.context, event, &self.listed);
    }

    /// Returns the UIDs of the jobs with a stored state.
    fn remembered(&self) -> Vec<String> {
        self.kind.states().keys().cloned().collect()
    }
}

#[tokio::test]
async fn the_state_of_a_job_is_removed_with_it() {
    let lists = |job| vec![Event::ListStarted, Event::Listed(job), Event::ListDone];
    let ends = [
        vec![Event::Deleted(job("a", 7))],
        vec![Event::Applied(job("b", 7))],
        lists(job("b", 7)),
        vec![Event::ListStarted, Event::ListDone],
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let bench = Bench::new();
        lists(job("a", 5)).into_iter().for_each(|event| bench.take(event));
        assert_eq!(*bench.listed.borrow(), FirstList::Complete);
        bench.kind.states().insert("a".to_owned(), JobState::default());
        bench.take(Event::Applied(job("a", 6)));
        assert_eq!(bench.remembered(), ["a"], "{number}: it has changed");
        end.into_iter().for_each(|event| bench.take(event));
        assert_eq!(bench.remembered(), [""; 0], "{number}");
    }
}

#[tokio::test]
async fn a_job_without_a_name_is_ignored() {
    let nameless = || {
        let mut job = job("a", 5);
        job.metadata.name = None;
        job
    };
    for event in [Event::Listed(nameless()), Event::Applied(nameless())] {
        let bench = Bench::new();
        bench.take(event);
        assert_eq!(bench.kind.jobs().all().count(), 0);
    }
}

/// A clock that stands still unless it is set; seconds since 1970.
struct FrozenClock(AtomicI64);

impl Clock for FrozenClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::Relaxed)).unwrap()
    }
}

/// Returns a client of a server without services, which takes 20 s to respond 404. Deletes are recorded.
fn without_services(clock: Arc<FrozenClock>, deleted: Arc<Mutex<Vec<String>>>) -> Client {
    client(move |method, path, _| {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if method != "DELETE" {
            return (200, json!({"kind": "Status", "status": "Success"}));
        }
        deleted.lock().push(name.clone());
        if !path.contains("/services/") {
            return (200, json!({"kind": "Status", "status": "Success"}));
        }
        clock.0.fetch_add(20, Ordering::Relaxed);
        let (code, mut status) = failure(404, "NotFound");
        status["details"] = json!({"name": name, "kind": "services"});
        (code, status)
    })
}

/// No watch event follows that would cause the second reconcile.
#[tokio::test(start_paused = true)]
async fn a_job_whose_time_to_live_ends_while_its_services_are_deleted_is_deleted() {
    let mut ended = with_workers(1);
    ended["spec"]["runPolicy"] = json!({"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 10});
    ended["status"] = json!({
        "conditions": [{"type": "Succeeded", "status": "True", "reason": "", "message": ""}],
        "startTime": "2030-01-01T00:00:00Z", "completionTime": "2030-01-01T00:01:00Z",
    });
    let service = json!({
        "metadata": {
            "name": "job-worker-0", "namespace": "ns", "uid": "s", "resourceVersion": "4",
            "ownerReferences":
                [{"apiVersion": "example.com/v1", "kind": "ToyJob", "name": "job", "uid": "a", "controller": true}],
        },
    });
    let end: Timestamp = "2030-01-01T00:01:00Z".parse().unwrap();
    let clock = Arc::new(FrozenClock(AtomicI64::new(end.as_second() + 1)));
    let deleted = Arc::new(Mutex::new(Vec::new()));
    let options = Options {
        clock: clock.clone(),
        ..Options::default()
    };
    let bench = Bench::with(without_services(clock, deleted.clone()), options);
    bench.take(Event::Applied(raw(&ended)));
    let context = &bench.operator.context;
    let service = serde_json::from_value(service).unwrap();
    context
        .children()
        .applied::<ServiceRecord>(ChildKind::Service, &service);
    for _ in 0..2 {
        let (key, waited) = tokio::time::timeout(Duration::from_secs(3_600), context.queue.next())
            .await
            .expect("it is reconciled again");
        reconcile(&bench.kind, context, &key, waited).await;
        context.queue.done(&key);
    }
    assert_eq!(*deleted.lock(), ["job-worker-0", "job"]);
}

/// No call gets a response, so only as many of the hundred pods are rendered as calls may be in flight.
#[tokio::test(start_paused = true)]
async fn a_pod_is_rendered_when_its_call_is_permitted() {
    let bench = Bench::new();
    let owner = json!({"apiVersion": "example.com/v1", "kind": "ToyJob", "name": "job", "uid": "a", "controller": true});
    let context = &bench.operator.context;
    for index in 0..100 {
        let service = json!({"metadata": {"name": format!("job-worker-{index}"), "namespace": "ns",
            "uid": format!("s-{index}"), "resourceVersion": "4", "ownerReferences": [owner]}});
        let service = serde_json::from_value(service).unwrap();
        context
            .children()
            .applied::<ServiceRecord>(ChildKind::Service, &service);
    }
    bench.take(Event::Applied(raw(&with_workers(100))));
    let (key, waited) = context.queue.next().await;
    let reconcile = reconcile(&bench.kind, context, &key, waited);
    let ended = tokio::time::timeout(Duration::from_secs(1), reconcile).await;
    assert!(ended.is_err(), "it waits for answers");
    assert_eq!(MADE.get(), 32);
}

/// Returns a client of a server that fails every call with code 500.
fn with_server_errors() -> Client {
    client(|_, _, _| failure(500, "InternalError"))
}

#[tokio::test(start_paused = true)]
async fn all_log_lines_of_a_reconcile_have_its_job_and_generation() {
    let (log, _guard) = Log::start();
    let bench = Bench::with(with_server_errors(), Options::default());
    let mut job = with_workers(1);
    job["metadata"]["generation"] = json!(3);
    bench.take(Event::Applied(raw(&job)));
    let context = &bench.operator.context;
    let (key, waited) = context.queue.next().await;
    reconcile(&bench.kind, context, &key, waited).await;

    let lines = log.lines();
    let messages: Vec<_> = lines
        .iter()
        .map(|line| line["message"].as_str().unwrap_or_default())
        .collect();
    assert!(
        messages.contains(&"reconciled") && messages.contains(&"failed to reconcile"),
        "{messages:?}"
    );
    for line in &lines {
        let span = &line["span"];
        let fields = ["name", "kind", "namespace", "job"].map(|field| span[field].as_str().unwrap());
        assert_eq!(fields, ["reconcile", "ToyJob", "ns", "job"], "{line}");
        assert_eq!(span["generation"], 3, "{line}");
    }
    let has_duration = |line: &&Value| line["span"]["duration_ms"].is_u64();
    assert!(lines.last().filter(has_duration).is_some(), "{lines:?}");
}

/// Returns a client of a server that stores every object that is created, and fails other calls.
fn with_creates() -> Client {
    client(|method, _, mut object| {
        object["metadata"]["uid"] = "u".into();
        object["metadata"]["resourceVersion"] = "9".into();
        (if method == "POST" { 201 } else { 500 }, object)
    })
}

#[tokio::test(start_paused = true)]
async fn log_lines_of_actions_and_of_failures_have_the_same_role_and_index() {
    let (log, _guard) = Log::start();
    let bench = Bench::with(with_creates(), Options::default());
    bench.take(Event::Applied(raw(&with_workers(2))));
    let context = &bench.operator.context;
    let (key, waited) = context.queue.next().await;
    reconcile(&bench.kind, context, &key, waited).await;
    let failure = FailureRecord {
        role: Some("Worker".to_owned()),
        index: Some(1),
        ..FailureRecord::default()
    };
    let event = PlannedEvent {
        warning: true,
        reason: "ToyJobFailed".to_owned(),
        message: "the event".to_owned(),
    };
    events::log("ToyJob", "ns", "job", Some(&failure), &event);

    let fields = |message: &str| {
        let lines = log.lines();
        let line = lines.iter().find(|line| line["message"] == message);
        let line = line.unwrap_or_else(|| panic!("no {message} in {lines:?}"));
        (line["role"].clone(), line["index"].clone())
    };
    let expected = (json!("Worker"), json!(1));
    assert_eq!(fields("created pod job-worker-1"), expected);
    assert_eq!(fields("created service job-worker-1"), expected);
    assert_eq!(fields("the event"), expected);
}

#[tokio::test(start_paused = true)]
async fn an_active_job_without_pods_waits_for_them_until_it_is_gone() {
    for (suspend, waits) in [(false, true), (true, false)] {
        let options = Options::default();
        let mut registry = Registry::default();
        options.metrics.register(&mut registry);
        let longest = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            let name = "oldest_job_without_pods_seconds ";
            let value = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            value.parse::<f64>().unwrap()
        };
        let job = || {
            let status = if suspend { "True" } else { "False" };
            let mut job = with_workers(1);
            job["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
            job["spec"]["runPolicy"] = json!({"suspend": suspend});
            job["status"] = json!({"conditions": [{"type": "Suspended", "status": status}]});
            raw(&job)
        };
        let bench = Bench::with(with_server_errors(), options);
        let context = &bench.operator.context;
        bench.take(Event::Applied(job()));
        let (key, waited) = context.queue.next().await;
        reconcile(&bench.kind, context, &key, waited).await;
        assert_eq!(longest() > 1e6, waits, "suspended: {suspend}");
        bench.take(Event::Deleted(job()));
        assert!(longest() < 1.0, "the job is gone");
    }
}
