//! The life of a job of that kind on the in-memory API. Its pods have names of their own, and its status has fields
//! of its own.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use training_job::api::ConditionType;
use training_job_testing::Story;

use super::object;
use training_job_testbed::ListJob;

#[test]
fn a_job_in_another_shape_lives_and_a_role_whose_failures_never_matter_does_not_fail_it() {
    let mut new = object(&[("HEAD", 1), ("WORKER", 2), ("NOTEBOOK", 1)]);
    new["metadata"]["uid"].take();
    let mut story = Story::<ListJob>::new(&new.to_string());
    let phase = |story: &Story<ListJob>| story.job().unwrap().status.unwrap().phase;
    let all = [
        "job-boss",
        "job-notebook-x1-0",
        "job-worker-x1-0",
        "job-worker-x1-1",
    ];
    let first = ["job-boss", "job-worker-x1-0", "job-worker-x1-1"];
    assert_eq!(story.pods(), first, "a notebook waits for the workers");
    story.runs("job-boss").runs("job-worker-x1-0");
    assert_eq!(story.pods(), first, "for all of them");
    story.runs("job-worker-x1-1");
    assert_eq!(
        story.pods(),
        all,
        "each is found again under its name, and none is surplus"
    );
    assert_eq!(phase(&story), "Creating");
    for name in first {
        assert!(story.object("services", name).is_some(), "{name}");
    }
    assert!(
        story.object("services", all[1]).is_none(),
        "nobody connects to it"
    );
    let client = story.job().unwrap().status.unwrap().client;
    assert_eq!(client, None, "there is none in this job");
    assert_eq!(story.conditions(), ["Created", "Running"]);

    // The job has no restarts left, and a notebook's failure does not count.
    story.exits("job-notebook-x1-0", 1);
    assert_eq!(story.pods(), all);
    assert_eq!(story.status().replica_statuses["NOTEBOOK"].failed, 1);

    story.exits("job-worker-x1-0", 0).exits("job-worker-x1-1", 0);
    assert_eq!(phase(&story), "Done");
    assert!(story.status().is(ConditionType::Succeeded));
    assert_eq!(
        story.pods(),
        ["job-notebook-x1-0", "job-worker-x1-0", "job-worker-x1-1"]
    );
}

#[test]
fn a_story_has_the_restarts_and_the_events() {
    let mut new = object(&[("CLIENT", 1), ("WORKER", 2)]);
    new["metadata"] = serde_json::json!({"name": "job", "namespace": "team"});
    let mut story = Story::<ListJob>::new(&new.to_string());
    story.runs("job-client-x1-0").all_run();
    let client = story.job().unwrap().status.unwrap().client;
    assert_eq!(client.as_deref(), Some("job-one"));
    assert_eq!(story.conditions(), ["Created", "Running"]);
    assert!(story.restarted().is_empty());

    story.deleted("job-worker-x1-1");
    assert_eq!(story.restarted(), ["job-worker-x1-1"]);
    assert_eq!(
        story.pod("job-worker-x1-1").status.unwrap().phase.as_deref(),
        Some("Pending")
    );
    story.evicted("job-client-x1-0");
    let told = story.events();
    let failed = "ListJobFailed: Job job has failed because it has reached the specified backoff limit (job-client-x1-0: ";
    assert!(told.iter().any(|event| event.starts_with(failed)), "{told:#?}");

    let begin = story.status().start_time.unwrap();
    story.patch(&serde_json::json!({"metadata": {"labels": {"a": "b"}}}));
    story.after(Duration::from_secs(3600));
    assert_eq!(story.status().start_time, Some(begin));
    assert_eq!(story.job().unwrap().metadata.labels.unwrap()["a"], "b");
}

#[test]
#[should_panic(expected = "no pod head (has job-client-x1-0, job-worker-x1-0, job-worker-x1-1)")]
fn a_missing_pod_is_reported() {
    let mut new = object(&[("CLIENT", 1), ("WORKER", 2)]);
    new["metadata"]["uid"].take();
    Story::<ListJob>::new(&new.to_string()).exits("head", 0);
}

#[test]
#[should_panic(expected = "no pod job-worker-x1-0 (has none); FailedCreatePod: Error creating: pods job-")]
fn a_refused_pod_is_reported_with_the_reason() {
    let mut new = object(&[("CLIENT", 1), ("WORKER", 2)]);
    new["metadata"]["uid"].take();
    for member in new["spec"]["members"].as_array_mut().unwrap() {
        member["template"]["spec"]["activeDeadlineSeconds"] = (-1).into();
    }
    Story::<ListJob>::new(&new.to_string()).runs("job-worker-x1-0");
}

#[test]
#[should_panic(expected = "the manifest has no ListJob of example.com/v1")]
fn a_manifest_without_a_job_is_reported() {
    Story::<ListJob>::new("kind: Other");
}

#[test]
fn restarts_of_a_tolerated_role_have_their_own_count() {
    let mut new = object(&[("CLIENT", 1), ("WORKER", 2), ("NOTEBOOK", 1)]);
    new["metadata"]["uid"].take();
    new["spec"]["backoffLimit"] = serde_json::json!(1);
    for member in new["spec"]["members"].as_array_mut().unwrap() {
        member["restartPolicy"] = "OnFailure".into();
    }
    let mut story = Story::<ListJob>::new(&new.to_string());
    story.all_run().exits("job-notebook-x1-0", 137);
    assert_eq!(story.restarted(), ["job-notebook-x1-0"]);
    assert_eq!(story.conditions(), ["Created", "Running"]);
    assert_eq!(story.status().restart_count, 0);

    // The notebook has used its own restart, and the workers still have theirs.
    story.all_run().exits("job-notebook-x1-0", 137);
    assert_eq!(story.status().replica_statuses["NOTEBOOK"].failed, 1);
    story.exits("job-worker-x1-0", 137);
    assert_eq!(story.restarted(), ["job-notebook-x1-0", "job-worker-x1-0"]);
    assert_eq!(story.status().restart_count, 1);
    story.all_run();
    assert_eq!(story.conditions(), ["Created", "Running"]);
}

/// The labels of a kind may depend on a spec that is edited.
#[test]
fn a_service_finds_its_pod_by_the_labels_that_every_kind_has() {
    let mut new = object(&[("CLIENT", 1), ("WORKER", 2)]);
    new["metadata"]["uid"].take();
    let story = Story::<ListJob>::new(&new.to_string());
    let service = story.object("services", "job-worker-x1-0").unwrap();
    let selector = serde_json::json!({
        "training.kubeflow.org/operator-name": "listjob-controller",
        "training.kubeflow.org/job-name": "job",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "0",
    });
    assert_eq!(service["spec"]["selector"], selector);
    assert_eq!(service["metadata"]["labels"]["member_type"], "WORKER");
}

/// Both fail before the operator reconciles. The notebook fails first, which does not count.
#[test]
fn the_failure_of_a_job_that_is_out_of_restarts_is_one_that_counts() {
    let mut new = object(&[("CLIENT", 1), ("WORKER", 2), ("NOTEBOOK", 1)]);
    new["metadata"]["uid"].take();
    new["spec"]["backoffLimit"] = serde_json::json!(1);
    for member in new["spec"]["members"].as_array_mut().unwrap() {
        member["restartPolicy"] = "OnFailure".into();
    }
    let mut story = Story::<ListJob>::new(&new.to_string());
    story.all_run().exits("job-worker-x1-0", 137).all_run();
    story.by_hand(async |client| {
        let pods = Api::<Pod>::default_namespaced(client);
        for (name, second) in [("job-notebook-x1-0", 1), ("job-worker-x1-1", 2)] {
            let ended = json!({"exitCode": 137, "finishedAt": format!("2030-01-01T00:00:0{second}Z")});
            let container = json!({"name": "main", "image": "", "imageID": "", "ready": false,
                "restartCount": 0, "state": {"terminated": ended}});
            let status = json!({"status": {"phase": "Failed", "containerStatuses": [container]}});
            let params = PatchParams::default();
            pods.patch_status(name, &params, &Patch::Merge(status))
                .await
                .unwrap();
        }
    });
    assert_eq!(story.conditions().last().unwrap(), "Failed");
    let failure = story.status().failure.unwrap();
    assert_eq!(failure.pod.as_deref(), Some("job-worker-x1-1"), "{failure:?}");
}
