//! What the Go operator v1.8.1 made of MXJobs on a real API server, and what we make of them: to the
//! byte, but for the places in [`DIFFERENCES`].
//!
//! `compat/` holds, for each distinct job of the recorded scenarios, the job and the pods and services
//! that were there when the operator had come to rest. Values that the API server fills in are not
//! recorded, nor is the order of service ports, which is random there. Scenarios of gang scheduling
//! are left out: they need an operator with other flags.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use training_job::{Settings, render, validate};
use training_job_mxnet::MXJob;

/// Scenario, place and reason of everything that differs on purpose. A scenario that we refuse has
/// the place `refused`. An entry that matches nothing fails the test.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    (
        "mx-byteps",
        "pods.byteps-mxnet-job-worker-0.spec.containers[0].resources.requests",
        REQUESTS,
    ),
    (
        "mx-byteps",
        "pods.byteps-mxnet-job-worker-1.spec.containers[0].resources.requests",
        REQUESTS,
    ),
    (
        "mx-resources",
        "pods.job-worker-0.spec.containers[0].resources.requests",
        REQUESTS,
    ),
    (
        "mx-resources",
        "pods.job-worker-1.spec.containers[0].resources.requests",
        REQUESTS,
    ),
    (
        "mx-train-dist",
        "pods.mxnet-job-worker-0.spec.containers[0].resources.requests",
        REQUESTS,
    ),
    (
        "mx-tune-fails",
        "pods.auto-tuning-job-tunerserver-0.spec.containers[0].resources.requests",
        REQUESTS,
    ),
    (
        "mx-tune-key",
        "pods.auto-tuning-job-tunerserver-0.spec.containers[0].resources.requests",
        REQUESTS,
    ),
    (
        "mx-tune-key",
        "pods.auto-tuning-job-tunerserver-1.spec.containers[0].resources.requests",
        REQUESTS,
    ),
    (
        "mx-podspec",
        "pods.job-worker-0.spec.containers[0].livenessProbe",
        FILLED_IN,
    ),
    (
        "mx-podspec",
        "pods.job-worker-0.spec.containers[0].ports[0].hostPort",
        FILLED_IN,
    ),
    ("mx-podspec", "pods.job-worker-0.spec.priorityClassName", DROPPED),
    (
        "mx-env-user",
        "pods.job-worker-0.spec.containers[0].env",
        ENVIRONMENT,
    ),
    (
        "mx-env-user",
        "pods.job-worker-1.spec.containers[0].env",
        ENVIRONMENT,
    ),
    (
        "mx-port-extra",
        "services.job-worker-0.spec.ports[0].protocol",
        "#39: it makes TCP of every protocol",
    ),
    (
        "mx-port-unnamed",
        "services.job-worker-0",
        "#39: the API server refuses its unnamed port; we give it a name",
    ),
    (
        "mx-zero-servers",
        "services.job-server-0",
        "#6: index 0 of no servers is made and deleted for ever",
    ),
    ("mx-foreign-pod", "pods.job-worker-0", CLASH),
    ("mx-foreign-pod", "pods.job-worker-1", CLASH),
    ("mx-foreign-pod", "services.job-worker-", CLASH),
    (
        "mx-hazard-null-role",
        "refused",
        "the API server drops a null role; in a file it is a mistake",
    ),
    ("mx-invalid-no-jobmode", "pods", MODE),
    ("mx-invalid-no-jobmode", "services", MODE),
    (
        "mx-invalid-restart-policy",
        "refused",
        "#45: an unknown restart policy",
    ),
    ("mx-jobmode-unknown", "refused", "#14: an unknown mode"),
    (
        "mx-name-services-too-long",
        "refused",
        "#42: services cannot have such long names",
    ),
    ("mx-role-unknown", "refused", "#14: an unknown role"),
];

const REQUESTS: &str = "the API server copies the limits";
const FILLED_IN: &str = "the API server fills it in";
const DROPPED: &str = "the API server drops an empty value";
const ENVIRONMENT: &str = "#41: no variable twice; ours replace the user's of the same name";
const CLASH: &str = "#36: somebody else's pod job-worker-0 is there, and stopped its pass";
const MODE: &str = "the CRD refuses it; read from a file, a missing mode is MXTrain";

#[derive(serde::Deserialize)]
struct Recording {
    job: Value,
    pods: BTreeMap<String, Value>,
    services: BTreeMap<String, Value>,
}

type Objects = BTreeMap<String, Value>;

/// What we make of a job, in the recording's form; nothing if we refuse it.
fn ours(job: &Value) -> Option<(Objects, Objects)> {
    let mut job: MXJob = serde_json::from_value(job.clone()).ok()?;
    job.metadata.uid = Some("job-uid".to_owned());
    let valid = validate(&job, &Settings::default()).ok()?;
    let (services, pods) = render::all(&valid);
    let pods = pods.iter().map(|p| entry(serde_json::to_value(p).unwrap()));
    let services = services.iter().map(|s| {
        let (name, mut service) = entry(serde_json::to_value(s).unwrap());
        if let Some(ports) = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut) {
            ports.sort_by_key(|port| port["name"].to_string());
        }
        (name, service)
    });
    Some((pods.collect(), services.collect()))
}

/// Name and recorded parts of an object.
fn entry(object: Value) -> (String, Value) {
    let meta = &object["metadata"];
    let mut parts = json!({"spec": object["spec"]});
    for key in ["labels", "annotations", "finalizers", "ownerReferences"] {
        if !meta[key].is_null() {
            parts[key] = meta[key].clone();
        }
    }
    (meta["name"].as_str().unwrap().to_owned(), parts)
}

/// The places where two values differ.
fn compare(at: String, recorded: &Value, ours: &Value, found: &mut Vec<String>) {
    match (recorded, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|k| !a.contains_key(*k)));
            for key in keys {
                let [a, b] = [a, b].map(|map| map.get(key).unwrap_or(&Value::Null));
                compare(format!("{at}.{key}"), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                compare(format!("{at}[{n}]"), a, b, found);
            }
        }
        _ if recorded == ours => {}
        _ => found.push(format!("{at}: recorded {recorded}, ours {ours}")),
    }
}

#[test]
fn renders_are_the_go_operators_but_where_we_say_so() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat");
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    let (mut found, mut used, mut compared) = (Vec::new(), vec![false; DIFFERENCES.len()], 0);
    for file in &files {
        let scenario = file.file_stem().unwrap().to_str().unwrap();
        let recording: Recording = serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let mut differences = Vec::new();
        match ours(&recording.job) {
            None if recording.pods.is_empty() => compared += 1,
            None => differences.push("refused: recorded pods, ours none".to_owned()),
            Some((pods, services)) => {
                compared += pods.len() + services.len();
                compare(
                    "pods".to_owned(),
                    &json!(recording.pods),
                    &json!(pods),
                    &mut differences,
                );
                compare(
                    "services".to_owned(),
                    &json!(recording.services),
                    &json!(services),
                    &mut differences,
                );
            }
        }
        for difference in differences {
            let meant = DIFFERENCES
                .iter()
                .position(|(s, at, _)| *s == scenario && difference.starts_with(at));
            match meant {
                Some(n) => used[n] = true,
                None => found.push(format!("{scenario}: {difference}")),
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    for ((scenario, at, why), used) in DIFFERENCES.iter().zip(used) {
        assert!(used, "{scenario} does not differ at {at} any more ({why})");
    }
    assert!(compared > 250, "only {compared} objects were compared");
}
