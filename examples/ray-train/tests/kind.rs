//! The definition of RayTrainJob, the objects of its jobs, and their lives.

use ray_train_operator::RayTrainJob;
use serde_json::json;
use training_job_testing::{Story, check_definition, snapshots};

const HERE: &str = env!("CARGO_MANIFEST_DIR");
const MNIST: &str = include_str!("../jobs/mnist.yaml");
const SUBMITTER: &str = "mnist-submitter-0";

#[test]
fn the_api_server_rejects_the_jobs_that_validation_rejects() {
    assert_eq!(check_definition::<RayTrainJob>(HERE, "jobs"), [""; 0]);
}

#[test]
fn the_objects_are_those_of_the_snapshots() {
    snapshots::<RayTrainJob>(HERE, "jobs", "snapshots");
}

#[test]
fn the_submitter_starts_when_all_others_are_ready_and_ends_the_job() {
    let mut story = Story::<RayTrainJob>::new(MNIST);
    let cluster = story.pods();
    assert_eq!(
        cluster,
        ["mnist-cpu-0", "mnist-cpu-1", "mnist-gpu-large-0", "mnist-head-0"]
    );
    for pod in &cluster {
        story.starts(pod);
    }
    assert_eq!(story.pods(), cluster, "they run, and are not ready");
    for pod in &cluster {
        story.runs(pod);
    }
    story.runs(SUBMITTER);
    assert_eq!(story.conditions(), ["Created", "Running"]);
    story.exits(SUBMITTER, 0);
    assert_eq!(story.conditions(), ["Created", "Succeeded"]);
}

/// Restarts are recorded by the names of the groups, so a group that goes does not touch the others.
#[test]
fn a_group_with_restarts_is_removed() {
    let mut story = running();
    story
        .exits("mnist-cpu-0", 1)
        .exits("mnist-cpu-0", 0)
        .runs("mnist-cpu-0");
    let others = ["mnist-gpu-large-0", "mnist-head-0", SUBMITTER];
    let uids = others.map(|pod| story.pod(pod).metadata.uid);
    let group = story.job().unwrap().spec.worker_groups.remove(1);
    story.patch(&json!({"spec": {"workerGroups": [group]}}));
    assert_eq!(story.pods(), others);
    assert_eq!(others.map(|pod| story.pod(pod).metadata.uid), uids);
}

#[test]
fn a_worker_that_ends_is_replaced_alone_whatever_its_exit_code() {
    for code in [0, 1, 137] {
        let mut story = running();
        story.exits("mnist-cpu-1", code);
        assert_eq!(story.restarted(), ["mnist-cpu-1"], "{code}");
    }
}

#[test]
fn a_head_that_ends_takes_the_cluster_with_it() {
    let mut story = running();
    let all = story.pods();
    story.exits("mnist-head-0", 1);
    let cluster = story.pods();
    assert!(
        !cluster.contains(&SUBMITTER.to_owned()),
        "it waits for the new cluster"
    );
    story.all_run();
    assert_eq!(story.pods(), all);
}

#[test]
fn the_submitter_has_retries_of_its_own() {
    let mut story = running();
    story.exits(SUBMITTER, 1).runs(SUBMITTER);
    assert_eq!(story.conditions(), ["Created", "Running"]);
    story.exits(SUBMITTER, 1);
    assert_eq!(story.conditions(), ["Created", "Failed"]);
    let failure = story.status().failure.unwrap();
    assert!(failure.message.contains("Submitter"), "{}", failure.message);
}

#[test]
fn a_group_scales_up_and_down() {
    let mut story = running();
    let mut groups = story.job().unwrap().spec.worker_groups;
    for (replicas, pods) in [(3, 6), (0, 3), (2, 5)] {
        groups[0].spec.replicas = Some(replicas);
        story.patch(&json!({"spec": {"workerGroups": groups}})).all_run();
        assert_eq!(story.pods().len(), pods, "{replicas}");
    }
}

#[test]
fn a_head_alone_runs_until_it_is_deleted() {
    let mut story = Story::<RayTrainJob>::new(include_str!("../jobs/head-only.yaml"));
    story.all_run();
    assert_eq!(story.conditions(), ["Created", "Running"]);
    story.exits("notebook-head-0", 0).all_run();
    assert_eq!(story.status().restart_count, 1);
    assert_eq!(story.conditions(), ["Created", "Running"]);
}

#[test]
fn a_suspended_job_has_no_pods() {
    let mut story = running();
    story.patch(&json!({"spec": {"runPolicy": {"suspend": true}}}));
    assert_eq!(story.pods(), [""; 0]);
    story
        .patch(&json!({"spec": {"runPolicy": {"suspend": false}}}))
        .all_run();
    assert_eq!(story.pods().len(), 5);
}

#[test]
fn labels_and_annotations_have_the_prefix_of_the_kind() {
    let annotated = "metadata:\n  annotations: {ray.example.com/layout: Compact}\n";
    let mut story = Story::<RayTrainJob>::new(&MNIST.replacen("metadata:\n", annotated, 1));
    let pod = story.all_run().pod("mnist-head-0");
    assert_eq!(pod.spec.unwrap().subdomain.as_deref(), Some("mnist-hosts"));
    let labels = pod.metadata.labels.unwrap();
    let keys: Vec<&str> = labels.keys().map(String::as_str).collect();
    let own = ["job-name", "replica-index", "replica-type"].map(|name| format!("ray.example.com/{name}"));
    assert_eq!(keys[..3], own);
    assert_eq!(keys[3..], ["training.kubeflow.org/operator-name"]);
}

fn running() -> Story<RayTrainJob> {
    let mut story = Story::new(MNIST);
    story.all_run().all_run();
    story
}
