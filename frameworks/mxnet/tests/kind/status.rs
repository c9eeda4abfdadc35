//! The additional status fields of an MXJob, and the status that a manifest may contain.

use serde_json::{Value, json};
use training_job::Kind;
use training_job::TrainingJob;
use training_job::api::{JobStatus, ReplicaStatus};
use training_job::validate::manifest::check;
use training_job_mxnet::MXJob;

fn job(version: &str, spec: Value, status: Value) -> Value {
    let mut job = json!({
        "apiVersion": format!("kubeflow.org/{version}"), "kind": "MXJob", "metadata": {"name": "job"},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {"Worker": {
            "template": {"spec": {"containers": [{"name": "mxnet", "image": "i"}]}}}}},
        "status": status,
    });
    for (field, value) in spec.as_object().unwrap() {
        job["spec"][field] = value.clone();
    }
    job
}

fn written(job: Value) -> Value {
    let job: MXJob = serde_json::from_value(job).unwrap();
    let worker = ReplicaStatus {
        active: 1,
        ..ReplicaStatus::default()
    };
    let status = JobStatus {
        replica_statuses: [("Worker".to_owned(), worker)].into(),
        ..JobStatus::default()
    };
    job.encode_status(&status, None).unwrap()["mxReplicaStatuses"].clone()
}

#[test]
fn jobs_of_the_stand_alone_operator_have_their_replicas_under_its_name_too() {
    let counts = json!({"Worker": {"active": 1}});
    let stand_alone = json!({"compatibility": "MXNetOperator"});
    assert_eq!(written(job("v1", stand_alone, json!({}))), counts);
    assert_eq!(written(job("v1", json!({"backoffLimit": 1}), json!({}))), counts);
    assert_eq!(written(job("v1", json!({}), json!({}))), Value::Null);
    // Once the field exists, it stays up to date.
    let before = json!({"mxReplicaStatuses": {"Worker": {"active": 9}}});
    assert_eq!(written(job("v1", json!({}), before)), counts);
}

#[test]
fn the_status_of_the_stand_alone_operator_is_ignored() {
    for odd in [
        json!({"Worker": {"active": 9}}),
        json!([1]),
        json!("x"),
        json!(null),
    ] {
        let job: MXJob =
            serde_json::from_value(job("v1", json!({}), json!({"mxReplicaStatuses": odd}))).unwrap();
        assert_eq!(job.status(), Some(&JobStatus::default()));
    }
}

#[test]
fn no_status_keeps_a_file_from_being_used() {
    let kind = Kind::of::<MXJob>();
    for version in ["v1", "v1beta1", "v1alpha2"] {
        for status in [
            json!(null),
            json!(5),
            json!([]),
            json!({"phase": "Done", "conditions": [{"transitionTime": 1, "type": null}]}),
            json!({"replicaStatuses": [{"mx_replica_type": "WORKER"}], "startTime": "yesterday"}),
        ] {
            let checked = check(&kind, &job(version, json!({}), status.clone()));
            let checked = checked.unwrap_or_else(|errors| panic!("{version} {status}: {errors}"));
            assert!(checked.object.get("status").is_none(), "{status}");
        }
    }
}

#[test]
fn jobs_of_older_versions_get_the_rules_of_the_stand_alone_operator() {
    let kind = Kind::of::<MXJob>();
    let filled = |version: &str, spec: Value| {
        let checked = check(&kind, &job(version, spec, json!({})));
        checked.unwrap().object["spec"]["compatibility"].clone()
    };
    assert_eq!(filled("v1beta1", json!({})), "MXNetOperator");
    assert_eq!(
        filled("v1alpha2", json!({"compatibility": null})),
        "MXNetOperator"
    );
    let spec = json!({"compatibility": "TrainingOperator"});
    assert_eq!(filled("v1beta1", spec), "TrainingOperator");
    assert_eq!(filled("v1", json!({})), Value::Null);
}

/// A field of the spec itself and an annotation may each say the same as another field.
#[test]
fn two_places_of_one_value_must_not_differ() {
    let errors = |spec: Value, annotations: Value| {
        let mut job = job("v1", spec, json!({}));
        job["metadata"]["annotations"] = annotations;
        let found = check(&Kind::of::<MXJob>(), &job).err().unwrap_or_default();
        found.to_string()
    };
    let kueue = "kueue.x-k8s.io/multikueue";
    let ours = "kubeflow.org/training-operator";
    let managed = |nested: &str| json!({"managedBy": kueue, "runPolicy": {"managedBy": nested}});
    assert_eq!(errors(managed(kueue), json!({})), "");
    assert_eq!(
        errors(managed(ours), json!({})),
        "spec.managedBy: must have the same value as spec.runPolicy.managedBy; change or remove one of them"
    );
    let annotated = |name: &str, value: &str| json!({ format!("training.kubeflow.org/{name}"): value });
    let stand_alone = || json!({"compatibility": "MXNetOperator"});
    assert_eq!(
        errors(stand_alone(), annotated("compatibility", "MXNetOperator")),
        ""
    );
    let differs = |annotation: &str, field: &str| {
        format!(
            "metadata.annotations[training.kubeflow.org/{annotation}]: must have the same value as {field}; change or remove \
             one of them"
        )
    };
    assert_eq!(
        errors(stand_alone(), annotated("compatibility", "TrainingOperator")),
        differs("compatibility", "spec.compatibility")
    );
    assert_eq!(
        errors(
            json!({"runPolicy": {"restartScope": "Job"}}),
            annotated("restart-scope", "Role")
        ),
        differs("restart-scope", "spec.runPolicy.restartScope")
    );
}
