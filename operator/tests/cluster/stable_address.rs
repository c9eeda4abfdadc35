//! Services with an address of their own, which stays when the pod behind it is replaced.

use serde_json::{Value, json};
use training_operator_testing::program::run_with_input;

/// A kind's name, the field of its replica specs and its container.
type Kind = (&'static str, &'static str, &'static str);

const MX: Kind = ("MXJob", "mxReplicaSpecs", "mxnet");
const TF: Kind = ("TFJob", "tfReplicaSpecs", "tensorflow");
const XGB: Kind = ("XGBoostJob", "xgbReplicaSpecs", "xgboost");
const TORCH: Kind = ("PyTorchJob", "pytorchReplicaSpecs", "pytorch");
const JAX: Kind = ("JAXJob", "jaxReplicaSpecs", "jax");
const PADDLE: Kind = ("PaddleJob", "paddleReplicaSpecs", "paddle");

/// The roles of jobs, the replica to which the others connect, and true if its address is stable by default.
const CASES: [(Kind, &[&str], &str, bool); 12] = [
    (MX, &["Scheduler", "Server", "Worker"], "job-scheduler-0", true),
    (
        MX,
        &["TunerTracker", "TunerServer", "Tuner"],
        "job-tunertracker-0",
        true,
    ),
    (MX, &["Worker"], "", true),
    (TF, &["Chief", "PS", "Worker"], "job-chief-0", false),
    (TF, &["Master", "Worker"], "job-master-0", false),
    (TF, &["PS", "Worker"], "job-worker-0", false),
    (XGB, &["Master", "Worker"], "job-master-0", false),
    (TORCH, &["Master", "Worker"], "job-master-0", false),
    (TORCH, &["Worker"], "job-worker-0", false),
    (JAX, &["Worker"], "job-worker-0", false),
    (PADDLE, &["Worker"], "job-worker-0", false),
    (PADDLE, &["Master", "Worker"], "job-master-0", false),
];

/// Returns the services of a job: those with a cluster IP, and the others.
fn services(kind: Kind, roles: &[&str], policy: &Value) -> (Vec<String>, Vec<String>) {
    let (kind, field, container) = kind;
    let role = |role: &&str| {
        let replicas = if ["Worker", "Server", "PS"].contains(role) {
            2
        } else {
            1
        };
        let template = json!({"spec": {"containers": [{"name": container, "image": "i", "command": ["x"]}]}});
        (
            (*role).to_owned(),
            json!({"replicas": replicas, "template": template}),
        )
    };
    let mut job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": "job"},
        "spec": {"runPolicy": policy, field: roles.iter().map(role).collect::<Value>()},
    });
    if kind == "MXJob" {
        let is_tuning = roles.contains(&"Tuner");
        job["spec"]["jobMode"] = json!(if is_tuning { "MXTune" } else { "MXTrain" });
    }
    let render = ["render", "-", "--only", "services", "--output", "json"];
    let rendered = run_with_input(&render, job.to_string().as_bytes());
    assert_eq!(rendered.code, Some(0), "{job}: {}", rendered.stderr);
    let rendered: Value = rendered.stdout.parse().unwrap();
    let all = rendered["items"].as_array().unwrap().iter();
    let (headless, stable): (Vec<_>, Vec<_>) =
        all.partition(|service| service["spec"]["clusterIP"] == "None");
    for service in headless.iter().chain(&stable) {
        assert_eq!(service["spec"]["publishNotReadyAddresses"], true, "{service}");
        assert!(service["spec"]["ports"][0]["port"].is_i64(), "{service}");
    }
    let names = |services: Vec<&Value>| -> Vec<String> {
        let names = services
            .into_iter()
            .map(|s| s["metadata"]["name"].as_str().unwrap().to_owned());
        names.collect()
    };
    (names(stable), names(headless))
}

#[test]
fn the_dialed_replica_of_each_kind_has_a_stable_address_if_requested_or_safe() {
    for (kind, roles, dialed, default) in CASES {
        let expected = |stable: bool| -> Vec<&str> {
            Some(dialed)
                .filter(|name| stable && !name.is_empty())
                .into_iter()
                .collect()
        };
        for (policy, stable) in [
            (json!({}), default),
            (json!({"stableAddress": true}), true),
            (json!({"stableAddress": false}), false),
        ] {
            let (found, others) = services(kind, roles, &policy);
            assert_eq!(found, expected(stable), "{kind:?} {roles:?} {policy}");
            assert!(others.len() + found.len() >= 2, "{kind:?} {roles:?}");
        }
    }
}

/// In such a job names resolve to pods through the job's only service.
#[test]
fn a_compact_job_has_one_headless_service() {
    let policy = json!({"layout": "Compact", "stableAddress": true});
    let (stable, headless) = services(MX, &["Scheduler", "Worker"], &policy);
    assert_eq!((stable, headless), (vec![], vec!["job-hosts".to_owned()]));
}
