//! What users write.

use serde_json::{Value, json};
use training_job_simulation::kubelet::Fate::Runs;
use training_job_simulation::world::{SMALL, World, train, with};

use crate::stage::{PAIR, edit_status, make, rest, told};

/// Puts a value in a job at a path.
fn put(job: &mut Value, path: &str, value: Value) {
    let (parent, key) = path.rsplit_once('/').unwrap();
    job.pointer_mut(parent).unwrap()[key] = value;
}

/// Stored before there were rules, or around them. Each is told once, with one condition, and is taken up when it is
/// mended; a good job between them is not held up.
#[tokio::test(start_paused = true)]
async fn j1_jobs_make_no_sense() {
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
    let mut world = World::new(|_, _| Runs);
    for (number, (path, value)) in cases.iter().enumerate() {
        let mut job = train(&format!("bad-{number}"), &SMALL);
        put(&mut job, path, value.clone());
        world.create(job).await;
    }
    world.create(train("good", &PAIR)).await;
    world.pass(10).await;
    assert_eq!(world.conditions("good"), "Created Running");
    for (number, (path, value)) in cases.iter().enumerate() {
        assert_eq!(
            world.conditions(&format!("bad-{number}")),
            "Failed",
            "{path}: {value}"
        );
    }
    assert_eq!(told(&world, "MXJobFailedValidation"), cases.len());
    world.network.take();
    world.pass(3_600).await;
    assert!(
        world.network.take().iter().all(|c| c.verb == "watch"),
        "none is tried again"
    );
    for number in 0..cases.len() {
        let name = format!("bad-{number}");
        let path = format!("/apis/kubeflow.org/v1/namespaces/default/mxjobs/{name}");
        let mut mended = train(&name, &PAIR);
        mended["metadata"]["resourceVersion"] =
            world.stored("mxjobs", &name)["metadata"]["resourceVersion"].clone();
        crate::stage::call(&world, "PUT", &path, mended).await.unwrap();
    }
    rest(&mut world).await;
    for (number, (path, value)) in cases.iter().enumerate() {
        assert_eq!(
            world.conditions(&format!("bad-{number}")),
            "Created Running",
            "{path}: {value}"
        );
    }
}

/// Names that are none for a service, or have no room for a role and a number.
#[tokio::test(start_paused = true)]
async fn j2_names_are_too_long_or_no_host_names() {
    let names = [
        "a".repeat(63),
        "a".repeat(55),
        "my.job".to_owned(),
        "1job".to_owned(),
    ];
    for name in names {
        let mut world = World::new(|_, _| Runs);
        world
            .create(train(&name, &[("Scheduler", 1), ("Worker", 11)]))
            .await;
        world.pass(600).await;
        assert_eq!(world.conditions(&name), "Failed", "{name}");
        assert!(
            world.pods_now().is_empty() && world.services_now().is_empty(),
            "{name}"
        );
        assert_eq!(
            world.network.count("create", "services"),
            0,
            "{name}: before any child is tried"
        );
        assert_eq!(told(&world, "MXJobFailedValidation"), 1, "{name}");
        rest(&mut world).await;
    }
    let mut world = World::new(|_, _| Runs);
    // scheduler-0 and the hyphen before it are twelve.
    let longest = "a".repeat(51);
    world.create(train(&longest, &PAIR)).await;
    world.pass(5).await;
    assert_eq!(world.conditions(&longest), "Created Running");
    rest(&mut world).await;
}

/// As large as etcd takes, and deep.
#[tokio::test(start_paused = true)]
async fn j3_templates_are_huge() {
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
    let mut world = World::new(|_, _| Runs);
    for (number, (path, value)) in cases.iter().enumerate() {
        let mut job = train(&format!("job-{number}"), &PAIR);
        put(&mut job, path, value.clone());
        world.create(job).await;
    }
    world.create(train("good", &PAIR)).await;
    world.pass(10).await;
    assert_eq!(world.conditions("good"), "Created Running");
    for number in 0..cases.len() {
        let status = world.status(&format!("job-{number}")).to_string();
        assert!(
            status.len() < 8_192,
            "{number}: a status of {} bytes",
            status.len()
        );
    }
    for event in world.cluster.list("events", None) {
        let message = event.value()["message"].as_str().unwrap_or_default();
        assert!(message.len() <= 1_024, "{}", message.len());
    }
    rest(&mut world).await;
}

#[tokio::test(start_paused = true)]
async fn j4_texts_are_passed_on_to_the_byte() {
    let text = "größe → 数 \u{202e}\u{0}\t\u{1b}[31m $(POD) $$(X) \"'\\ \u{10ffff}";
    let mut world = World::new(|_, _| Runs);
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
    world.create(job).await;
    world.pass(10).await;
    let pod = world.stored("pods", "job-worker-0");
    assert_eq!(pod["metadata"]["annotations"]["note"], text);
    let container = &pod["spec"]["containers"][0];
    let env = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .find(|v| v["name"] == "TEXT");
    assert_eq!(env.unwrap()["value"], text);
    assert_eq!(
        (&container["command"][2], &container["args"][0]),
        (&json!(text), &json!(text))
    );
    rest(&mut world).await;
}

/// The operator's value is the one that stays, once, for every attempt.
#[tokio::test(start_paused = true)]
async fn j5_users_set_the_operators_variables() {
    let own = ["MX_CONFIG", "DMLC_ROLE", "DMLC_NUM_WORKER", "DMLC_PS_ROOT_PORT"];
    let mut world = World::new(|name, attempt| match attempt {
        0 if name.ends_with("worker-0") => training_job_simulation::kubelet::Fate::Fails(137, 20),
        _ => Runs,
    });
    world.create(train("plain", &PAIR)).await;
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
    world.create(job).await;
    let values = |job: &str| -> Vec<(String, String)> {
        let pod = world.stored("pods", &format!("{job}-worker-0"));
        let env = pod["spec"]["containers"][0]["env"].as_array().unwrap().clone();
        let text = |v: &Value| v.as_str().unwrap_or_default().replace(job, "JOB");
        env.iter()
            .map(|v| (text(&v["name"]), text(&v["value"])))
            .collect()
    };
    for seconds in [10, 60] {
        world.pass(seconds).await;
        let mut found = values("job");
        assert_eq!(found.remove(0), ("OTHER".to_owned(), "first".to_owned()));
        assert_eq!(found, values("plain"), "after {seconds} s");
    }
    assert_eq!(world.status("job")["restartCount"], 1);
    rest(&mut world).await;
}

/// Four thousand bytes of junk, with control characters.
#[tokio::test(start_paused = true)]
async fn j6_a_pods_last_words_are_junk() {
    let junk = "\u{1b}[2J\n\r\u{7}é".repeat(500);
    let mut world = World::new(|_, _| Runs);
    let never = json!({"mxReplicaSpecs": {"Worker": {"restartPolicy": "Never"}}});
    world.create(with(train("job", &PAIR), never)).await;
    world.pass(10).await;
    let status = json!({"phase": "Failed", "message": junk, "reason": "Junk", "containerStatuses": [{
        "name": "mxnet", "image": "i", "imageID": "i", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 1, "reason": "Error", "message": junk}},
    }]});
    edit_status(&world, "pods", "job-worker-0", status).await;
    world.pass(10).await;
    assert!(world.conditions("job").ends_with("Failed"));
    let status = world.status("job");
    assert!(status.to_string().len() < 8_192, "{}", status.to_string().len());
    assert!(status["failure"]["message"].as_str().unwrap().len() <= 2_048);
    for event in world.cluster.list("events", None) {
        let message = event.value()["message"].as_str().unwrap();
        assert!(
            message.len() <= 1_024 && !message.contains('\u{1b}'),
            "{message:?}"
        );
    }
    rest(&mut world).await;
    // A waiting pod's words go into an event.
    let mut world = World::new(|_, _| training_job_simulation::kubelet::Fate::Pends);
    make(&world, "mxjobs", train("job", &PAIR)).await;
    world.pass(5).await;
    let waits = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": junk,
    }]});
    edit_status(&world, "pods", "job-worker-0", waits).await;
    world.pass(5).await;
    let events = world.cluster.list("events", None);
    let event = events
        .iter()
        .find(|e| e.value()["reason"] == "Unschedulable")
        .unwrap();
    assert!(event.value()["message"].as_str().unwrap().len() <= 1_024);
    rest(&mut world).await;
}
