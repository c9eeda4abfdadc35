//! Manifests: changed examples, and jobs of shell scripts.

use std::fs;
use std::path::PathBuf;

use training_job_testbed::cluster::repository;

use serde_json::{Value, json};

pub fn examples() -> PathBuf {
    repository().join("examples/mxnet")
}

#[derive(Clone)]
pub struct Manifest(Value);

impl Manifest {
    /// Returns one of the examples.
    pub fn example(file: &str) -> Self {
        let text = fs::read_to_string(examples().join(file)).unwrap();
        Self(serde_saphyr::from_str(&text).unwrap())
    }

    /// Returns a job of workers that each run the script.
    pub fn shell(name: &str, workers: u32, script: &str) -> Self {
        Self::roles(name, &[("Worker", workers, script)])
    }

    /// Returns a job whose roles run scripts.
    pub fn roles(name: &str, roles: &[(&str, u32, &str)]) -> Self {
        let roles = roles.iter().map(|(role, replicas, script)| {
            let container = json!({"name": "mxnet", "image": "none", "command": ["sh", "-c", script]});
            let template = json!({"spec": {"containers": [container]}});
            let spec = json!({"replicas": replicas, "restartPolicy": "Never", "template": template});
            ((*role).to_owned(), spec)
        });
        let roles: serde_json::Map<_, _> = roles.collect();
        Self(json!({
            "apiVersion": "kubeflow.org/v1",
            "kind": "MXJob",
            "metadata": {"name": name},
            "spec": {"jobMode": "MXTrain", "runPolicy": {}, "mxReplicaSpecs": roles},
        }))
    }

    /// Sets the name.
    pub fn named(mut self, name: &str) -> Self {
        self.0["metadata"]["name"] = json!(name);
        self
    }

    /// Sets a field of `runPolicy`.
    pub fn policy(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.0["spec"]["runPolicy"][field] = value.into();
        self
    }

    /// Sets the restart policy of all roles.
    pub fn restart_policy(self, policy: &str) -> Self {
        self.each_role(|role| role["restartPolicy"] = json!(policy))
    }

    /// Adds an environment variable to all containers.
    pub fn env(self, name: &str, value: &str) -> Self {
        self.each_container(|container| match &mut container["env"] {
            Value::Array(env) => env.push(json!({"name": name, "value": value})),
            none => *none = json!([{"name": name, "value": value}]),
        })
    }

    /// Sets the command of all containers. Null removes it.
    pub fn command(self, command: &Value) -> Self {
        self.each_container(|container| container["command"] = command.clone())
    }

    /// Changes every container.
    pub fn each_container(self, change: impl Fn(&mut Value)) -> Self {
        self.each_role(|role| {
            let containers = &mut role["template"]["spec"]["containers"];
            containers.as_array_mut().unwrap().iter_mut().for_each(&change);
        })
    }

    /// Changes every role.
    pub fn each_role(mut self, change: impl Fn(&mut Value)) -> Self {
        let roles = self.0["spec"]["mxReplicaSpecs"].as_object_mut().unwrap();
        roles.values_mut().for_each(change);
        self
    }

    /// Sets the number of replicas of a role.
    pub fn replicas(mut self, role: &str, replicas: u32) -> Self {
        self.0["spec"]["mxReplicaSpecs"][role]["replicas"] = json!(replicas);
        self
    }

    pub fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap()
    }

    /// Returns the manifest as JSON, which is also YAML.
    pub fn text(&self) -> String {
        format!("{:#}", self.0)
    }
}
