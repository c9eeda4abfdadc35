//! A kind with roles from four fields. Users name the groups in two of them, a list and a map.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, EnvVar};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use training_job::api::{JobStatus, ReplicaSpec, RestartPolicy, RunPolicy, variable};
use training_job::{
    Framework, JobObject, ObjectDefinition, ObjectKind, Outcome, Replica, Replicas, Role, RoleDefinition,
    RoleSpecs, Topology, TrainingJob,
};

/// A job of a head, groups of workers, and a submitter that waits for them.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "GroupJob",
    namespaced,
    status = "JobStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct GroupJobSpec {
    /// The run policy.
    #[serde(default)]
    pub run_policy: RunPolicy,
    /// The only head.
    pub head: ReplicaSpec,
    /// The groups of workers.
    #[serde(default)]
    #[schemars(length(max = 10))]
    pub worker_groups: Vec<Group>,
    /// The caches by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub caches: BTreeMap<String, ReplicaSpec>,
    /// The program that submits work, if any.
    pub submitter: Option<ReplicaSpec>,
}

/// A group of equal workers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The name of the group, and of its role.
    pub group_name: String,
    /// The replicas.
    #[serde(flatten)]
    pub spec: ReplicaSpec,
}

const CONFIG: ObjectKind = ObjectKind::of::<ConfigMap>();

impl TrainingJob for GroupJob {
    const FRAMEWORK: Framework = Framework::new("groups", "groupjob-controller")
        .restart_policy(&RestartPolicy::OnFailure)
        .objects(&[ObjectDefinition::new(CONFIG).mounted_at("cluster", "/etc/cluster")])
        .roles_in_fields(&[
            RoleDefinition::new("Head")
                .in_field("head")
                .exactly(1)
                .container("head")
                .always_replaced()
                .ports(&[("gcs", 6379), ("dashboard", 8265)]),
            RoleDefinition::new("Worker")
                .in_list("workerGroups", "groupName")
                .container("worker")
                .ports(&[]),
            RoleDefinition::new("Cache")
                .in_map("caches")
                .at_least(1)
                .at_most(3)
                .container("cache")
                .ports(&[("cache", 11_211)]),
            RoleDefinition::new("Submitter")
                .in_field("submitter")
                .at_most(1)
                .container("submitter")
                .ports(&[])
                .starts_after(&["Head", "Worker"])
                .when_ready(),
        ]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        let groups = self.spec.worker_groups.iter();
        RoleSpecs::default()
            .one("Head", Some(&self.spec.head))
            .named(
                "Worker",
                groups.map(|group| (&*group.group_name, Some(&group.spec))),
            )
            .named(
                "Cache",
                self.spec.caches.iter().map(|(name, spec)| (&**name, Some(spec))),
            )
            .one("Submitter", self.spec.submitter.as_ref())
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        let head = topology
            .role("Head")
            .map_or_else(String::new, |head| head.host(0));
        let group = replica.role.name().to_owned();
        vec![variable("HEAD", format!("{head}:6379")), variable("GROUP", group)]
    }

    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        replicas.decided_by(&["Submitter"])
    }

    /// The hosts, the workers that have joined, and the message of the last worker that ended.
    fn objects(&self, topology: &Topology<'_>, replicas: &Replicas<'_>) -> Vec<JobObject> {
        let hosts: String = topology.all().map(|replica| replica.host() + "\n").collect();
        // A key that the hook leaves out keeps its value, so both are always there.
        let mut data = json!({"hosts": hosts, "joined": "", "message": ""});
        let workers = replicas.roles().iter().filter(|of| of.role.class() == "Worker");
        for worker in workers.flat_map(|of| {
            of.role
                .all()
                .filter_map(|worker| Some((worker, of.pod(worker.index)?)))
        }) {
            let (worker, pod) = worker;
            if pod.condition("example.com/Joined") == Some("True") {
                data["joined"] = worker.host().into();
            }
            if let Some(message) = pod.termination_message() {
                data["message"] = message.into();
            }
        }
        let name = format!("{}-cluster", topology.job);
        vec![CONFIG.object(name, json!({"data": data}))]
    }

    fn retries(&self, role: &Role<'_>) -> Option<u32> {
        (role.name() == "Submitter").then_some(1)
    }
}
