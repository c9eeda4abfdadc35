//! The jobs of `examples/`, changed for two nodes.

use serde_json::{Value, json};
use training_job_testbed::cluster::repository;

use crate::job::each_pod;

/// Returns an example, such as `mxnet/train`, whose pods spread over the nodes that accept pods.
pub(crate) fn example(name: &str) -> Value {
    let file = repository().join(format!("examples/{name}.yaml"));
    let text = std::fs::read_to_string(file).unwrap();
    spread(serde_saphyr::from_str(&text).unwrap())
}

/// Returns the job with pods that spread over the nodes that accept pods.
pub(crate) fn spread(mut job: Value) -> Value {
    let name = job["metadata"]["name"].clone();
    each_pod(&mut job, |pod| {
        pod["topologySpreadConstraints"] = json!([{
            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": "Honor",
            "labelSelector": {"matchLabels": {"training.kubeflow.org/job-name": name}},
        }]);
    });
    job
}

/// Returns the job with an environment variable in the first container of each pod.
pub(crate) fn with_env(mut job: Value, name: &str, value: &str) -> Value {
    each_pod(&mut job, |pod| {
        let container = &mut pod["containers"][0];
        if container["env"].is_null() {
            container["env"] = json!([]);
        }
        let all = container["env"].as_array_mut().unwrap();
        all.push(json!({"name": name, "value": value}));
    });
    job
}
