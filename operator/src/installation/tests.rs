//! Tests of the findings.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use training_job_cli::doctor::{findings, observations, text};
use training_job_cli::installation::{ClusterState, MissingPermission};
use training_job_controller::process::{program, rules};

use super::{OPTIONAL_KINDS, installation};
use crate::kinds::kinds;

/// Returns a cluster without problems: this operator, its definitions, and a job.
fn healthy_cluster() -> ClusterState {
    let kinds = kinds();
    crate::cli::program(&kinds).install();
    let runs = |kind: &&std::sync::Arc<training_job_cli::Kind>| !OPTIONAL_KINDS.contains(&kind.name());
    let definitions = kinds.iter().filter(runs).map(|kind| definition(kind));
    ClusterState {
        version: (1, 35),
        git_version: "v1.35.4".to_owned(),
        now: "2026-01-01T01:00:00Z".parse().unwrap(),
        definitions: definitions.collect(),
        jobs: vec![job("today", json!({"jobMode": "MXTrain"}), json!({}))],
        deployments: vec![deployment(
            "training-operator",
            "example.com/training-operator:1",
            json!(["run"]),
        )],
        leases: vec![lease("kubeflow")],
        ..ClusterState::default()
    }
}

/// Returns the definition of a kind as the API server stores it.
fn definition(kind: &training_job_cli::Kind) -> Value {
    let mut definition = serde_json::to_value(kind.built_definition().unwrap()).unwrap();
    let stored = definition["spec"]["versions"][0]["name"].clone();
    definition["status"] = json!({"storedVersions": [stored]});
    definition
}

fn job(name: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"namespace": "ns", "name": name},
        "spec": spec, "status": status})
}

fn deployment(name: &str, image: &str, args: Value) -> Value {
    json!({"metadata": {"namespace": "kubeflow", "name": name}, "spec": {"template": {"spec": {
        "serviceAccountName": name, "containers": [{"image": image, "args": args}]}}}, "status": {"readyReplicas": 1}})
}

fn lease(namespace: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": program().lease},
        "spec": {"holderIdentity": "a-pod", "renewTime": "2026-01-01T00:59:57.500000Z"}})
}

fn webhook(kind: &str, policy: &str) -> Value {
    let service = json!({"namespace": "kubeflow", "name": "training-operator"});
    json!({"kind": kind, "metadata": {"name": "validator.training-operator.kubeflow.org"}, "webhooks": [
        {"failurePolicy": policy, "clientConfig": {"service": service}, "rules": [{"apiGroups": ["kubeflow.org"]}]}]})
}

fn report(state: &ClusterState) -> String {
    let kinds = kinds();
    let text = text(&observations(state, &kinds), &findings(state, &kinds));
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn a_healthy_cluster_has_no_findings() {
    insta::assert_snapshot!(report(&healthy_cluster()), @r"
    API server: Kubernetes 1.35.4
    CRDs: 6 of 6 current
    operator kubeflow/training-operator: example.com/training-operator:1, 1 of 1 pods ready
    lease kubeflow/1ca428e5.training-operator.kubeflow.org: held by a-pod, renewed 2 s ago
    jobs: 1
    errors: 0, warnings: 0
    ");
}

#[test]
fn remains_of_older_operators_are_reported() {
    let mut state = healthy_cluster();
    state.definitions[0]["spec"]["preserveUnknownFields"] = json!(true);
    state.definitions[1]["status"]["storedVersions"] = json!(["v1alpha1", "v1"]);
    state.definitions.pop();
    let other = json!({"metadata": {"name": "experiments.kubeflow.org"}, "spec": {"group": "kubeflow.org"}});
    state.definitions.push(other);
    state.webhooks = vec![
        webhook("ValidatingWebhookConfiguration", "Fail"),
        webhook("MutatingWebhookConfiguration", "Ignore"),
    ];
    state.deployments.extend([
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
    state.jobs.extend((0..7).map(named));
    let mut running = job("dist", json!({}), json!({"phase": "Running"}));
    running["apiVersion"] = json!("mxnet.mlkube.io/v1beta1");
    running["kind"] = json!("MxJob");
    state.jobs.push(running.clone());
    // Only this operator's conditions have a status.
    running["status"]["conditions"] = json!([{"type": "Running", "status": "True"}]);
    state.jobs.push(running);
    insta::assert_snapshot!(report(&state));
}

#[test]
fn missing_parts_of_the_installation_are_reported() {
    let mut state = healthy_cluster();
    state.version = (1, 28);
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    state.definitions[0]
        .pointer_mut(fields)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .clear();
    state.leases.push(lease("team"));
    let account = ("kubeflow".to_owned(), "training-operator".to_owned());
    for (verb, resource) in [("patch", "pods"), ("patch", "services")] {
        state.missing_permissions.push(MissingPermission {
            account: account.clone(),
            permission: (verb.to_owned(), resource.to_owned()),
        });
    }
    state.git_version = "v1.28.9".to_owned();
    state.deployments[0]["spec"]["replicas"] = json!(2);
    for (verb, resource) in [
        ("list", "services"),
        ("list", "leases.coordination.k8s.io"),
        ("create", "subjectaccessreviews.authorization.k8s.io"),
    ] {
        state.forbidden.push((verb.to_owned(), resource.to_owned()));
    }
    let gone = ("pods of v1".to_owned(), "the server is shutting down".to_owned());
    state.unreadable.push(gone);
    insta::assert_snapshot!(report(&state));
}

#[test]
fn a_deployment_without_replicas_is_ignored() {
    let mut state = healthy_cluster();
    let mut old = deployment("mxnet-operator", "mxjob/mxnet-operator:v1", json!(null));
    old["spec"]["replicas"] = json!(0);
    state.deployments.push(old);
    assert!(
        report(&state).ends_with("errors: 0, warnings: 0\n"),
        "{}",
        report(&state)
    );
}

/// The status of the Deployment may say for minutes that all is well.
#[test]
fn an_operator_that_does_not_lead_is_an_error_and_so_are_jobs_that_it_has_not_seen() {
    let mut state = healthy_cluster();
    let elects = json!(["run", "--leader-elect"]);
    state.deployments[0] = deployment("training-operator", "training-operator:1", elects);
    let mut unseen = job("unseen", json!({}), json!(null));
    unseen["metadata"]["creationTimestamp"] = "2026-01-01T00:58:00Z".into();
    let mut elsewhere = unseen.clone();
    elsewhere["spec"] = json!({"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}});
    state.jobs.extend([unseen, elsewhere]);
    let problem = "jobs: error: no operator has seen them for more than a minute: ns/unseen; check that";
    assert!(report(&state).contains(problem), "{}", report(&state));
    assert!(report(&state).contains("errors: 1, "), "{}", report(&state));

    state.leases[0]["spec"]["leaseDurationSeconds"] = 15.into();
    assert!(report(&state).contains("errors: 1, "), "{}", report(&state));
    state.leases[0]["spec"]["renewTime"] = "2026-01-01T00:57:31Z".into();
    let problem =
        "error: renewed 149 s ago and lasts 15 s, so its holder has ended and no jobs run; see the pods";
    assert!(report(&state).contains(problem), "{}", report(&state));
    state.leases.clear();
    let problem =
        "error: no process holds it, so no jobs run; see the pods and the log: kubectl --namespace kubeflow";
    assert!(report(&state).contains(problem), "{}", report(&state));
    state.deployments[0]["spec"]["replicas"] = 0.into();
    assert!(
        !report(&state).contains("no process holds it"),
        "{}",
        report(&state)
    );
}

#[test]
fn jobs_that_wait_for_long_are_listed_with_the_reason() {
    let mut state = healthy_cluster();
    let mut add = |name: &str, started: &str, status: Value| {
        let mut job = job(name, json!({}), status);
        job["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        job["status"]["startTime"] = started.into();
        state.jobs.push(job);
    };
    let old = "2026-01-01T00:10:00Z";
    add("unschedulable", old, json!({"waitingReason": "Unschedulable"}));
    add("quiet", old, json!({}));
    add("new", "2026-01-01T00:50:00Z", json!({}));
    add(
        "runs",
        old,
        json!({"conditions": [{"type": "Running", "status": "True"}]}),
    );
    let expected = "jobs: note: waiting for more than 10 minutes: ns/unschedulable (Unschedulable), \
                    ns/quiet (no reason in its status); kubectl describe shows the events of a job\n\
                    errors: 0, warnings: 0\n";
    assert!(report(&state).ends_with(expected), "{}", report(&state));
}

/// Such a job may run, or have ended.
#[test]
fn jobs_with_an_object_that_cannot_be_written_are_an_error() {
    let mut state = healthy_cluster();
    let running = json!([{"type": "Running", "status": "True"}]);
    for (name, reason) in [
        ("key", "FailedPatchSecret"),
        ("quota", "FailedCreatePod"),
        ("role", "FailedCreateRole"),
    ] {
        let status =
            json!({"startTime": "2026-01-01T00:10:00Z", "conditions": running, "waitingReason": reason});
        state.jobs.push(job(name, json!({}), status));
    }
    let expected = "jobs: error: an object of them cannot be written, and the operator tries again: ns/key \
                    (FailedPatchSecret), ns/role (FailedCreateRole); see the object and the cause: kubectl --namespace ns \
                    describe mxjob key; ";
    assert!(report(&state).contains(expected), "{}", report(&state));
    assert!(
        report(&state).ends_with("errors: 1, warnings: 0\n"),
        "{}",
        report(&state)
    );
}

#[test]
fn kinds_of_other_operators_are_one_note() {
    let mut state = healthy_cluster();
    state.deployments[0] = deployment(
        "training-operator",
        "training-operator:1",
        json!(["run", "--enable-scheme=MXJob"]),
    );
    let report = report(&state);
    assert!(report.contains("CRDs: 1 of 1 current\n"), "{report}");
    let notes: Vec<&str> = report.lines().filter(|line| line.contains("note:")).collect();
    assert_eq!(notes.len(), 1, "{report}");
    assert!(
        notes[0].starts_with("CRDs: note: this operator does not run jobs of "),
        "{report}"
    );
}

/// Another operator may own the definition of MPIJobs as long as this operator does not run them.
#[test]
fn disabled_kinds_need_no_definitions() {
    let args = json!(["run", "--enable-scheme=MXJob,tfjob", "--enable-scheme", "MPIJob"]);
    let mut state = healthy_cluster();
    state.deployments = vec![deployment("training-operator", "training-operator:1", args)];
    let kinds = kinds();
    let mpi = kinds
        .iter()
        .find(|kind| kind.resource.plural == "mpijobs")
        .unwrap();
    state.definitions = vec![definition(mpi)];
    let missing = report(&state);
    assert!(missing.contains("errors: 0, warnings: 2"), "{missing}");

    let of_another = json!([{"name": "v2beta1"}]);
    state.definitions[0]["spec"]["versions"] = of_another;
    let problem = "CRD mpijobs.kubeflow.org: error: its versions or fields differ from those of this operator; apply it with: \
                   kubectl apply --server-side --force-conflicts -k crds/mpi";
    assert!(report(&state).contains(problem), "{}", report(&state));
    for without in [json!(["run", "--enable-scheme=MXJob"]), json!(null)] {
        state.deployments[0] = deployment("training-operator", "training-operator:1", without);
        assert!(report(&state).contains("errors: 0, "), "{}", report(&state));
    }
}

#[test]
fn an_mpi_operator_is_reported_with_the_definition_that_is_installed() {
    let mut state = healthy_cluster();
    state.deployments.push(deployment(
        "mpi-operator",
        "mpioperator/mpi-operator:0.6.0",
        json!(null),
    ));
    assert!(!report(&state).contains("mpi-operator:"), "{}", report(&state));
    let kinds = kinds();
    let mpi = kinds
        .iter()
        .find(|kind| kind.resource.plural == "mpijobs")
        .unwrap();
    state.definitions.push(definition(mpi));
    let problem = "deployment kubeflow/mpi-operator: warning: runs the mpi-operator, which runs all MPIJobs beside this \
                   operator; once its jobs have ended, delete it: kubectl --namespace kubeflow delete deployment \
                   mpi-operator\n";
    assert!(report(&state).contains(problem), "{}", report(&state));
    state.definitions.last_mut().unwrap()["spec"]["versions"] = json!([{"name": "v2beta1"}]);
    let note = "deployment kubeflow/mpi-operator: note: runs the mpi-operator, to which the definition of MPIJob belongs; do";
    assert!(report(&state).contains(note), "{}", report(&state));
    assert!(
        report(&state).contains("errors: 0, warnings: 0"),
        "{}",
        report(&state)
    );
}

#[test]
fn a_missing_right_is_an_error_unless_only_a_variant_needs_it() {
    let mut state = healthy_cluster();
    let mpi = json!(["run", "--enable-scheme=MPIJob"]);
    state.deployments[0] = deployment("training-operator", "training-operator:1", mpi);
    for resource in ["services", "secrets"] {
        state.missing_permissions.push(MissingPermission {
            account: ("kubeflow".to_owned(), "training-operator".to_owned()),
            permission: ("list".to_owned(), resource.to_owned()),
        });
    }
    let report = report(&state);
    let account = "service account kubeflow/training-operator";
    for line in [
        "error: lacks permissions: list services;",
        "note: lacks permissions that only some jobs need: list secrets;",
    ] {
        assert!(report.contains(&format!("{account}: {line}")), "{report}");
    }
}

#[test]
fn the_checked_permissions_are_those_of_the_role() {
    let read = |file: &str| {
        let file = format!("{}/../manifests/{file}", env!("CARGO_MANIFEST_DIR"));
        kube_manifest::parse(&std::fs::read_to_string(file).unwrap()).unwrap()[0].to_json()
    };
    let added = ["mpi", "mpi-ssh", "mlkube"].map(|component| {
        let component = read(&format!("{component}/kustomization.yaml"));
        let patches = component["patches"].as_array().unwrap();
        let patch = patches.last().unwrap()["patch"].as_str().unwrap();
        let added = kube_manifest::parse(patch).unwrap()[0].to_json();
        added
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["value"].clone())
            .collect::<Vec<_>>()
    });
    let role = read("base/role.yaml");
    let mut granted = Vec::new();
    for rule in role["rules"]
        .as_array()
        .unwrap()
        .iter()
        .cloned()
        .chain(added.into_iter().flatten())
    {
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
    let mut checked = rules(&kinds().of_operator());
    checked.extend((installation().more_rules)("MPIJob"));
    let of_rule = |rule: &PolicyRule| -> Vec<String> {
        let resources = rule.resources.iter().flatten();
        let each =
            resources.flat_map(|resource| rule.verbs.iter().map(move |verb| format!("{verb} {resource}")));
        each.collect()
    };
    let mut checked: Vec<String> = checked.iter().flat_map(of_rule).collect();
    granted.sort();
    granted.dedup();
    checked.sort();
    checked.dedup();
    assert_eq!(checked, granted);
}

/// MultiKueue copies jobs by the Go operator's types, including their annotations.
#[test]
fn fields_that_copies_lose_are_reported() {
    let mut state = healthy_cluster();
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
    state.jobs.extend([original, elsewhere, here, copy, complete]);
    insta::assert_snapshot!(report(&state));
}
