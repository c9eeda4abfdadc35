//! The error messages of invalid jobs: one job for each mistake in `invalid/`, and the messages in `snapshots/`.

use std::fs;

use serde_json::{Value, json};
use training_job::{Settings, validate};
use training_job_mxnet::MXJob;

#[test]
fn every_error_has_its_path_and_remedy() {
    insta::glob!("..", "invalid/*.yaml", |path| {
        let text = fs::read_to_string(path).unwrap();
        let told = match serde_saphyr::from_str::<MXJob>(&text) {
            Err(unreadable) => unreadable.to_string(),
            Ok(job) => match validate(&job, &Settings::default()) {
                Err(errors) => errors.to_string(),
                Ok(_) => panic!("{} is valid", path.display()),
            },
        };
        insta::assert_snapshot!(told);
    });
}

/// Other roles would run outside of the quota.
#[test]
fn a_job_in_a_queue_has_only_roles_of_its_mode() {
    let role = json!({"replicas": 1, "template": {"spec": {"containers": [{"name": "mxnet", "image": "example.com/mxnet:1"}]}}});
    let mut job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": "job", "namespace": "team"},
        "spec": {"mxReplicaSpecs": {"Worker": role, "Tuner": role}},
    });
    let errors = |job: &Value| {
        let job: MXJob = serde_json::from_value(job.clone()).unwrap();
        validate(&job, &Settings::default())
            .err()
            .map(|errors| errors.to_string())
    };
    assert_eq!(errors(&job), None, "in no queue it may");
    job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "blue"});
    let problem = "spec.mxReplicaSpecs.Tuner: must not be in a queued MXTrain job, because Kueue does not count the pods \
                   of a Tuner; remove it, or remove the label kueue.x-k8s.io/queue-name";
    assert_eq!(errors(&job).as_deref(), Some(problem));
    job["spec"]["mxReplicaSpecs"]["Tuner"]["replicas"] = json!(0);
    assert_eq!(errors(&job), None);
}
