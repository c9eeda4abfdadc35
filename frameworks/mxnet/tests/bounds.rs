//! Jobs at the bounds of what can run, and one step beyond.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use training_job::api::MAX_REPLICAS;
use training_job::api::{CleanPodPolicy, RestartPolicy};
use training_job::validate::MAX_ENV_BYTES;
use training_job::{Settings, render, validate};
use training_job_mxnet::MXJob;

fn job(name: &str, workers: i32, label: &str) -> MXJob {
    serde_saphyr::from_str(&format!(
        "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {{name: {name}}}\nspec:\n  jobMode: MXTrain\n  \
         mxReplicaSpecs: {{Worker: {{replicas: {workers}, label: '{label}', \
         template: {{spec: {{containers: [{{name: mxnet, image: a}}]}}}}}}}}\n"
    ))
    .unwrap()
}

/// What is wrong with a job.
fn problem(job: &MXJob) -> String {
    let errors = validate(job, &Settings::default()).err();
    errors.map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn a_variable_may_be_as_long_as_linux_takes_it() {
    let short = job("job", 1, "");
    let pods = render::all(&validate(&short, &Settings::default()).unwrap()).pods;
    let environment = pods[0].spec.as_ref().unwrap().containers[0].env.clone().unwrap();
    let config = &environment[0];
    let bytes = config.name.len() + config.value.as_ref().unwrap().len() + 2;
    let left = MAX_ENV_BYTES - bytes;
    assert_eq!(problem(&job("job", 1, &"x".repeat(left))), "");
    let problem = problem(&job("job", 1, &"x".repeat(left + 1)));
    assert!(
        problem.contains("MX_CONFIG of job-worker-0 would have 131073 bytes"),
        "{problem}"
    );
}

#[test]
fn a_service_may_have_a_name_as_long_as_a_label() {
    let longest = "a".repeat(63 - "-worker-0".len());
    assert_eq!(problem(&job(&longest, 1, "")), "");
    assert_eq!(
        problem(&job(&longest, 11, "")),
        "metadata.name: a service's name would have 64 characters, and may have 63; make the job's name 1 shorter"
    );
}

#[test]
fn a_role_may_have_so_many_replicas_and_no_more() {
    // Their map of the cluster is too long for a variable, which is found only in jobs that are right so far.
    let too_long = |problem: &str| problem.contains("Linux starts no process");
    let at_the_bound = problem(&job("job", MAX_REPLICAS, ""));
    assert!(too_long(&at_the_bound), "{at_the_bound}");
    assert_eq!(
        problem(&job("job", MAX_REPLICAS + 1, "")),
        "spec.mxReplicaSpecs.Worker.replicas: 10001 is too big; use at most 10000"
    );
}

/// Clients in Go send "" for what is unset.
#[test]
fn an_empty_word_is_none() {
    let job: MXJob = serde_saphyr::from_str(
        "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: job}\nspec:\n  jobMode: ''\n  \
         successPolicy: ''\n  runPolicy: {cleanPodPolicy: '', restartScope: ''}\n  \
         mxReplicaSpecs: {Worker: {restartPolicy: '', \
         template: {spec: {containers: [{name: mxnet, image: a}]}}}}\n",
    )
    .unwrap();
    let valid = validate(&job, &Settings::default()).unwrap();
    let (policy, role) = (&valid.policy, &valid.topology.roles[0]);
    assert_eq!(
        (&policy.clean_pods, &policy.restart_scope, &role.restart_policy),
        (&CleanPodPolicy::Running, &None, &RestartPolicy::Never)
    );
}
