//! The fields of an MPIJob.

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use training_job::api::{CleanPodPolicy, ConditionType, JobStatus, ReplicaSpecs, RunPolicy};

/// A job that `mpirun` starts.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kubeflow.org",
    version = "v1",
    kind = "MPIJob",
    plural = "mpijobs",
    singular = "mpijob",
    namespaced,
    doc = "A job that mpirun starts.",
    status = "MPIJobStatus",
    derive = "PartialEq",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type")
)]
#[serde(rename_all = "camelCase")]
pub struct MPIJobSpec {
    /// The replicas by role: Launcher and Worker. Unlike in other kinds, the default number of Workers is 0.
    #[serde(default)]
    pub mpi_replica_specs: ReplicaSpecs,

    /// The policies of the job, such as restarts, deadline, clean-up, gang scheduling and suspension. Default: all
    /// unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// The controller that runs the job; the same as `runPolicy.managedBy`. Default: this operator. It cannot be
    /// changed after the job's creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "training_job::api::schema::managed_by")]
    pub managed_by: Option<String>,

    /// The number of processes on each worker, at least 1. It is written to the hostfile. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub slots_per_worker: Option<i32>,

    /// The name of the container in which processes run, at most 63 characters. It must be a container of the Worker,
    /// and is also used for the Launcher if that has a container of this name. Default: the container `mpi`, or else
    /// the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub main_container: Option<String>,

    /// The pods to delete when the job has ended, unless `runPolicy.cleanPodPolicy` is set. Default: that of
    /// `runPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_pod_policy: Option<CleanPodPolicy>,

    /// The directory at which the SSH keys are mounted into each pod. Only v2beta1. Default: `/root/.ssh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_auth_mount_path: Option<String>,

    /// The MPI implementation for which the launcher gets its environment and hostfile. Only v2beta1. Default: `OpenMPI`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "implementations")]
    pub mpi_implementation: Option<String>,

    /// If true, processes run in the launcher too, which is then the first host. Only v2beta1. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_launcher_as_worker: Option<bool>,

    /// The time at which the launcher's pod is created. `WaitForWorkersReady`: when all workers run (v2beta1: are
    /// ready). `AtStartup`: together with the workers, as under the Go operators; `mpirun` may then start before the workers
    /// run. Default in v2beta1: `AtStartup`. Default in v1: `AtStartup` if a template names a scheduler of its own or joins a
    /// group of pods, because such schedulers wait for all pods of a job; otherwise `WaitForWorkersReady`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "creation_policies")]
    pub launcher_creation_policy: Option<String>,
}

/// The status of an MPIJob.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MPIJobStatus {
    /// The version of the API by whose rules the job runs: v1 or v2beta1. It does not change.
    #[serde(default, rename = "apiVersion", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) version: Option<Version>,
    /// The status that all kinds have.
    #[serde(flatten)]
    pub job: JobStatus,
}

/// The annotation with the name of the launcher's pod in a job that is taken over from mpi-operator, whose Job of Kubernetes
/// has given the pod a random name. `manifests/takeover/mpi/mpi-operator.sh` sets it.
const LAUNCHER_POD: &str = "training.kubeflow.org/launcher-pod";

pub(crate) const CREATION_POLICIES: [&str; 2] = ["AtStartup", "WaitForWorkersReady"];

/// The values of `mpiImplementation`. The first is the default.
pub(crate) const IMPLEMENTATIONS: [&str; 3] = ["OpenMPI", "Intel", "MPICH"];

fn creation_policies(_: &mut SchemaGenerator) -> Schema {
    let [at_once, after_workers] = CREATION_POLICIES;
    schemars::json_schema!({ "type": "string", "enum": [at_once, after_workers, ""] })
}

fn implementations(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "string", "enum": IMPLEMENTATIONS })
}

/// The version of the API by whose rules a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Version {
    /// `mpirun` starts processes by the exec API, as in the training operator v1.8.1.
    #[serde(rename = "v1")]
    V1,
    /// `mpirun` starts processes by SSH, as in mpi-operator v0.8.2.
    #[serde(rename = "v2beta1")]
    V2beta1,
}

impl MPIJob {
    /// Returns the version by whose rules the job runs.
    ///
    /// Both versions are one resource, stored as v1, and the API server does not record in which version a job was created. A
    /// job of v2beta1 has the defaults of that version's schema. A later write through v2beta1 adds them to a job of v1 too, so
    /// the version that applied first is kept in the status. A status of mpi-operator differs from one of the training
    /// operator by the message of Created, which names the namespace.
    pub(crate) fn version(&self) -> Version {
        let spec = &self.spec;
        let has_defaults = spec.ssh_auth_mount_path.is_some()
            || spec.mpi_implementation.is_some()
            || spec.run_launcher_as_worker.is_some();
        let by_content = match has_defaults {
            true => Version::V2beta1,
            false => Version::V1,
        };
        self.recorded_version()
            .or_else(|| self.version_of_another_operator())
            .unwrap_or(by_content)
    }

    /// Returns true if mpi-operator has begun the job, and its launcher still belongs to a Job of Kubernetes.
    pub(crate) fn is_run_by_mpi_operator(&self) -> bool {
        self.recorded_version().is_none()
            && self.version_of_another_operator() == Some(Version::V2beta1)
            && self.named_launcher().is_none()
    }

    /// Returns the name of the launcher's pod if it is another than usual.
    pub(crate) fn named_launcher(&self) -> Option<&str> {
        self.metadata
            .annotations
            .as_ref()?
            .get(LAUNCHER_POD)
            .map(String::as_str)
    }

    pub(crate) fn is_finished(&self) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| status.job.is_finished())
    }

    fn recorded_version(&self) -> Option<Version> {
        self.status.as_ref()?.version
    }

    fn version_of_another_operator(&self) -> Option<Version> {
        let mut conditions = self.status.iter().flat_map(|status| &status.job.conditions);
        let created = conditions.find(|condition| condition.type_ == ConditionType::Created.as_str())?;
        Some(match created.message.contains('/') {
            true => Version::V2beta1,
            false => Version::V1,
        })
    }

    pub(crate) fn slots(&self) -> i32 {
        self.spec.slots_per_worker.unwrap_or(1)
    }
}
