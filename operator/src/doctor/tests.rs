//! Tests of the findings.

use serde_json::{Value, json};

use super::diagnosis::findings;
use super::seen::{Missing, RIGHTS, Seen, enabled, rights_to_jobs, rights_to_objects};
use super::text;
use crate::kinds::kinds;
use crate::lease::LEASE;

/// Returns a cluster without problems: this operator, its definitions, and a job.
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
    json!({"metadata": {"namespace": namespace, "name": LEASE},
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
    let other = json!({"metadata": {"name": "experiments.kubeflow.org"}, "spec": {"group": "kubeflow.org"}});
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
    // Only this operator's conditions have a status.
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

#[test]
fn what_does_not_run_is_no_operator() {
    let mut seen = well();
    let mut old = deployment("mxnet-operator", "mxjob/mxnet-operator:v1", json!(null));
    old["spec"]["replicas"] = json!(0);
    seen.deployments.push(old);
    assert_eq!(told(&seen), "errors: 0, warnings: 0\n");
}

/// Another operator may own the definition of MPIJobs as long as this operator does not run them.
#[test]
fn kinds_that_are_not_run_need_nothing() {
    let args = json!(["run", "--enable-scheme=MXJob,tfjob", "--enable-scheme", "MPIJob"]);
    let mut seen = well();
    seen.deployments = vec![deployment("training-operator", "training-operator:1", args)];
    let of = |seen: &Seen| -> Vec<String> {
        let kinds = kinds();
        let enabled = enabled(&seen.deployments[0], &kinds);
        enabled.iter().map(|kind| kind.name().to_owned()).collect()
    };
    assert_eq!(of(&seen), ["MXJob", "TFJob", "MPIJob"]);
    let is_mpi = |d: &Value| d["metadata"]["name"] == "mpijobs.kubeflow.org";
    seen.definitions.retain(is_mpi);
    let missing = told(&seen);
    assert!(missing.contains("errors: 0, warnings: 2"), "{missing}");

    let of_another = json!([{"name": "v2beta1"}]);
    seen.definitions[0]["spec"]["versions"] = of_another;
    let problem = "definition mpijobs.kubeflow.org: its versions or fields differ from those of this operator; apply it with: \
                   kubectl apply --server-side --force-conflicts -f crds/kubeflow.org_mpijobs.yaml";
    assert!(told(&seen).contains(problem), "{}", told(&seen));
    for without in [json!(["run", "--enable-scheme=MXJob"]), json!(null)] {
        seen.deployments[0] = deployment("training-operator", "training-operator:1", without);
        assert!(told(&seen).contains("errors: 0, "), "{}", told(&seen));
    }
}

#[test]
fn the_rights_are_those_of_the_role() {
    let read = |file: &str| {
        let file = format!("{}/../manifests/{file}", env!("CARGO_MANIFEST_DIR"));
        kube_manifest::parse(&std::fs::read_to_string(file).unwrap()).unwrap()[0].to_json()
    };
    let component = read("mpi/kustomization.yaml");
    let patch = component["patches"][1]["patch"].as_str().unwrap();
    let added = kube_manifest::parse(patch).unwrap()[0].to_json();
    let added = added.as_array().unwrap().iter().map(|one| one["value"].clone());
    let role = read("base/role.yaml");
    let mut granted = Vec::new();
    for rule in role["rules"].as_array().unwrap().iter().cloned().chain(added) {
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
    let mut ask = |resource: &str, verbs: &[&str]| {
        asked.extend(verbs.iter().map(|verb| format!("{verb} {resource}")));
    };
    for (resource, verbs) in RIGHTS {
        ask(resource, verbs);
    }
    for kind in kinds() {
        for (_, resource, verbs) in rights_to_objects(&kind) {
            ask(resource, verbs);
        }
        for (subresource, verbs) in rights_to_jobs(&kind) {
            ask(&format!("{}{subresource}", kind.resource.plural), verbs);
        }
    }
    granted.sort();
    asked.sort();
    assert_eq!(asked, granted);
}

/// MultiKueue copies jobs by the Go operator's types, including their annotations.
#[test]
fn what_copies_in_another_cluster_lose_is_told() {
    let mut seen = well();
    let multikueue = "kueue.x-k8s.io/multikueue";
    let policy = json!({"managedBy": multikueue, "failurePolicy": {"maxRestarts": 3}, "layout": "Compact", "restartScope": ""});
    let mut original = job(
        "original",
        json!({"runPolicy": policy, "compatibility": "MXNetOperator"}),
        json!({}),
    );
    original["metadata"]["annotations"] = json!({"training.kubeflow.org/layout": "Compact"});
    let top = json!({"managedBy": multikueue, "runPolicy": {"successPolicy": {}}});
    let mut elsewhere = job("elsewhere", top, json!({}));
    elsewhere["kind"] = "PyTorchJob".into();
    let here = job(
        "here",
        json!({"runPolicy": {"failurePolicy": {"maxRestarts": 3}}}),
        json!({}),
    );
    let mut copy = job("copy", json!({}), json!({}));
    copy["metadata"]["labels"] = json!({"kueue.x-k8s.io/multikueue-origin": "manager"});
    let mut complete = copy.clone();
    complete["metadata"]["name"] = "complete".into();
    complete["metadata"]["annotations"] = json!({"training.kubeflow.org/restart-scope": "Replica"});
    seen.jobs.extend([original, elsewhere, here, copy, complete]);
    insta::assert_snapshot!(told(&seen));
}
