//! Small MXJobs of shell scripts, whose pods start and end within a second.

use serde_json::{Value, json};

/// The line that a replica prints when it trains.
pub(crate) const TRAINS: &str = "trains";
/// Prints the line and runs until it is asked to end.
pub(crate) const RUN: &str = "trap 'exit 143' TERM; echo trains; sleep 3600 & wait";

/// Returns a job of a scheduler, a server and two workers. All run [`RUN`].
pub(crate) fn small(name: &str) -> Value {
    let role = |replicas: u32| {
        let container = json!({"name": "mxnet", "image": "busybox:1.35", "command": ["sh", "-c", RUN]});
        let pod = json!({"terminationGracePeriodSeconds": 5, "containers": [container]});
        json!({"replicas": replicas, "restartPolicy": "ExitCode", "template": {"spec": pod}})
    };
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name},
        "spec": {
            "jobMode": "MXTrain",
            "runPolicy": {"backoffLimit": 3, "activeDeadlineSeconds": 600, "cleanPodPolicy": "Running"},
            "mxReplicaSpecs": {"Scheduler": role(1), "Server": role(1), "Worker": role(2)},
        },
    })
}

/// Returns the pod template's spec of a role of an MXJob.
pub(crate) fn pod<'a>(job: &'a mut Value, role: &str) -> &'a mut Value {
    &mut job["spec"]["mxReplicaSpecs"][role]["template"]["spec"]
}

/// Sets the script of a role of a small job.
pub(crate) fn script(job: &mut Value, role: &str, text: &str) {
    pod(job, role)["containers"][0]["command"] = json!(["sh", "-c", text]);
}

/// Changes the pod template's spec of each role of a job of any kind.
pub(crate) fn each_pod(job: &mut Value, mut change: impl FnMut(&mut Value)) {
    let spec = job["spec"].as_object_mut().unwrap();
    let (_, roles) = spec
        .iter_mut()
        .find(|(name, _)| name.ends_with("ReplicaSpecs"))
        .unwrap();
    for role in roles.as_object_mut().unwrap().values_mut() {
        change(&mut role["template"]["spec"]);
    }
}
