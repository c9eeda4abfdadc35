//! A pod and a service that do not belong to a replica.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use training_job::{Settings, validate};
use training_job_testing::Story;

use super::object;
use training_job_testbed::ListJob;

const REPLICAS: [&str; 3] = ["job-client-x1-0", "job-worker-x1-0", "job-worker-x1-1"];

/// Returns a job of a client and two workers with a board.
fn story() -> Story<ListJob> {
    let mut new = object(&[("CLIENT", 1), ("WORKER", 2)]);
    new["metadata"]["uid"].take();
    new["metadata"]["annotations"] = json!({"board": "board"});
    Story::new(&new.to_string())
}

fn uid(story: &Story<ListJob>, plural: &str) -> Option<String> {
    let object = story.object(plural, "board")?;
    object["metadata"]["uid"].as_str().map(str::to_owned)
}

fn with_board() -> Vec<&'static str> {
    [&["board"][..], &REPLICAS].concat()
}

#[test]
fn the_pod_exists_from_the_start_of_the_job_until_its_deletion() {
    let mut story = story();
    let (pod, service) = (uid(&story, "pods"), uid(&story, "services"));
    assert!(pod.is_some() && service.is_some());
    assert_eq!(story.pods(), with_board());
    let first = story.events().into_iter().find(|event| event.contains("board"));
    assert!(
        story
            .events()
            .iter()
            .position(|e| e.contains("SuccessfulCreatePod"))
            .is_some_and(|at| story.events()[..=at].contains(first.as_ref().unwrap())),
        "{:#?}",
        story.events()
    );
    // Objects of three kinds were created together, each by the API of its kind.
    let failed: Vec<_> = story
        .events()
        .into_iter()
        .filter(|event| event.starts_with("Failed"))
        .collect();
    assert_eq!(failed, [""; 0]);
    for replica in REPLICAS {
        story.runs(replica);
    }
    let counted: i32 = story.status().replica_statuses.values().map(|r| r.active).sum();
    assert_eq!(counted, 3, "it is no replica");

    story.exits(REPLICAS[1], 0).exits(REPLICAS[2], 0);
    assert_eq!(story.conditions(), ["Created", "Succeeded"]);
    assert_eq!((uid(&story, "pods"), uid(&story, "services")), (pod, service));
}

#[test]
fn the_pod_outlives_suspension() {
    let mut story = story();
    let pod = uid(&story, "pods");
    story.runs("board").all_run();
    story.patch(&json!({"spec": {"suspend": true}}));
    assert_eq!(story.pods(), ["board"]);
    story.patch(&json!({"spec": {"suspend": false}}));
    assert_eq!(story.pods(), with_board());
    assert_eq!(uid(&story, "pods"), pod);
}

#[test]
fn the_pod_is_created_again_when_it_is_gone_or_has_ended() {
    let mut story = story();
    let pod = uid(&story, "pods");
    story.all_run().by_hand(async |client| {
        let pods = Api::<Pod>::default_namespaced(client);
        pods.delete("board", &DeleteParams::default()).await.unwrap();
    });
    let second = uid(&story, "pods");
    assert!(second.is_some() && second != pod);
    story.runs("board").evicted("board");
    let third = uid(&story, "pods");
    assert!(third.is_some() && third != second);
    assert_eq!(story.status().restart_count, 0, "it is no failure of the job");
    assert_eq!(story.conditions(), ["Created", "Running"]);
}

#[test]
fn the_pod_must_not_have_the_name_of_a_replica() {
    let mut new = object(&[("CLIENT", 1), ("WORKER", 2)]);
    new["metadata"]["annotations"] = json!({"board": REPLICAS[1]});
    let job: ListJob = serde_json::from_value(new).unwrap();
    let errors = validate(&job, &Settings::default()).unwrap_err().to_string();
    let expected = "the job's Pod \"job-worker-x1-0\" has the name of a replica; rename the job";
    assert!(errors.contains(expected), "{errors}");
}
