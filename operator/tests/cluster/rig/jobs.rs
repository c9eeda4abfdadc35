//! Jobs for tests, and functions that inspect them.

use serde_json::{Map, Value, json};
use training_job::api::{ConditionType, JobStatus};
use training_job_mxnet::MXJob;

/// Returns a job with this many replicas: one worker, or a scheduler and workers. The first replica decides.
pub(crate) fn job(name: &str, replicas: u32) -> Value {
    let roles: &[(&str, u32)] = match replicas {
        1 => &[("Worker", 1)],
        n => &[("Scheduler", 1), ("Worker", n - 1)],
    };
    let replica = |n: u32| {
        json!({
            "replicas": n, "restartPolicy": "ExitCode",
            "template": {"spec": {"containers": [{"name": "mxnet", "image": "example.com/i"}]}},
        })
    };
    let specs: Map<String, Value> = roles
        .iter()
        .map(|(role, n)| ((*role).to_owned(), replica(*n)))
        .collect();
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob",
        "metadata": {"name": name},
        "spec": {"jobMode": "MXTrain", "runPolicy": {"cleanPodPolicy": "None"}, "mxReplicaSpecs": specs},
    })
}

/// Returns an MPIJob of a launcher and two workers.
pub(crate) fn mpi_job(version: &str, name: &str) -> Value {
    let pod = json!({"containers": [{"name": "mpi", "image": "none", "command": ["mpirun"]}]});
    let role = |replicas: u32| json!({"replicas": replicas, "template": {"spec": pod}});
    json!({
        "apiVersion": format!("kubeflow.org/{version}"), "kind": "MPIJob", "metadata": {"name": name},
        "spec": {"mpiReplicaSpecs": {"Launcher": role(1), "Worker": role(2)}},
    })
}

/// Returns the pod whose success is the job's.
pub(crate) fn deciding(name: &str, replicas: u32) -> String {
    match replicas {
        1 => format!("{name}-worker-0"),
        _ => format!("{name}-scheduler-0"),
    }
}

/// Returns the job with this clean-up policy.
pub(crate) fn cleaned(mut job: Value, policy: &str) -> Value {
    job["spec"]["runPolicy"]["cleanPodPolicy"] = json!(policy);
    job
}

/// Returns the job with its workers' pod specs changed.
pub(crate) fn with_workers(mut job: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]);
    job
}

/// Returns true if a condition of the job is true.
pub(crate) fn is(job: &MXJob, condition: ConditionType) -> bool {
    job.status.as_ref().is_some_and(|status| status.job.is(condition))
}

/// Returns the number of running replicas of all roles.
pub(crate) fn active(status: &JobStatus) -> i32 {
    status.replica_statuses.values().map(|role| role.active).sum()
}
