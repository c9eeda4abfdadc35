//! The rules of a job whose steps run one after the other, and whose kind answers failures itself.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;

use serde_json::{Value, json};
use training_job::{GangScheduler, Settings, TrainingJob};
use training_job_review::check::Job;
use training_job_review::explain::explain;
use training_job_review::new_job::{self, JobArgs};
use training_job_review::{Kind, Kinds};
use training_job_testbed::{GroupJob, ListJob, RETRIES, StepJob, ToyJob};

/// Returns the first job of a file.
fn first(jobs: &str) -> Value {
    serde_saphyr::from_str(jobs.split("---").next().unwrap()).unwrap()
}

fn explained<J: TrainingJob>(job: &Value, settings: &Settings) -> String {
    let job = Job::stored(Arc::new(Kind::of::<J>()), job, "job.yaml".to_owned()).unwrap();
    explain(&job, settings).unwrap().text()
}

/// Returns the table of events.
fn events<J: TrainingJob>(job: &Value) -> String {
    let text = explained::<J>(job, &Settings::default());
    text.split("\n\n").last().unwrap().to_owned()
}

/// A limit of any size is found in the time of a small one.
#[test]
fn the_limit_of_a_million_restarts_is_explained() {
    let worker = json!({"restartPolicy": "OnFailure", "template": {"spec": {"containers": [{"name": "toy", "image": "x"}]}}});
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "ToyJob",
        "metadata": {"name": "job", "annotations": {RETRIES: "1000000"}},
        "spec": {"replicaSpecs": {"Worker": worker}},
    });
    insta::assert_snapshot!(events::<ToyJob>(&job), @r"
    ROLE    EVENT                                                CONSEQUENCE
    worker  any exit code except 0                               only the container restarts up to 1000000 times; after that, the job fails
    worker  evicted by the kubelet                               only the replica restarts up to 1000000 times; after that, the job fails
    worker  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit
    ");
}

#[test]
fn the_progress_of_a_stored_job_is_shown() {
    let worker = json!({"template": {"spec": {"containers": [{"name": "toy", "image": "x"}]}}});
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "ToyJob", "metadata": {"name": "job"},
        "spec": {"replicaSpecs": {"Worker": worker}},
        "status": {"progress": {"summary": "3/10", "at": "2026-01-01T00:00:00Z", "line": "step 3/10"}},
    });
    let text = explained::<ToyJob>(&job, &Settings::default());
    let shown = "Progress: 3/10, at 2026-01-01T00:00:00Z, the last line is: step 3/10\n";
    assert!(text.contains(shown), "{text}");
}

/// A replica whose failures are always tolerated has restarts of its own, as many as the backoff limit.
#[test]
fn the_limit_of_a_tolerated_replica_is_explained() {
    let member = |role: &str, replicas: u32, policy: &str| {
        let template = json!({"spec": {"containers": [{"name": "main", "image": "x"}]}});
        json!({"memberType": role, "replicas": replicas, "restartPolicy": policy, "template": template})
    };
    let members = [member("WORKER", 2, "Never"), member("NOTEBOOK", 1, "ExitCode")];
    let job = json!({
        "apiVersion": "example.com/v1", "kind": "ListJob", "metadata": {"name": "job"},
        "spec": {"members": members, "detached": true, "backoffLimit": 2},
    });
    insta::assert_snapshot!(events::<ListJob>(&job), @r"
    ROLE      EVENT                                                CONSEQUENCE
    worker    any exit code except 0                               the job fails
    worker    evicted by the kubelet                               only the replica restarts up to 2 times; after that, the job fails
    any role  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit
    notebook  any exit code except 0                               none: the job keeps running
    notebook  evicted by the kubelet                               only the replica restarts up to 2 times; after that, the replica stays failed, and the job keeps running
    ");
}

/// Exit code 0 is a failure of a replica that is always replaced.
#[test]
fn the_end_of_a_server_is_explained() {
    let mut job = first(include_str!("../../../tests/contract/groups/jobs/good.yaml"));
    job["spec"]["runPolicy"] = json!({"backoffLimit": 3});
    insta::assert_snapshot!(explained::<GroupJob>(&job, &Settings::default()), @r"
    GroupJob two-groups

    Start: a ConfigMap, then 5 services, then 5 pods in this order: two-groups-head-0, two-groups-small-0, two-groups-small-1, two-groups-gpu-large-0, two-groups-submitter-0.
    Order: submitter starts when all pods of head, small and gpu-large are ready.
    Success: when submitter-0 has ended with exit code 0, regardless of the others.
    End: running pods are deleted with their services; finished pods are kept, with their logs. A pod whose container its kubelet restarts still runs at the limit of restarts: it is deleted with its log, whose end is in status.failure.

    Events of a replica, and their consequences:

    ROLE              EVENT                                                CONSEQUENCE
    head              any exit code; evicted by the kubelet                only the replica restarts up to 3 times; after that, the job fails
    any role          pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit
    small, gpu-large  any exit code except 0                               only the container restarts up to 2 times; after that, the job fails
    small, gpu-large  evicted by the kubelet                               only the replica restarts up to 3 times; after that, the job fails
    submitter         any exit code except 0                               only the container restarts once; after that, the job fails
    submitter         evicted by the kubelet                               only the replica restarts once; after that, the job fails
    ");
}

#[test]
fn the_order_of_steps_and_the_answers_to_failures_are_explained() {
    let mut job = first(include_str!("../../../tests/contract/steps/jobs/good.yaml"));
    insta::assert_snapshot!(explained::<StepJob>(&job, &Settings::default()), @r"
    StepJob job

    Start: a Secret, then 3 services, then 7 pods in this order: job-controller-0, job-cpu-0, job-cpu-1, job-prepare-0, job-train-0, job-train-1, job-report-0.
    Order: cpu starts when all pods of controller are ready; prepare starts when all pods of controller are ready; train starts when all pods of controller are ready and prepare has succeeded; report starts when all pods of controller are ready and train has succeeded.
    Success: when all steps have succeeded.
    End: running pods are deleted with their services; finished pods are kept, with their logs.

    Events of a replica, and their consequences:

    ROLE                    EVENT                                                  CONSEQUENCE
    controller, cpu         exit codes 0–74, 77 and above; evicted by the kubelet  only the replica restarts without limit
    any role                exit code 75                                           only the replica restarts 30 s after the failure, up to 2 times within an hour; after that, the job fails
    controller, cpu         exit code 76                                           the group of controller and cpu restarts without limit
    any role                pod deleted, drained or preempted, or its node lost    the replica gets a new pod, without limit
    prepare, train, report  exit codes 1–74, 77 and above; evicted by the kubelet  only the replica restarts without limit
    prepare                 exit code 76                                           the group of controller, cpu and prepare restarts without limit
    train                   exit code 76                                           the group of controller, cpu and train restarts without limit
    report                  exit code 76                                           the group of controller, cpu and report restarts without limit
    ");
    // The database is outside of the gang, and starts before it.
    job["spec"]["database"] = json!({"template": job["spec"]["launcher"]});
    let mut settings = Settings::default();
    settings.gang_scheduler = Some(GangScheduler::Volcano);
    let text = explained::<StepJob>(&job, &settings);
    let gang = text.lines().find(|line| line.starts_with("Gang")).unwrap();
    insta::assert_snapshot!(gang, @"Gang: volcano assigns no pod of controller, cpu and prepare to a node before it has capacity for 4 pods at once. volcano assigns no pod of train to a node before it has capacity for 5 pods at once. volcano assigns no pod of report to a node before it has capacity for 4 pods at once.");
    // A policy replaces the rule of the kind.
    job["spec"]["runPolicy"] = json!({"successPolicy": {"operator": "All", "roles": ["prepare"]}});
    let text = explained::<StepJob>(&job, &Settings::default());
    let success = text.lines().find(|line| line.starts_with("Success")).unwrap();
    insta::assert_snapshot!(success, @"Success: when prepare-0 has ended with exit code 0, regardless of the others.");
}

/// The template and the numbers of replicas are in the fields that the kind names.
#[test]
fn a_first_job_has_the_fields_of_the_kind() {
    let kinds = Kinds::default().kind::<StepJob>();
    let first = JobArgs::default();
    let command = ["run.sh".to_owned()];
    let (text, _) = new_job::text(&kinds, "StepJob", &first, "batch:1", &command, &[]).unwrap();
    insta::assert_snapshot!(text, @r#"
    ---
    # StepJob train
    apiVersion: example.com/v1
    kind: StepJob
    metadata:
      name: train
    spec:
      controller:
        replicas: 1
        restartPolicy: OnFailure
        template:
          spec:
            containers:
            - command:
              - run.sh
              image: batch:1
              name: steps
      launcher:
        spec:
          containers:
          - command:
            - run.sh
            image: batch:1
            name: steps
      runPolicy:
        backoffLimit: 3
      steps:
      - name: prepare
        tasks: 2
      - name: train
        tasks: 2
    "#);
}
