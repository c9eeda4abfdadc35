//! A kind in the manner of a batch system: a database, a controller, partitions of nodes that users name, and steps that
//! run one after the other.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, EnvVar, PersistentVolumeClaim, PodTemplateSpec, Secret};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use training_job::api::schema::pod_template;
use training_job::api::{JobStatus, ReplicaSpec, RestartPolicy, RunPolicy, variable};
use training_job::{
    Cause, Check, Framework, JobObject, Mount, ObjectDefinition, ObjectKind, Outcome, Replica,
    ReplicaFailure, Replicas, Restart, Role, RoleDefinition, RoleSpecs, Scope, Topology, TrainingJob,
};

/// A batch system for the steps of one job.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "StepJob",
    namespaced,
    status = "JobStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct StepJobSpec {
    /// The run policy.
    #[serde(default)]
    pub run_policy: RunPolicy,
    /// The database of the controller, if any.
    pub database: Option<ReplicaSpec>,
    /// The process that the nodes register with.
    pub controller: ReplicaSpec,
    /// The groups of nodes.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub partitions: Vec<Partition>,
    /// The ConfigMap with the settings of the team, if any.
    pub settings: Option<String>,
    /// The claim with the data of the steps, if any.
    pub data: Option<String>,
    /// The pod of each step.
    #[schemars(schema_with = "pod_template")]
    pub launcher: PodTemplateSpec,
    /// The programs, in order.
    #[schemars(length(max = 8))]
    pub steps: Vec<Step>,
}

/// A group of equal nodes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Partition {
    /// The name of the group, and of its role.
    pub name: String,
    /// The number of nodes.
    pub nodes: Option<i32>,
    /// The replicas.
    #[serde(flatten)]
    pub spec: ReplicaSpec,
}

/// A program that uses the nodes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The name of the step, and of its role.
    pub name: String,
    /// The number of processes.
    pub tasks: Option<i32>,
    /// The argument of the program.
    #[serde(default)]
    pub program: String,
}

const KEY: ObjectKind = ObjectKind::of::<Secret>();
const SETTINGS: ObjectKind = ObjectKind::of::<ConfigMap>();
const CLAIM: ObjectKind = ObjectKind::of::<PersistentVolumeClaim>();

// region: once
fn key(job: &str) -> JobObject {
    let key = KEY.object(format!("{job}-key"), json!({"type": "Opaque"}));
    key.with_random(32, |bytes| json!({"data": {"key": ByteString(bytes.to_vec())}}))
}

fn settings(job: &str, name: &str) -> JobObject {
    SETTINGS
        .object(format!("{job}-settings"), json!({}))
        .copied_from(name)
}
// endregion: once

/// The exit code with which a step asks for another turn.
pub const AGAIN: i32 = 75;

/// The exit code after which the controller and the nodes start again with the step.
pub const LOST_CONTROLLER: i32 = 76;

impl TrainingJob for StepJob {
    const FRAMEWORK: Framework = Framework::new("steps", "stepjob-controller")
        .restart_policy(&RestartPolicy::OnFailure)
        .answers_failures()
        .objects(&[
            ObjectDefinition::new(KEY)
                .created_once()
                .mounted_at("key", "/etc/key"),
            ObjectDefinition::new(SETTINGS).created_once(),
            ObjectDefinition::new(CLAIM)
                .created_once()
                .mounted_at("state", "/var/lib/steps")
                .mounted_in(&["Database"]),
        ])
        .roles_in_fields(&[
            RoleDefinition::new("Database")
                .in_field("database")
                .at_most(1)
                .always_replaced()
                .outside_gang(),
            RoleDefinition::new("Controller")
                .in_field("controller")
                .exactly(1)
                .always_replaced()
                .starts_after(&["Database"]),
            RoleDefinition::new("Partition")
                .in_list("partitions", "name")
                .replicas_field("nodes")
                .always_replaced()
                .starts_after(&["Controller"])
                .when_ready(),
            // region: steps
            RoleDefinition::new("Step")
                .in_list("steps", "name")
                .replicas_field("tasks")
                .template_from("launcher")
                .ports(&[])
                .without_services()
                .starts_after(&["Controller"])
                .when_ready()
                .in_order(),
            // endregion: steps
        ]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        let partitions = self.spec.partitions.iter();
        let steps = self.spec.steps.iter();
        // region: lists
        RoleSpecs::default()
            .one("Database", self.spec.database.as_ref())
            .one("Controller", Some(&self.spec.controller))
            .numbered(
                "Partition",
                partitions.map(|of| (&*of.name, of.nodes, Some(&of.spec))),
            )
            .templated("Step", &self.spec.launcher, steps.map(|of| (&*of.name, of.tasks)))
        // endregion: lists
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        let controller = topology.role("Controller").map(|role| role.host(0));
        let step = replica.role.index.filter(|_| replica.role.class() == "Step");
        let step = step.and_then(|index| self.spec.steps.get(index));
        let program = step.map(|step| variable("PROGRAM", step.program.clone()));
        let controller = variable("CONTROLLER", controller.unwrap_or_default());
        // region: content
        let settings = topology.content(SETTINGS, &format!("{}-settings", topology.job));
        let trace = settings.and_then(|fields| fields["data"]["trace"].as_str());
        let trace = trace.map(|level| variable("TRACE", level));
        // endregion: content
        [controller].into_iter().chain(program).chain(trace).collect()
    }

    fn mounts(&self, _: &Topology<'_>, role: &Role<'_>) -> Vec<Mount> {
        let data = self.spec.data.iter().filter(|_| role.class() == "Step");
        data.map(|claim| CLAIM.mount(claim, "/data")).collect()
    }

    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        replicas.decided_by(&["Step"])
    }

    fn describe_success(&self) -> Option<String> {
        Some("when all steps have succeeded.".to_owned())
    }

    /// The key that all processes share, the settings of the team as they are at the start, and the volume of the database.
    fn objects(&self, topology: &Topology<'_>, _: &Replicas<'_>) -> Vec<JobObject> {
        let claim = json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }});
        let claim = CLAIM.object(format!("{}-state", topology.job), claim);
        let has_database = topology.role("Database").is_some();
        let settings = self
            .spec
            .settings
            .as_ref()
            .map(|name| settings(topology.job, name));
        let claim = has_database.then_some(claim);
        [key(topology.job)]
            .into_iter()
            .chain(settings)
            .chain(claim)
            .collect()
    }

    /// Step programs have the names of their job and their step as a path of at most 40 characters.
    fn checks() -> Vec<Check<Self>> {
        let cel = "self.spec.steps.all(k, self.metadata.name.size() + k.name.size() <= 40)";
        let check: Check<Self> = Check::job(
            "metadata.name",
            "must have at most 40 characters together with the longest name of a step",
            "shorten it",
            cel,
            |job, topology| {
                let mut steps = job.spec.steps.iter();
                steps.all(|step| topology.job.len() + step.name.len() <= 40)
            },
        );
        vec![check]
    }

    fn example() -> Value {
        json!({"steps": [{"name": "prepare"}, {"name": "train", "tasks": 2}]})
    }

    // region: answers
    fn on_failure(&self, _: &Topology<'_>, failure: &ReplicaFailure<'_>) -> Option<Restart> {
        match failure.cause {
            Cause::Exited(AGAIN) => {
                let pause = std::time::Duration::from_secs(30);
                Some(Restart::of(Scope::Replica).uncounted(2).after(pause))
            }
            Cause::Exited(LOST_CONTROLLER) => Some(Restart::of(Scope::Roles(&["Controller", "Partition"]))),
            _ => None,
        }
    }
    // endregion: answers
}
