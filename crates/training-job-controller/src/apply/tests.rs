//! The outcome of each call for a child, by the response: the table of `answers.rs`, and the order of calls.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use parking_lot::Mutex;
use training_job::job::{ObjectKind, Settings};
use training_job::plan::Dangling;

use super::*;
use crate::operator::{Operator, Options};
use crate::tests::server::{client, failure};
use crate::tests::toy::{self, CONFIG, QUEUE, ToyJob};

/// A server whose responses a function of method and path returns. It records its requests.
struct Server {
    operator: Operator,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    fn new(respond: impl Fn(&str, &str) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let record = requests.clone();
        let client = client(move |method, path, body| {
            record.lock().push((format!("{method} {path}"), body));
            respond(method, path)
        });
        Self {
            operator: Operator::new(client, Options::default()).manage::<ToyJob>(),
            requests,
        }
    }

    fn applier(&self) -> Applier<'_> {
        Applier::new(&self.operator.context, &toy::job("a", 5), None, false)
    }

    /// Carries out a plan for a job with one worker.
    async fn apply(&self, plan: &Plan) -> Applied {
        let job = toy::job("a", 5);
        self.applier()
            .apply(plan, &Validated::of(&job, &Settings::default()))
            .await
    }

    /// Returns the requests, each as its method and its path after the namespace.
    fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock();
        let short = |line: &str| {
            line.replace("/namespaces/ns", "")
                .replace("/api/v1/", "")
                .replace("/apis/", "")
        };
        requests.iter().map(|(line, _)| short(line)).collect()
    }
}

/// Returns a stored object with this owner. `owner` is a UID; the owner is a ToyJob of the same name.
fn stored(owner: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({"metadata": {
        "name": "made", "namespace": "ns", "uid": "m", "resourceVersion": "9",
        "labels": {labels::OPERATOR_NAME: "toyjob-controller"},
        "ownerReferences":
            [{"apiVersion": "example.com/v1", "kind": "ToyJob", "name": "job", "uid": owner, "controller": true}],
    }});
    change(&mut object);
    object
}

/// The outcome of one call in one word, with the code if the response is passed on.
fn outcome<T: std::fmt::Debug>(result: Result<T, ApplyError>) -> String {
    match result {
        Ok(done) => format!("{done:?}"),
        Err(ApplyError::Call(error)) => format!("Call {}", error.code().unwrap_or_default()),
        Err(ApplyError::NameTaken(owner)) => {
            let owner = owner.map_or("nobody".to_owned(), |owner| {
                format!("{} {}", owner.kind, owner.name)
            });
            format!("NameTaken by {owner}")
        }
        Err(error) => format!("{error:?}"),
    }
}

/// Returns the response to the read of a name that exists: an object with these properties, or a failure.
fn read(properties: &str) -> (u16, Value) {
    let object = |owner: &str| stored(owner, |_| ());
    let words: Vec<&str> = properties.split(' ').collect();
    let mut object = match words[0] {
        "ours" => object("a"),
        "predecessor's" => object("b"),
        "another's" => stored("b", |object| {
            object["metadata"]["ownerReferences"][0]["name"] = json!("other")
        }),
        "nobody's" => stored("a", |object| object["metadata"]["ownerReferences"] = json!([])),
        "Status" => {
            return (
                200,
                json!({"kind": "Status", "metadata": {}, "status": "Success"}),
            );
        }
        "gone" => {
            let (code, mut status) = failure(404, "NotFound");
            status["details"] = json!({"name": "made"});
            return (code, status);
        }
        code => return failure(code.parse().unwrap(), "Failure"),
    };
    if words.contains(&"unlabelled") {
        object["metadata"]["labels"] = json!({});
    }
    if words.contains(&"deleting") {
        object["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    }
    (200, object)
}

#[tokio::test]
async fn a_name_that_exists_is_adopted_or_waited_for_by_its_owner() {
    // The object with the name, the response to a patch if there is one, and the outcome.
    for (found, patch, wanted) in [
        ("ours", None, "Created"),
        ("ours deleting", None, "StillThere"),
        ("ours unlabelled", Some("ours"), "Adopted"),
        ("ours unlabelled", Some("404"), "NotCached"),
        ("ours unlabelled", Some("409"), "NotCached"),
        ("ours unlabelled", Some("403"), "Call 403"),
        ("ours unlabelled deleting", None, "StillThere"),
        ("predecessor's", None, "StillThere"),
        ("another's", None, "NameTaken by ToyJob other"),
        ("another's deleting", None, "StillThere"),
        ("nobody's", None, "NameTaken by nobody"),
        ("nobody's deleting", None, "StillThere"),
        ("404", None, "StillThere"),
        ("500", None, "Call 500"),
        ("403", None, "Call 403"),
    ] {
        let server = Server::new(move |method, _| match method {
            "POST" => failure(409, "AlreadyExists"),
            "GET" => read(found),
            _ => read(patch.unwrap_or("ours")),
        });
        let applier = server.applier();
        let api = applier.api::<ServiceRecord>(ChildKind::Service);
        let service = || {
            Some(
                json!({"metadata": {"name": "made", "labels": {"l": "1"}}, "spec": {"selector": {"s": "1"}}}),
            )
        };
        let made = applier
            .create_one::<ServiceRecord, _>(&api, ChildKind::Service, service, "made")
            .await;
        assert_eq!(outcome(made), wanted, "{found} {patch:?}");
        let patches = server
            .requests()
            .iter()
            .filter(|line| line.starts_with("PATCH"))
            .count();
        assert_eq!(patches, usize::from(patch.is_some()), "{found} {patch:?}");
    }
}

#[tokio::test]
async fn only_an_adopted_service_gets_a_selector() {
    for (kind, selector) in [
        (ChildKind::Service, json!({"s": "1", "$patch": "replace"})),
        (ChildKind::Object(CONFIG), json!(null)),
    ] {
        let server = Server::new(|_, _| (200, stored("a", |_| ())));
        let applier = server.applier();
        let there: PartialChild<ObjectRecord> = serde_json::from_value(stored("a", |_| ())).unwrap();
        let wanted = json!({"metadata": {"labels": {"l": "1"}}, "spec": {"selector": {"s": "1"}}});
        let api = applier.api::<ObjectRecord>(kind);
        applier.patch_labels(&api, kind, &there, &wanted).await.unwrap();
        let requests = server.requests.lock();
        let (_, patch) = &requests[0];
        assert_eq!(
            patch["metadata"],
            json!({"uid": "m", "resourceVersion": "9", "labels": {"l": "1"}})
        );
        assert_eq!(patch["spec"]["selector"], selector);
    }
}

#[tokio::test]
async fn a_patch_that_comes_too_late_waits_for_the_watch_and_others_are_errors() {
    for (response, wanted) in [
        (
            (200, stored("a", |object| object["data"] = json!({"k": "v"}))),
            "()",
        ),
        ((200, stored("a", |_| ())), "NotKept"),
        (failure(404, "NotFound"), "NotCached"),
        (failure(409, "Conflict"), "NotCached"),
        (failure(403, "Forbidden"), "Call 403"),
        (failure(422, "Invalid"), "Call 422"),
        (failure(500, "InternalError"), "Call 500"),
    ] {
        let server = Server::new(move |_, _| response.clone());
        let applier = server.applier();
        let patch = ObjectPatch {
            object: CONFIG.object("made", json!({"data": {"k": "v"}})),
            uid: "m".to_owned(),
        };
        let kind = ChildKind::Object(CONFIG);
        let patched = applier
            .patch_one(&applier.api::<ObjectRecord>(kind), kind, &patch)
            .await;
        assert_eq!(outcome(patched), wanted);
    }
}

#[tokio::test]
async fn only_a_forced_deletion_has_no_grace_period() {
    for (force, grace) in [(true, json!(0)), (false, json!(null))] {
        let server = Server::new(|_, _| (200, json!({"kind": "Status", "status": "Success"})));
        let plan = Plan {
            delete: vec![deletion(ChildKind::Pod, "made", force)],
            ..Plan::default()
        };
        assert!(server.apply(&plan).await.failures.is_empty());
        let requests = server.requests.lock();
        let (line, body) = &requests[0];
        assert_eq!(line, "DELETE /api/v1/namespaces/ns/pods/made");
        assert_eq!(body["gracePeriodSeconds"], grace);
        assert_eq!(body["preconditions"], json!({"uid": "m"}));
    }
}

#[tokio::test]
async fn an_object_whose_deletion_conflicts_is_gone_only_if_the_name_is_free_or_anothers() {
    for (found, wanted) in [
        ("ours", "Call 409"),
        ("gone", "()"),
        ("404", "Call 404"),
        ("renewed", "()"),
        ("Status", "Call 502"),
        ("500", "Call 500"),
    ] {
        let server = Server::new(move |method, _| match (method, found) {
            ("DELETE", _) => failure(409, "Conflict"),
            (_, "renewed") => (200, stored("a", |object| object["metadata"]["uid"] = json!("n"))),
            _ => read(found),
        });
        let applier = server.applier();
        let kind = ChildKind::Object(CONFIG);
        let api = applier.api::<ObjectRecord>(kind);
        let deleted = applier.delete_one(&api, &deletion(kind, "made", false)).await;
        assert_eq!(outcome(deleted), wanted, "{found}");
    }
}

fn deletion(kind: ChildKind, name: &str, force: bool) -> Deletion {
    Deletion {
        kind,
        name: name.to_owned(),
        uid: "m".to_owned(),
        force,
    }
}

#[tokio::test]
async fn each_patch_goes_to_the_path_of_its_kind() {
    let server = Server::new(|_, _| failure(409, "Conflict"));
    let patch = |kind: ObjectKind| ObjectPatch {
        object: kind.object("made", json!({})),
        uid: "m".to_owned(),
    };
    let plan = Plan {
        patch_objects: [CONFIG, CONFIG, QUEUE].map(patch).into(),
        ..Plan::default()
    };
    server.apply(&plan).await;
    let config = "PATCH configmaps/made";
    assert_eq!(
        server.requests(),
        [config, config, "PATCH example.com/v1/queues/made"]
    );
}

#[tokio::test]
async fn services_wait_for_objects_unless_these_are_optional() {
    let service: Service = serde_json::from_value(json!({"metadata": {"name": "made"}})).unwrap();
    for (kind, requests) in [
        // The toy kind can run without its queue.
        (QUEUE, &["POST example.com/v1/queues", "POST services"][..]),
        (CONFIG, &["POST configmaps"]),
    ] {
        let server = Server::new(|_, _| failure(422, "Invalid"));
        let plan = Plan {
            create_objects: vec![kind.object("made", json!({}))],
            create_services: vec![service.clone()],
            ..Plan::default()
        };
        server.apply(&plan).await;
        assert_eq!(server.requests(), requests);
    }
}

#[tokio::test]
async fn an_object_is_dangling_only_if_another_owner_has_the_name_that_it_refers_to() {
    let deleted = [
        "POST configmaps",
        "GET configmaps/made",
        "DELETE example.com/v1/queues/q",
    ];
    let others = || stored("b", |object| object["metadata"]["ownerReferences"] = json!([]));
    let predecessors = || stored("b", |_| ());
    for (case, held_by, kind, name, is_deleted) in [
        ("taken", others(), CONFIG, "made", true),
        (
            "of a predecessor, which is being deleted",
            predecessors(),
            CONFIG,
            "made",
            false,
        ),
        ("another name", others(), CONFIG, "other", false),
        ("another kind", others(), QUEUE, "made", false),
    ] {
        let server = Server::new(move |method, _| match method {
            "POST" => failure(409, "AlreadyExists"),
            "GET" => (200, held_by.clone()),
            _ => (200, json!({"kind": "Status", "status": "Success"})),
        });
        let plan = Plan {
            create_objects: vec![CONFIG.object("made", json!({}))],
            dangling: vec![Dangling {
                deletion: deletion(ChildKind::Object(QUEUE), "q", false),
                referents: vec![(ChildKind::Object(kind), name.to_owned())],
            }],
            ..Plan::default()
        };
        server.apply(&plan).await;
        let wanted = if is_deleted { &deleted[..] } else { &deleted[..2] };
        assert_eq!(server.requests(), wanted, "{case}");
    }
}

/// The bytes are only in the request, and each creation has others.
#[tokio::test]
async fn random_bytes_are_drawn_for_each_creation() {
    let secret = ObjectKind::new("", "v1", "Secret", "secrets").object("made", json!({"type": "Opaque"}));
    let secret = secret.with_random(32, |bytes| json!({"data": {"key": bytes}}));
    let plan = Plan {
        create_objects: vec![secret],
        ..Plan::default()
    };
    assert!(!format!("{plan:?}").contains("\"key\""));
    let mut keys = Vec::new();
    for _ in 0..2 {
        let server = Server::new(|_, _| (201, stored("u", |_| {})));
        server.apply(&plan).await;
        keys.push(server.requests.lock()[0].1["data"]["key"].clone());
    }
    assert_eq!(keys[0].as_array().map(Vec::len), Some(32));
    assert_ne!(keys[0], keys[1]);
}

#[tokio::test]
async fn a_copy_has_the_content_of_its_original_or_waits_for_it() {
    let copy = CONFIG.object("made", json!({})).copied_from("team");
    let plan = Plan {
        create_objects: vec![copy],
        ..Plan::default()
    };
    let server = Server::new(|method, _| match method {
        "GET" => (
            200,
            json!({"kind": "ConfigMap", "immutable": true, "data": {"a": "1"}, "metadata": {"name": "team", "uid": "t"}}),
        ),
        _ => (201, stored("u", |_| {})),
    });
    let applied = server.apply(&plan).await;
    assert!(applied.failures.is_empty(), "{applied:?}");
    assert_eq!(server.requests(), ["GET configmaps/team", "POST configmaps"]);
    let sent = server.requests.lock()[1].1.clone();
    assert_eq!(sent["data"], json!({"a": "1"}));
    assert_eq!(
        (&sent["immutable"], &sent["metadata"]["name"]),
        (&Value::Null, &json!("made"))
    );

    let server = Server::new(|_, _| failure(404, "NotFound"));
    let applied = server.apply(&plan).await;
    assert_eq!(server.requests(), ["GET configmaps/team"]);
    let [failed] = &applied.failures[..] else {
        panic!("{applied:?}");
    };
    assert!(failed.is_refused() && failed.problem.refuses_child());
    assert_eq!(
        failed.problem.to_string(),
        "it is a copy of ConfigMap team, which does not exist; create that, and the job goes on"
    );
}
