//! Fields that the Go operator's types lack. Clients with these types drop them, and annotations replace them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use training_job::api::labels::Keys;
use training_job_testbed::cluster::{ControlPlane, Options};
use training_operator_testing::program::{empty_directory, root, run};

use super::go_types::{KINDS, dry, until_asked, webhook};
use super::released::module;

/// The spec fields that have an annotation.
const ANNOTATED: [&str; 9] = [
    "runPolicy.failurePolicy",
    "runPolicy.successPolicy",
    "runPolicy.restartScope",
    "runPolicy.layout",
    "runPolicy.stableAddress",
    "runPolicy.sidecarGracePeriodSeconds",
    "runPolicy.progress",
    "launcherCreationPolicy",
    "compatibility",
];

/// The fields that the Go types lack and that have no annotation, with the reason.
const OTHERS: [(&str, &str); 13] = [
    (
        "managedBy",
        "the copy of a job in another cluster has another manager",
    ),
    ("runPolicy.managedBy", "likewise"),
    (
        "sshAuthMountPath",
        "MPIJob: of v2beta1, which has Go types of its own",
    ),
    ("mpiImplementation", "MPIJob: likewise"),
    ("runLauncherAsWorker", "MPIJob: likewise"),
    (
        "successPolicy",
        "MXJob: runPolicy.successPolicy outranks it, and has an annotation",
    ),
    (
        "cleanPodPolicy",
        "MXJob: runPolicy.cleanPodPolicy is in the Go types",
    ),
    ("ttlSecondsAfterFinished", "MXJob: likewise"),
    ("activeDeadlineSeconds", "MXJob: likewise"),
    ("backoffLimit", "MXJob: likewise"),
    ("schedulingPolicy", "MXJob: likewise"),
    ("schedulerName", "MXJob: that of a template is in the Go types"),
    (
        "mxReplicaSpecs.*.label",
        "MXJob: the template's annotation tuner-server-key means the same",
    ),
];

/// Collects the fields of a spec, except those of pod templates and metrics, which Kubernetes defines.
fn fields(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{at}{name}");
        if !["template", "metrics"].contains(&name.as_str()) {
            fields(field, &format!("{path}."), found);
        }
        found.insert(path);
    }
    if schema["additionalProperties"].is_object() {
        fields(&schema["additionalProperties"], &format!("{at}*."), found);
    }
}

fn fields_of(file: &Path) -> BTreeSet<String> {
    let definition: Value = serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let mut found = BTreeSet::new();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    fields(definition.pointer(spec).unwrap(), "", &mut found);
    found
}

#[test]
fn each_field_that_the_go_types_lack_has_an_annotation_or_a_reason() {
    let module = module();
    let (mut unnamed, mut named) = (Vec::new(), BTreeSet::new());
    for (_, plural) in KINDS {
        let file = format!("kubeflow.org_{plural}.yaml");
        let theirs = fields_of(&module.join("manifests/base/crds").join(&file));
        let folder = if plural == "mpijobs" { "crds/mpi" } else { "crds" };
        let ours = fields_of(&root().join(folder).join(&file));
        for field in ours.difference(&theirs) {
            // A field with an annotation includes its subfields.
            let of = ANNOTATED
                .iter()
                .find(|of| field == *of || field.starts_with(&format!("{of}.")));
            let other = OTHERS
                .iter()
                .find(|(of, _)| field == of || field.starts_with(&format!("{of}.")));
            match of.or(other.map(|(of, _)| of)) {
                Some(of) => {
                    named.insert(*of);
                }
                None => unnamed.push(format!("{plural}: {field}")),
            }
        }
    }
    assert!(unnamed.is_empty(), "{unnamed:#?}");
    assert_eq!(
        named.len(),
        ANNOTATED.len() + OTHERS.len(),
        "some are not there: {named:#?}"
    );
}

/// Returns a job of a kind that sets every field with an annotation.
fn with_all_fields(kind: &str) -> Value {
    let (field, role, container) = match kind {
        "MPIJob" => ("mpiReplicaSpecs", "Launcher", "mpi"),
        "MXJob" => ("mxReplicaSpecs", "Worker", "mxnet"),
        "PaddleJob" => ("paddleReplicaSpecs", "Worker", "paddle"),
        "PyTorchJob" => ("pytorchReplicaSpecs", "Worker", "pytorch"),
        "TFJob" => ("tfReplicaSpecs", "Worker", "tensorflow"),
        _ => ("xgbReplicaSpecs", "Master", "xgboost"),
    };
    let template = json!({"spec": {"containers": [{"name": container, "image": "i"}]}});
    let rule = json!({"action": "Ignore", "onExitCodes": {"values": [2]}});
    let mut job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": "extended", "labels": {}},
        "spec": {"runPolicy": {
            "backoffLimit": 5, "failurePolicy": {"maxRestarts": 3, "rules": [rule]},
            "successPolicy": {"operator": "Any", "roles": [role]}, "restartScope": "Role", "layout": "Compact",
            "stableAddress": false, "sidecarGracePeriodSeconds": 60,
            "progress": {"stalledAfterSeconds": 600, "watch": "All"},
        }},
    });
    job["spec"][field] = json!({role: {"replicas": 1, "restartPolicy": "Never", "template": template}});
    match kind {
        "MPIJob" => job["spec"]["launcherCreationPolicy"] = "AtStartup".into(),
        "MXJob" => {
            job["spec"]["jobMode"] = "MXTrain".into();
            job["spec"]["compatibility"] = "MXNetOperator".into();
        }
        _ => {}
    }
    job
}

/// Returns the annotations for a job's fields.
fn annotations(job: &Value) -> Value {
    let of = |field: &str| {
        let value = field.split('.').fold(&job["spec"], |value, name| &value[name]);
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (!value.is_null()).then(|| {
            (
                Keys::DEFAULT.annotation_of(field.rsplit('.').next().unwrap()),
                Value::String(text),
            )
        })
    };
    ANNOTATED
        .iter()
        .filter_map(|field| of(field))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Returns the output of commands for a job.
fn told(job: &Value, name: &str) -> [String; 3] {
    let folder = empty_directory(&format!("extensions-{name}"));
    let file = folder.join("job.json");
    fs::write(&file, job.to_string()).unwrap();
    ["validate", "render", "explain"].map(|command| {
        let done = run(&[command, file.to_str().unwrap()]);
        assert_eq!(done.code, Some(0), "{command} {name}: {}", done.stderr);
        done.stdout
    })
}

/// MultiKueue copies a job to another cluster in this way, as does any client that writes a job back.
#[tokio::test]
async fn annotations_bring_all_fields_through_a_client_with_the_go_types() {
    let cluster = ControlPlane::start(Options::default()).await;
    cluster.install_crds().await;
    let _webhook = webhook(&cluster).await;
    until_asked(&cluster, &with_all_fields("MXJob")).await;
    for (kind, _) in KINDS {
        let mut job = with_all_fields(kind);
        let (spec, asked) = dry(&cluster, &job, "client")
            .await
            .unwrap_or_else(|e| panic!("{kind}: {e}"));
        assert!(asked, "{kind}");
        let mut bare = job.clone();
        bare["spec"] = spec;
        assert_eq!(annotations(&bare), json!({}), "the client keeps nothing");
        let lost = told(&bare, &format!("{kind}-bare"));
        bare["metadata"]["annotations"] = annotations(&job);
        assert!(bare["metadata"]["annotations"].as_object().unwrap().len() >= 4);
        let kept = told(&bare, &format!("{kind}-annotated"));
        // The types write zero values as well, such as empty resources. A webhook with them keeps all other fields.
        let (spec, _) = dry(&cluster, &job, "go").await.unwrap();
        job["spec"] = spec;
        let whole = told(&job, &format!("{kind}-whole"));
        assert_ne!(lost, kept, "{kind}");
        assert_eq!(whole, kept, "{kind}");
        // The fields and the annotations together, with equal values.
        job["metadata"]["annotations"] = annotations(&job);
        assert_eq!(whole, told(&job, &format!("{kind}-both")), "{kind}");
    }
}
