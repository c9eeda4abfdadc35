//! Jobs at the limits of what can run, and one step beyond.

use training_job::api::{CleanPodPolicy, MAX_REPLICAS, RestartPolicy};
use training_job::{Settings, validate};

use crate::harness::{PlanHarness, Stories};

/// Returns the validation error of a job with this name and number of workers.
fn problem(name: &str, workers: i32) -> String {
    let mut w = PlanHarness::train("Worker=1", "");
    w.scale("Worker", workers);
    w.edit(|job| job.metadata.name = Some(name.to_owned()));
    let errors = validate(&w.job, &Settings::default()).err();
    errors.map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn a_service_may_have_a_name_as_long_as_a_label() {
    let longest = "a".repeat(63 - "-worker-0".len());
    assert_eq!(problem(&longest, 1), "");
    assert_eq!(
        problem(&longest, 11),
        "metadata.name: service names must be at most 63 characters (the longest would have 64); shorten the job's name by 1"
    );
}

#[test]
fn a_role_may_have_so_many_replicas_and_no_more() {
    // The environment is too large for a process. That error is found only in jobs without other errors.
    let at_the_bound = problem("job", MAX_REPLICAS);
    assert!(at_the_bound.contains("the limit of Linux"), "{at_the_bound}");
    assert_eq!(
        problem("job", MAX_REPLICAS + 1),
        "spec.replicaSpecs.Worker.replicas: must be at most 10000 (is 10001)"
    );
}

/// Clients in Go send "" for an unset field.
#[test]
fn an_empty_word_is_none() {
    let w = PlanHarness::train("Worker=1:''", "cleanPodPolicy: '', restartScope: ''");
    let valid = validate(&w.job, &Settings::default()).unwrap();
    let (policy, role) = (&valid.policy, &valid.topology.roles[0]);
    assert_eq!(&policy.clean_pods, &CleanPodPolicy::Running);
    assert_eq!(&policy.restart_scope, &None);
    assert_eq!(&role.restart_policy, &RestartPolicy::Never);
}
