//! Scenarios of MxJobs and TfJobs.
use jiff::Timestamp;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use training_job::api::JobStatus;
use training_job::plan::{self, observed::Observed};
use training_job::{Settings, TrainingJob, validate};
use training_job_mlkube::{MxJob, TfJob};
use training_job_testing::Story;

const NOW: Timestamp = Timestamp::constant(1_700_000_000, 0);

/// Returns a job with these entries and other fields in its spec.
fn manifest(
    api: &str,
    kind: &str,
    field: &str,
    container: &str,
    roles: &[(&str, i32)],
    spec: &Value,
) -> Value {
    let template = json!({"spec": {
        "containers": [{"name": container, "image": "example.com/i:1"}], "restartPolicy": "OnFailure",
    }});
    let entries = roles
        .iter()
        .map(|(role, replicas)| json!({field: role, "replicas": replicas, "template": template}));
    let mut job = json!({
        "apiVersion": api, "kind": kind, "metadata": {"name": "job", "namespace": "team"}, "spec": spec,
    });
    job["spec"]["replicaSpecs"] = entries.collect();
    job
}

fn mx(roles: &[(&str, i32)], mode: &str) -> Value {
    let spec = json!({"jobMode": mode, "RuntimeId": "x7f2"});
    let api = "mxnet.mlkube.io/v1beta1";
    manifest(api, "MxJob", "mxReplicaType", "mxnet", roles, &spec)
}

fn dist() -> Value {
    mx(&[("SCHEDULER", 1), ("SERVER", 1), ("WORKER", 2)], "dist")
}

fn tf(roles: &[(&str, i32)], fields: &Value) -> Value {
    let mut spec = json!({"RuntimeId": "x7f2"});
    let more = fields.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(more);
    manifest(
        "mlkube.io/v1beta1",
        "TfJob",
        "tfReplicaType",
        "tensorflow",
        roles,
        &spec,
    )
}

/// Returns the stored status without the fields that all kinds have.
fn stored_status<J: TrainingJob>(story: &Story<J>) -> Value {
    let job = serde_json::to_value(story.job().unwrap()).unwrap();
    let mut status = job["status"].clone();
    let fields = status.as_object_mut().unwrap();
    fields.retain(|name, _| ["phase", "state", "reason", "replicaStatuses"].contains(&name.as_str()));
    status
}

fn phase<J: TrainingJob>(story: &Story<J>) -> (String, String) {
    let status = stored_status(story);
    let text = |name: &str| status[name].as_str().unwrap().to_owned();
    (text("phase"), text("state"))
}

fn is(phase: &str, state: &str) -> (String, String) {
    (phase.to_owned(), state.to_owned())
}

#[test]
fn a_distributed_job_is_created_runs_and_is_done_when_its_scheduler_is() {
    let mut story = Story::<MxJob>::new(&dist().to_string());
    assert_eq!(phase(&story), is("Creating", "Unknown"));
    story.all_run();
    assert_eq!(
        stored_status(&story),
        json!({
            "phase": "Running", "state": "Running", "reason": "",
            "replicaStatuses": [
                {"Mx_replica_type": "SCHEDULER", "state": "Running", "ReplicasStates": {"Running": 1}},
                {"Mx_replica_type": "SERVER", "state": "Running", "ReplicasStates": {"Running": 1}},
                {"Mx_replica_type": "WORKER", "state": "Running", "ReplicasStates": {"Running": 2}},
            ],
        })
    );
    story.exits("job-worker-x7f2-0", 0).exits("job-worker-x7f2-1", 0);
    assert_eq!(phase(&story), is("Running", "Running"));
    story.exits("job-scheduler-x7f2-0", 0);
    assert_eq!(phase(&story), is("Done", "Succeeded"));
    assert_eq!(story.conditions(), ["Created", "Succeeded"]);
    let job = serde_json::to_value(story.job().unwrap()).unwrap();
    for condition in job["status"]["conditions"].as_array().unwrap() {
        assert_eq!(condition["transitionTime"], condition["lastTransitionTime"]);
        assert!(condition["transitionTime"].is_string(), "{condition}");
    }
}

#[test]
fn a_signal_restarts_the_whole_job_and_an_error_fails_it() {
    let mut story = Story::<MxJob>::new(&dist().to_string());
    story.all_run().exits("job-worker-x7f2-1", 137);
    assert_eq!(story.restarted().len(), 4);
    assert_eq!(phase(&story), is("Running", "Running"), "it runs again");
    story.all_run().exits("job-server-x7f2-0", 3);
    assert_eq!(phase(&story), is("Done", "Failed"));
    let reason = stored_status(&story)["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("SERVER"), "{reason}");
}

/// The container would run out of memory again.
#[test]
fn replicas_that_ran_out_of_memory_are_not_restarted() {
    let valid_job: MxJob = serde_json::from_value(dist()).unwrap();
    let valid = validate(&valid_job, &Settings::default()).unwrap();
    let role = &valid.topology.roles[0];
    assert!(valid_job.is_retryable(role, 137, "Error"));
    assert!(!valid_job.is_retryable(role, 137, "OOMKilled"));
    assert!(!valid_job.is_retryable(role, 127, "Error"));
}

#[test]
fn a_local_job_is_one_worker_without_a_cluster() {
    let mut story = Story::<MxJob>::new(&mx(&[("WORKER", 1)], "local").to_string());
    let worker = "job-worker-x7f2-0";
    let containers = story.pod(worker).spec.unwrap().containers;
    assert_eq!(containers[0].env, None);
    story.all_run().exits(worker, 137);
    assert_eq!(story.restarted(), [worker]);
    story.all_run().exits(worker, 0);
    assert_eq!(phase(&story), is("Done", "Succeeded"));
}

#[test]
fn an_invalid_spec_fails_with_the_reason_until_it_is_corrected() {
    let mut object = mx(&[("WORKER", 2)], "local");
    let job: MxJob = serde_json::from_value(object.clone()).unwrap();
    let errors = validate(&job, &Settings::default()).unwrap_err().to_string();
    let plan = plan::invalid(
        "MxJob",
        "job",
        &JobStatus::default(),
        None,
        &errors,
        &Observed::default(),
        NOW,
    );
    let status = job.encode_status(&plan.status.unwrap().status, None).unwrap();
    assert_eq!(&status["phase"], &json!("Failed"));
    assert_eq!(&status["state"], &json!("Failed"));
    let reason = status["reason"].as_str().unwrap();
    let expected = "must have one WORKER and no other replicas, because jobMode is local";
    assert!(
        reason.starts_with("invalid job spec: ") && reason.contains(expected),
        "{reason}"
    );

    object["status"] = status;
    object["spec"] = mx(&[("WORKER", 1)], "local")["spec"].take();
    let job: MxJob = serde_json::from_value(object).unwrap();
    let valid = validate(&job, &Settings::default()).unwrap();
    let plan = plan::plan(&valid, &Observed::default(), NOW);
    let status = job
        .encode_status(&plan.status.unwrap().status, Some(&valid.topology))
        .unwrap();
    assert_eq!(&status["phase"], &json!("Creating"));
    assert_eq!(&status["state"], &json!("Unknown"));
    assert_eq!(status["reason"], "");
}

/// As with `kubectl delete --cascade=foreground`.
#[test]
fn a_job_that_is_being_deleted_is_cleaned_up() {
    let mut new = dist();
    new["metadata"]["finalizers"] = json!(["example.com/wait"]);
    let mut story = Story::<MxJob>::new(&new.to_string());
    story.all_run().by_hand(async |client| {
        let jobs = Api::<MxJob>::namespaced(client, "team");
        jobs.delete("job", &DeleteParams::default()).await.unwrap();
    });
    assert_eq!(phase(&story), is("CleanUp", "Running"));
}

/// Names must not change during a job's life, so they are derived from a constant.
#[test]
fn names_follow_from_the_uid() {
    let mut new = mx(&[("WORKER", 1)], "local");
    new["spec"]["RuntimeId"].take();
    let story = Story::<MxJob>::new(&new.to_string());
    let pods = story.pods();
    let id = pods[0]
        .strip_prefix("job-worker-")
        .and_then(|rest| rest.strip_suffix("-0"));
    assert!(id.is_some_and(|id| id.len() == 4), "{pods:?}");
    let labels = story.pod(&pods[0]).metadata.labels.unwrap();
    assert_eq!(labels["runtime_id"], id.unwrap());
    assert_eq!(labels["job_type"], "WORKER");
}

/// The job has the status of the old operator, whose conditions had no status field.
#[test]
fn jobs_that_ended_under_the_old_operator_are_not_started_again() {
    for state in ["Succeeded", "Failed"] {
        let mut old = dist();
        old["status"] = json!({
            "phase": "Done", "state": state, "reason": "", "controlPaused": false,
            "conditions": [
                {"type": "Ready", "reason": "", "transitionTime": "2017-11-01T10:00:00Z"},
                {"type": "Recovering", "reason": "", "transitionTime": "2017-11-01T11:00:00Z"},
            ],
            "replicaStatuses": [{"Mx_replica_type": "WORKER", "state": state, "ReplicasStates": {state: 2}}],
        });
        let job: MxJob = serde_json::from_value(old).unwrap();
        let valid = validate(&job, &Settings::default()).unwrap();
        let plan = plan::plan(&valid, &Observed::default(), NOW);
        assert!(!plan.changes_children(), "{plan:#?}");
        let next = job.encode_status(&plan.status.unwrap().status, None).unwrap();
        assert_eq!((&next["phase"], &next["state"]), (&json!("Done"), &json!(state)));
        assert_eq!(next["conditions"][0]["type"], state);
        assert_eq!(next["completionTime"], "2017-11-01T11:00:00Z");
    }
}

#[test]
fn a_master_decides_and_a_server_without_a_template_serves() {
    let mut new = tf(
        &[("MASTER", 1), ("WORKER", 1)],
        &json!({"tfImage": "example.com/tf:1"}),
    );
    let server = json!({"tfReplicaType": "PS", "replicas": 2});
    new["spec"]["replicaSpecs"].as_array_mut().unwrap().push(server);
    let mut story = Story::<TfJob>::new(&new.to_string());
    let server = story.pod("job-ps-x7f2-1").spec.unwrap();
    assert_eq!(server.containers[0].image.as_deref(), Some("example.com/tf:1"));
    let env = server.containers[0].env.clone().unwrap();
    assert_eq!(
        env[0].value.as_deref(),
        Some(
            r#"{"cluster":{"master":["job-master-x7f2-0:2222"],"ps":["job-ps-x7f2-0:2222","job-ps-x7f2-1:2222"],"worker":["job-worker-x7f2-0:2222"]},"task":{"type":"ps","index":1},"environment":"cloud"}"#
        )
    );
    story.all_run().exits("job-worker-x7f2-0", 0);
    assert_eq!(phase(&story), is("Running", "Running"));
    story.exits("job-ps-x7f2-0", 137);
    assert_eq!(story.restarted(), ["job-ps-x7f2-0"]);
    story.all_run().exits("job-master-x7f2-0", 0);
    assert_eq!(phase(&story), is("Done", "Succeeded"));
    assert_eq!(
        stored_status(&story)["replicaStatuses"][0]["tf_replica_type"],
        "MASTER"
    );
}

#[test]
fn tensorboard_stays_until_the_job_is_deleted_and_counts_for_nothing() {
    let board = json!({"tensorboard": {"logDir": "/logs", "serviceType": "NodePort"}});
    let mut story = Story::<TfJob>::new(&tf(&[("MASTER", 1)], &board).to_string());
    assert_eq!(story.pods(), ["job-master-x7f2-0", "tensorboard-x7f2"]);
    let service = story.object("services", "tensorboard-x7f2").unwrap();
    assert_eq!(service["spec"]["type"], "NodePort");
    let port = &service["spec"]["ports"][0];
    assert_eq!((&port["port"], &port["targetPort"]), (&json!(80), &json!(6006)));
    let labels = story.pod("tensorboard-x7f2").metadata.labels.unwrap();
    for (key, value) in service["spec"]["selector"].as_object().unwrap() {
        assert_eq!(labels[key], value.as_str().unwrap());
    }
    story.runs("job-master-x7f2-0").exits("job-master-x7f2-0", 0);
    assert_eq!(phase(&story), is("Done", "Succeeded"));
    assert!(story.pods().contains(&"tensorboard-x7f2".to_owned()));
    assert_eq!(
        stored_status(&story)["replicaStatuses"].as_array().unwrap().len(),
        1
    );
}
