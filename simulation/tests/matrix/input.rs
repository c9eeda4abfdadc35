//! Invalid and unusual input of users.

use serde_json::{Value, json};
use training_job_simulation::faults::PodFate::{self, Runs};
use training_job_simulation::simulation::{SMALL, Simulation, train, with_spec};

use crate::harness::{
    PAIR, assert_ends, assert_idle, assert_no_children, call, edit_status, event_count, make,
    settle_and_check,
};

/// Sets a value at a path of a job.
fn put(job: &mut Value, path: &str, value: Value) {
    let (parent, key) = path.rsplit_once('/').unwrap();
    job.pointer_mut(parent).unwrap()[key] = value;
}

/// The jobs were stored before there were validation rules, or around them. Each is reported once, with one
/// condition, and is accepted when it is repaired. They do not delay a valid job.
#[tokio::test(start_paused = true)]
async fn jobs_make_no_sense() {
    let spec = "/spec/mxReplicaSpecs/Worker/template/spec";
    let worker =
        json!({"replicas": 1, "template": {"spec": {"containers": [{"name": "mxnet", "image": "i"}]}}});
    let cases = [
        (format!("{spec}/containers"), json!([])),
        (format!("{spec}/containers"), Value::Null),
        (format!("{spec}/containers/0/name"), json!("main")),
        (
            format!("{spec}/containers/0/ports"),
            json!([{"containerPort": 0}]),
        ),
        (
            format!("{spec}/containers/0/ports"),
            json!([{"containerPort": 65_536}]),
        ),
        (format!("{spec}/containers"), json!("one")),
        ("/spec/mxReplicaSpecs/Scheduler/replicas".to_owned(), json!(2)),
        ("/spec/mxReplicaSpecs/Sleeper".to_owned(), worker.clone()),
        ("/spec/mxReplicaSpecs/worker".to_owned(), worker),
        ("/spec/mxReplicaSpecs".to_owned(), Value::Null),
        ("/spec/mxReplicaSpecs".to_owned(), json!({})),
        (
            "/spec/mxReplicaSpecs/Worker/restartPolicy".to_owned(),
            json!("Sometimes"),
        ),
        ("/spec/runPolicy".to_owned(), json!({"cleanPodPolicy": "Half"})),
        (
            "/spec/runPolicy".to_owned(),
            json!({"ttlSecondsAfterFinished": -1}),
        ),
        ("/spec/runPolicy".to_owned(), json!({"activeDeadlineSeconds": -1})),
        ("/spec/runPolicy".to_owned(), json!({"backoffLimit": -1})),
        ("/spec/jobMode".to_owned(), json!("MXDream")),
    ];
    let mut sim = Simulation::new(|_, _| Runs);
    for (number, (path, value)) in cases.iter().enumerate() {
        let mut job = train(&format!("bad-{number}"), &SMALL);
        put(&mut job, path, value.clone());
        sim.create(job).await;
    }
    sim.create(train("good", &PAIR)).await;
    sim.advance(10).await;
    assert_eq!(sim.conditions("good"), "Created Running");
    for (number, (path, value)) in cases.iter().enumerate() {
        assert_eq!(
            sim.conditions(&format!("bad-{number}")),
            "Failed",
            "{path}: {value}"
        );
    }
    assert_eq!(event_count(&sim, "MXJobFailedValidation"), cases.len());
    sim.network.take_calls();
    sim.advance(3_600).await;
    assert_idle(&sim, "none is tried again");
    for number in 0..cases.len() {
        let name = format!("bad-{number}");
        let path = format!("/apis/kubeflow.org/v1/namespaces/default/mxjobs/{name}");
        let mut mended = train(&name, &PAIR);
        mended["metadata"]["resourceVersion"] =
            sim.stored("mxjobs", &name)["metadata"]["resourceVersion"].clone();
        call(&sim, "PUT", &path, mended).await.unwrap();
    }
    settle_and_check(&mut sim).await;
    for (number, (path, value)) in cases.iter().enumerate() {
        assert_eq!(
            sim.conditions(&format!("bad-{number}")),
            "Created Running",
            "{path}: {value}"
        );
    }
}

/// Names that are not valid for a service, or too long for a role and an index.
#[tokio::test(start_paused = true)]
async fn names_are_too_long_or_no_host_names() {
    let names = [
        "a".repeat(63),
        "a".repeat(55),
        "my.job".to_owned(),
        "1job".to_owned(),
    ];
    for name in names {
        let mut sim = Simulation::new(|_, _| Runs);
        sim.create(train(&name, &[("Scheduler", 1), ("Worker", 11)]))
            .await;
        sim.advance(600).await;
        assert_eq!(sim.conditions(&name), "Failed", "{name}");
        assert_no_children(&sim, &name);
        assert_eq!(
            sim.network.count("create", "services"),
            0,
            "{name}: before any child is tried"
        );
        assert_eq!(event_count(&sim, "MXJobFailedValidation"), 1, "{name}");
        settle_and_check(&mut sim).await;
    }
    let mut sim = Simulation::new(|_, _| Runs);
    // The hyphen and `scheduler-0` are twelve characters.
    let longest = "a".repeat(51);
    sim.create(train(&longest, &PAIR)).await;
    sim.advance(5).await;
    assert_eq!(sim.conditions(&longest), "Created Running");
    settle_and_check(&mut sim).await;
}

/// Templates that are as large as etcd allows, or deeply nested.
#[tokio::test(start_paused = true)]
async fn templates_are_huge() {
    let container = |name: String| json!({"name": name, "image": "i"});
    let many: Vec<Value> = std::iter::once("mxnet".to_owned())
        .chain((0..1_000).map(|n| format!("c-{n}")))
        .map(container)
        .collect();
    let labels: serde_json::Map<String, Value> = (0..5_000).map(|n| (format!("l-{n}"), json!("v"))).collect();
    let mut deep = json!(1);
    for _ in 0..50 {
        deep = json!({"a": [deep]});
    }
    let template = "/spec/mxReplicaSpecs/Worker/template";
    let cases = [
        (
            format!("{template}/spec/containers/0/env"),
            json!([{"name": "BIG", "value": "x".repeat(1_000_000)}]),
        ),
        (format!("{template}/spec/containers"), Value::Array(many)),
        (format!("{template}/metadata"), json!({"labels": labels})),
        (format!("{template}/spec/unknown"), deep),
    ];
    let mut sim = Simulation::new(|_, _| Runs);
    for (number, (path, value)) in cases.iter().enumerate() {
        let mut job = train(&format!("job-{number}"), &PAIR);
        put(&mut job, path, value.clone());
        sim.create(job).await;
    }
    sim.create(train("good", &PAIR)).await;
    sim.advance(10).await;
    assert_eq!(sim.conditions("good"), "Created Running");
    for number in 0..cases.len() {
        let status = sim.status(&format!("job-{number}")).to_string();
        assert!(
            status.len() < 8_192,
            "{number}: a status of {} bytes",
            status.len()
        );
    }
    for event in sim.cluster.list("events", None) {
        let message = event.value()["message"].as_str().unwrap_or_default();
        assert!(message.len() <= 1_024, "{}", message.len());
    }
    settle_and_check(&mut sim).await;
}

#[tokio::test(start_paused = true)]
async fn texts_are_passed_on_to_the_byte() {
    let text = "größe → 数 \u{202e}\u{0}\t\u{1b}[31m $(POD) $$(X) \"'\\ \u{10ffff}";
    let mut sim = Simulation::new(|_, _| Runs);
    let mut job = train("job", &PAIR);
    let path = "/spec/mxReplicaSpecs/Worker/template";
    put(
        &mut job,
        &format!("{path}/metadata"),
        json!({"annotations": {"note": text}}),
    );
    let base = format!("{path}/spec/containers/0");
    put(
        &mut job,
        &format!("{base}/env"),
        json!([{"name": "TEXT", "value": text}]),
    );
    put(&mut job, &format!("{base}/command"), json!(["sh", "-c", text]));
    put(&mut job, &format!("{base}/args"), json!([text]));
    sim.create(job).await;
    sim.advance(10).await;
    let pod = sim.stored("pods", "job-worker-0");
    assert_eq!(pod["metadata"]["annotations"]["note"], text);
    let container = &pod["spec"]["containers"][0];
    let env = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .find(|v| v["name"] == "TEXT");
    assert_eq!(env.unwrap()["value"], text);
    assert_eq!(container["command"][2], json!(text));
    assert_eq!(container["args"][0], json!(text));
    settle_and_check(&mut sim).await;
}

/// The operator's value replaces the user's value once, in every attempt.
#[tokio::test(start_paused = true)]
async fn users_set_the_operators_variables() {
    let own = ["MX_CONFIG", "DMLC_ROLE", "DMLC_NUM_WORKER", "DMLC_PS_ROOT_PORT"];
    let mut sim = Simulation::new(|name, attempt| match attempt {
        0 if name.ends_with("worker-0") => PodFate::Fails(137, 20),
        _ => Runs,
    });
    sim.create(train("plain", &PAIR)).await;
    let mut job = train("job", &PAIR);
    let mut env: Vec<Value> = own
        .iter()
        .map(|name| json!({"name": name, "value": "mine"}))
        .collect();
    env.push(json!({"name": "OTHER", "value": "first"}));
    env.extend(own.iter().map(|name| json!({"name": name, "value": "mine, too"})));
    put(
        &mut job,
        "/spec/mxReplicaSpecs/Worker/template/spec/containers/0/env",
        Value::Array(env),
    );
    sim.create(job).await;
    let values = |job: &str| -> Vec<(String, String)> {
        let pod = sim.stored("pods", &format!("{job}-worker-0"));
        let env = pod["spec"]["containers"][0]["env"].as_array().unwrap().clone();
        let text = |v: &Value| v.as_str().unwrap_or_default().replace(job, "JOB");
        env.iter()
            .map(|v| (text(&v["name"]), text(&v["value"])))
            .collect()
    };
    for seconds in [10, 60] {
        sim.advance(seconds).await;
        let mut found = values("job");
        assert_eq!(found.remove(0), ("OTHER".to_owned(), "first".to_owned()));
        assert_eq!(found, values("plain"), "after {seconds} s");
    }
    assert_eq!(sim.status("job")["restartCount"], 1);
    settle_and_check(&mut sim).await;
}

/// Four thousand characters of junk, some of them control characters.
#[tokio::test(start_paused = true)]
async fn a_pods_last_words_are_junk() {
    let junk = "\u{1b}[2J\n\r\u{7}é".repeat(500);
    let mut sim = Simulation::new(|_, _| Runs);
    let never = json!({"mxReplicaSpecs": {"Worker": {"restartPolicy": "Never"}}});
    sim.create(with_spec(train("job", &PAIR), never)).await;
    sim.advance(10).await;
    let status = json!({"phase": "Failed", "message": junk, "reason": "Junk", "containerStatuses": [{
        "name": "mxnet", "image": "i", "imageID": "i", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 1, "reason": "Error", "message": junk}},
    }]});
    edit_status(&sim, "pods", "job-worker-0", status).await;
    sim.advance(10).await;
    assert_ends(&sim, "job", "Failed", "");
    let status = sim.status("job");
    assert!(status.to_string().len() < 8_192, "{}", status.to_string().len());
    assert!(status["failure"]["message"].as_str().unwrap().len() <= 2_048);
    for event in sim.cluster.list("events", None) {
        let message = event.value()["message"].as_str().unwrap();
        assert!(
            message.len() <= 1_024 && !message.contains('\u{1b}'),
            "{message:?}"
        );
    }
    settle_and_check(&mut sim).await;
    // The message of a pending pod goes into an event.
    let mut sim = Simulation::new(|_, _| training_job_simulation::faults::PodFate::Pends);
    make(&sim, "mxjobs", train("job", &PAIR)).await;
    sim.advance(5).await;
    let waits = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": junk,
    }]});
    edit_status(&sim, "pods", "job-worker-0", waits).await;
    sim.advance(5).await;
    let events = sim.cluster.list("events", None);
    let event = events
        .iter()
        .find(|e| e.value()["reason"] == "Unschedulable")
        .unwrap();
    assert!(event.value()["message"].as_str().unwrap().len() <= 1_024);
    settle_and_check(&mut sim).await;
}
