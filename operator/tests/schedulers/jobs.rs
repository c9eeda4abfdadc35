//! Jobs of every kind, each with four pods that need one CPU.

use serde_json::{Map, Value, json};

/// The form of the jobs of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) specs: &'static str,
    pub(crate) container: &'static str,
    /// The roles and their replicas. The last role is `Worker`.
    pub(crate) roles: &'static [(&'static str, u32)],
}

pub(crate) const MX: Kind = Kind {
    name: "MXJob",
    version: "v1",
    specs: "mxReplicaSpecs",
    container: "mxnet",
    roles: &[("Scheduler", 1), ("Server", 1), ("Worker", 2)],
};
pub(crate) const TF: Kind = Kind {
    name: "TFJob",
    version: "v1",
    specs: "tfReplicaSpecs",
    container: "tensorflow",
    roles: &[("PS", 1), ("Worker", 3)],
};
pub(crate) const PYTORCH: Kind = Kind {
    name: "PyTorchJob",
    version: "v1",
    specs: "pytorchReplicaSpecs",
    container: "pytorch",
    roles: &[("Master", 1), ("Worker", 3)],
};
pub(crate) const XGBOOST: Kind = Kind {
    name: "XGBoostJob",
    version: "v1",
    specs: "xgbReplicaSpecs",
    container: "xgboost",
    roles: &[("Master", 1), ("Worker", 3)],
};
pub(crate) const PADDLE: Kind = Kind {
    name: "PaddleJob",
    version: "v1",
    specs: "paddleReplicaSpecs",
    container: "paddle",
    roles: &[("Master", 1), ("Worker", 3)],
};

pub(crate) const JAX: Kind = Kind {
    name: "JAXJob",
    version: "v1",
    specs: "jaxReplicaSpecs",
    container: "jax",
    roles: &[("Worker", 4)],
};
pub(crate) const MPI: Kind = Kind {
    name: "MPIJob",
    version: "v1",
    specs: "mpiReplicaSpecs",
    container: "mpi",
    roles: &[("Launcher", 1), ("Worker", 3)],
};

pub(crate) const MPI_SSH: Kind = Kind {
    version: "v2beta1",
    ..MPI
};

/// The number of pods of such a job.
pub(crate) const PODS: usize = 4;

impl Kind {
    /// Returns a job that may not restart, and whose pods remain when it has ended.
    pub(crate) fn job(&self, name: &str) -> Value {
        let requests = json!({"requests": {"cpu": "1"}});
        let containers = json!([{"name": self.container, "image": "example.com/i", "resources": requests}]);
        let template = json!({"spec": {"terminationGracePeriodSeconds": 1, "containers": containers}});
        let policy = if self.version == "v1" { "ExitCode" } else { "Never" };
        let role = |(role, replicas): &(&str, u32)| {
            let spec = json!({"replicas": replicas, "restartPolicy": policy, "template": template});
            ((*role).to_owned(), spec)
        };
        let roles: Map<String, Value> = self.roles.iter().map(role).collect();
        let mut spec = json!({"runPolicy": {"cleanPodPolicy": "None", "backoffLimit": 0}});
        spec[self.specs] = roles.into();
        if self.name == "MXJob" {
            spec["jobMode"] = "MXTrain".into();
        }
        json!({
            "apiVersion": format!("kubeflow.org/{}", self.version), "kind": self.name,
            "metadata": {"name": name}, "spec": spec,
        })
    }

    /// Returns a patch that sets a job's number of workers.
    pub(crate) fn workers(&self, replicas: u32) -> Value {
        json!({"spec": {self.specs: {"Worker": {"replicas": replicas}}}})
    }

    /// Returns the number of replicas of the other roles.
    pub(crate) fn others(&self) -> u32 {
        let others = self.roles.iter().filter(|(role, _)| *role != "Worker");
        others.map(|(_, replicas)| replicas).sum()
    }
}

/// Returns the job with this grace period, in seconds, for all of its pods.
pub(crate) fn with_grace(mut job: Value, kind: &Kind, seconds: u32) -> Value {
    for (role, _) in kind.roles {
        job["spec"][kind.specs][role]["template"]["spec"]["terminationGracePeriodSeconds"] = seconds.into();
    }
    job
}

/// Returns the job with this label.
pub(crate) fn labelled(mut job: Value, label: &str, value: &str) -> Value {
    job["metadata"]["labels"][label] = value.into();
    job
}
