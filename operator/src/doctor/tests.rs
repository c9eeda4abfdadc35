//! What is told of clusters.

use serde_json::{Value, json};

use super::diagnosis::findings;
use super::seen::{Missing, RIGHTS, Seen, rights_to_jobs};
use super::text;
use crate::kinds::kinds;

/// A cluster where all is well: this operator, its definitions, and a job.
fn well() -> Seen {
    let definitions = kinds().into_iter().map(|kind| {
        let mut definition = serde_json::to_value(&*kind.definition).unwrap();
        let stored = definition["spec"]["versions"][0]["name"].clone();
        definition["status"] = json!({"storedVersions": [stored]});
        definition
    });
    Seen {
        version: (1, 35),
        definitions: definitions.collect(),
        jobs: vec![job("today", json!({"jobMode": "MXTrain"}), json!({}))],
        deployments: vec![deployment(
            "training-operator",
            "example.com/training-operator:1",
            json!(["run"]),
        )],
        leases: vec![lease("kubeflow")],
        ..Seen::default()
    }
}

fn job(name: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"namespace": "ns", "name": name},
        "spec": spec, "status": status})
}

fn deployment(name: &str, image: &str, args: Value) -> Value {
    json!({"metadata": {"namespace": "kubeflow", "name": name}, "spec": {"template": {"spec": {
        "serviceAccountName": name, "containers": [{"image": image, "args": args}]}}}})
}

fn lease(namespace: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": "1ca428e5.training-operator.kubeflow.org"},
        "spec": {"holderIdentity": "a-pod"}})
}

fn webhook(kind: &str, policy: &str) -> Value {
    let service = json!({"namespace": "kubeflow", "name": "training-operator"});
    json!({"kind": kind, "metadata": {"name": "validator.training-operator.kubeflow.org"}, "webhooks": [
        {"failurePolicy": policy, "clientConfig": {"service": service}, "rules": [{"apiGroups": ["kubeflow.org"]}]}]})
}

fn told(seen: &Seen) -> String {
    anstream::adapter::strip_str(&text(&findings(seen, &kinds()))).to_string()
}

#[test]
fn a_cluster_that_is_well_is_told_to_be() {
    assert_eq!(told(&well()), "errors: 0, warnings: 0\n");
}

#[test]
fn what_older_operators_left_is_told() {
    let mut seen = well();
    seen.definitions[0]["spec"]["preserveUnknownFields"] = json!(true);
    seen.definitions[1]["status"]["storedVersions"] = json!(["v1alpha1", "v1"]);
    seen.definitions.pop();
    let other = json!({"metadata": {"name": "pytorchjobs.kubeflow.org"}, "spec": {"group": "kubeflow.org"}});
    seen.definitions.push(other);
    seen.webhooks = vec![
        webhook("ValidatingWebhookConfiguration", "Fail"),
        webhook("MutatingWebhookConfiguration", "Ignore"),
    ];
    seen.deployments.extend([
        deployment("mxnet-operator", "mxjob/mxnet-operator:v1", json!(null)),
        deployment(
            "training-operator-2",
            "kubeflow/training-operator:v1-855e096",
            json!(null),
        ),
    ]);
    let named = |n| {
        job(
            &format!("old-{n}"),
            json!({"backoffLimit": 1}),
            json!({"mxReplicaStatuses": {}}),
        )
    };
    seen.jobs.extend((0..7).map(named));
    let mut running = job("dist", json!({}), json!({"phase": "Running"}));
    running["apiVersion"] = json!("mxnet.mlkube.io/v1beta1");
    running["kind"] = json!("MxJob");
    seen.jobs.push(running.clone());
    // Ours has conditions with a status.
    running["status"]["conditions"] = json!([{"type": "Running", "status": "True"}]);
    seen.jobs.push(running);
    insta::assert_snapshot!(told(&seen));
}

#[test]
fn what_the_operator_lacks_is_told() {
    let mut seen = well();
    seen.version = (1, 28);
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    seen.definitions[0]
        .pointer_mut(fields)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .clear();
    seen.leases.push(lease("team"));
    let account = ("kubeflow".to_owned(), "training-operator".to_owned());
    for (verb, resource) in [("patch", "pods"), ("patch", "services")] {
        seen.missing.push(Missing {
            account: account.clone(),
            right: (verb, resource.to_owned()),
        });
    }
    let why = "leases is forbidden";
    seen.unread
        .push(("leases of coordination.k8s.io/v1".to_owned(), why.to_owned()));
    insta::assert_snapshot!(told(&seen));
}

/// An operator that is scaled to none works beside nobody.
#[test]
fn what_does_not_run_is_no_operator() {
    let mut seen = well();
    let mut old = deployment("mxnet-operator", "mxjob/mxnet-operator:v1", json!(null));
    old["spec"]["replicas"] = json!(0);
    seen.deployments.push(old);
    assert_eq!(told(&seen), "errors: 0, warnings: 0\n");
}

/// The rights that are asked for are those of the role.
#[test]
fn the_rights_are_those_of_the_role() {
    let role = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests/base/role.yaml");
    let role = kube_manifest::parse(&std::fs::read_to_string(role).unwrap()).unwrap()[0].to_json();
    let mut granted = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        for resource in rule["resources"].as_array().unwrap() {
            granted.extend(
                rule["verbs"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|verb| format!("{} {}", verb.as_str().unwrap(), resource.as_str().unwrap())),
            );
        }
    }
    let mut asked = Vec::new();
    for (resource, verbs) in RIGHTS {
        asked.extend(verbs.iter().map(|verb| format!("{verb} {resource}")));
    }
    for kind in kinds() {
        for (subresource, verbs) in rights_to_jobs(&kind) {
            asked.extend(
                verbs
                    .iter()
                    .map(|verb| format!("{verb} {}{subresource}", kind.resource.plural)),
            );
        }
    }
    granted.sort();
    asked.sort();
    assert_eq!(asked, granted);
}
