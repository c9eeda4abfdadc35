//! The kinds of the recorded jobs.

use serde_json::{Map, Value, json};

/// A kind of job, and the replicas of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub version: &'static str,
    pub name: &'static str,
    container: &'static str,
    /// The field of the spec with the roles.
    pub specs: &'static str,
    /// Replicas by role.
    pub roles: &'static [(&'static str, u32)],
    /// The roles whose success is the job's.
    pub deciding: &'static [&'static str],
    /// The role whose pods are created once all others run.
    pub late: Option<&'static str>,
    /// The role whose `replicas` the manifest omits. The default is one.
    unset: Option<&'static str>,
}

const KUBEFLOW: Kind = Kind {
    version: "kubeflow.org/v1",
    name: "MXJob",
    container: "mxnet",
    specs: "mxReplicaSpecs",
    roles: &[("Scheduler", 1), ("Server", 1), ("Worker", 2)],
    deciding: &["Scheduler"],
    late: None,
    unset: Some("Scheduler"),
};

/// All kinds of this operator.
pub const KINDS: [Kind; 9] = [
    KUBEFLOW,
    Kind {
        name: "TFJob",
        container: "tensorflow",
        specs: "tfReplicaSpecs",
        roles: &[("Chief", 1), ("PS", 1), ("Worker", 2)],
        deciding: &["Chief"],
        unset: Some("Chief"),
        ..KUBEFLOW
    },
    Kind {
        name: "XGBoostJob",
        container: "xgboost",
        specs: "xgbReplicaSpecs",
        roles: &[("Master", 1), ("Worker", 2)],
        deciding: &["Master"],
        unset: Some("Master"),
        ..KUBEFLOW
    },
    Kind {
        name: "PyTorchJob",
        container: "pytorch",
        specs: "pytorchReplicaSpecs",
        roles: &[("Master", 1), ("Worker", 2)],
        deciding: &["Master"],
        unset: Some("Master"),
        ..KUBEFLOW
    },
    Kind {
        name: "PaddleJob",
        container: "paddle",
        specs: "paddleReplicaSpecs",
        roles: &[("Worker", 2)],
        deciding: &["Worker"],
        unset: None,
        ..KUBEFLOW
    },
    Kind {
        name: "JAXJob",
        container: "jax",
        specs: "jaxReplicaSpecs",
        roles: &[("Worker", 2)],
        deciding: &["Worker"],
        unset: None,
        ..KUBEFLOW
    },
    // The default of a Worker is 0 replicas, so no default is stored.
    Kind {
        name: "MPIJob",
        container: "mpi",
        specs: "mpiReplicaSpecs",
        roles: &[("Launcher", 1), ("Worker", 2)],
        deciding: &["Launcher"],
        late: Some("Launcher"),
        unset: None,
        ..KUBEFLOW
    },
    Kind {
        version: "mxnet.mlkube.io/v1beta1",
        name: "MxJob",
        specs: "mxReplicaType",
        roles: &[("SCHEDULER", 1), ("SERVER", 1), ("WORKER", 2)],
        deciding: &["SCHEDULER"],
        unset: None,
        ..KUBEFLOW
    },
    Kind {
        version: "mlkube.io/v1beta1",
        name: "TfJob",
        container: "tensorflow",
        specs: "tfReplicaType",
        roles: &[("MASTER", 1), ("PS", 1), ("WORKER", 2)],
        deciding: &["MASTER"],
        unset: None,
        ..KUBEFLOW
    },
];

impl Kind {
    /// Returns true for the kinds of kubeflow.org, which other programs support.
    pub fn is_kubeflow(&self) -> bool {
        self.version == KUBEFLOW.version
    }

    /// Returns true for the kinds for which KAI creates groups.
    pub fn is_known_to_kai(&self) -> bool {
        ["JAXJob", "MPIJob", "PyTorchJob", "TFJob", "XGBoostJob"].contains(&self.name)
    }

    /// Returns the number of replicas of all roles.
    pub fn pods(&self) -> usize {
        self.roles.iter().map(|(_, count)| *count as usize).sum()
    }

    /// Returns the number of pods that exist before any pod runs.
    pub fn first_pods(&self) -> usize {
        let late = self.roles.iter().filter(|(role, _)| Some(*role) == self.late);
        self.pods() - late.map(|(_, count)| *count as usize).sum::<usize>()
    }

    /// Returns a job of this kind, whose pods are bound by this scheduler.
    pub fn manifest(&self, name: &str, scheduler: &str) -> Value {
        let containers = json!([{"name": self.container, "image": "example.com/train:1"}]);
        let pod = json!({"containers": containers, "schedulerName": scheduler});
        let spec = if self.is_kubeflow() {
            let mut roles = Map::new();
            for (role, count) in self.roles {
                let template = json!({ "spec": pod });
                let mut spec = json!({"restartPolicy": "ExitCode", "template": template});
                if self.unset != Some(*role) {
                    spec["replicas"] = json!(count);
                }
                roles.insert((*role).to_owned(), spec);
            }
            let mut spec = json!({"runPolicy": {"cleanPodPolicy": "None"}});
            spec[self.specs] = Value::Object(roles);
            if self.specs == KUBEFLOW.specs {
                spec["jobMode"] = json!("MXTrain");
            }
            spec
        } else {
            let roles = self.roles.iter().map(|(role, count)| {
                let mut template = json!({ "spec": pod });
                template["spec"]["restartPolicy"] = json!("Never");
                let mut spec = json!({"replicas": count, "template": template});
                spec[self.specs] = json!(role);
                spec
            });
            let mut spec = json!({"replicaSpecs": roles.collect::<Vec<_>>()});
            if self.container == KUBEFLOW.container {
                spec["jobMode"] = json!("dist");
            }
            spec
        };
        json!({"apiVersion": self.version, "kind": self.name, "metadata": {"name": name}, "spec": spec})
    }
}
