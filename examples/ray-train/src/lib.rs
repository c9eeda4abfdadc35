//! RayTrainJob: a Ray cluster of a head and groups of workers, and a submitter that trains on it.

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVar, PodSpec, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use training_job::api::{JobStatus, ReplicaSpec, RestartPolicy, RunPolicy, variable};
use training_job::{
    Check, FieldErrors, Framework, JobObject, ObjectDefinition, ObjectKind, Outcome, Replica, Replicas, Role,
    RoleDefinition, RoleSpecs, Scope, Topology, TrainingJob,
};

const HEAD: &str = "Head";
const WORKER: &str = "Worker";
const SUBMITTER: &str = "Submitter";

/// The port on which the head's control store accepts workers.
const GCS: (&str, i32) = ("gcs", 6379);
const DASHBOARD: (&str, i32) = ("dashboard", 8265);

/// The members of the cluster, for programs that do not ask Ray.
const MEMBERS: ObjectKind = ObjectKind::of::<ConfigMap>();

/// A training on a Ray cluster that exists as long as the job.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.dev",
    version = "v1",
    kind = "RayTrainJob",
    namespaced,
    doc = "A training on a Ray cluster that exists as long as the job.",
    status = "JobStatus",
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type")
)]
#[serde(rename_all = "camelCase")]
pub struct RayTrainJobSpec {
    /// The head, which runs the control store and the dashboard.
    pub head: ReplicaSpec,

    /// The groups of workers, at most 10. Default: none.
    #[serde(default)]
    #[schemars(length(max = 10))]
    pub worker_groups: Vec<WorkerGroup>,

    /// The program that trains. Its end is the end of the job. Default: none; the job then runs until it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitter: Option<ReplicaSpec>,

    /// The number of restarts of the submitter. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 10))]
    pub submitter_retries: u32,

    /// The policies of the job, such as deadline and clean-up. Default: all unset.
    #[serde(default)]
    pub run_policy: RunPolicy,
}

/// A group of equal workers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerGroup {
    /// The name of the group, such as `gpu-large`.
    pub group_name: String,

    /// The lower bound for `replicas`. Default: 0.
    #[serde(default)]
    pub min_replicas: i32,

    /// The upper bound for `replicas`. Default: 1000.
    #[serde(default = "max_replicas")]
    pub max_replicas: i32,

    /// The workers.
    #[serde(flatten)]
    pub spec: ReplicaSpec,
}

fn max_replicas() -> i32 {
    1000
}

impl TrainingJob for RayTrainJob {
    // region: roles
    const FRAMEWORK: Framework = Framework::new("ray-train", "raytrainjob-controller")
        .category("ray")
        .key_prefix("ray.example.com")
        .restart_policy(&RestartPolicy::OnFailure)
        .objects(&[ObjectDefinition::new(MEMBERS).mounted_at("members", "/etc/ray")])
        .roles_in_fields(&[
            RoleDefinition::new(HEAD)
                .in_field("head")
                .exactly(1)
                .container("ray-head")
                .service("head-svc")
                .ports(&[GCS, DASHBOARD])
                .always_replaced(),
            RoleDefinition::new(WORKER)
                .in_list("workerGroups", "groupName")
                .container("ray-worker")
                .ports(&[])
                .always_replaced(),
            RoleDefinition::new(SUBMITTER)
                .in_field("submitter")
                .at_most(1)
                .container("submitter")
                .ports(&[])
                .without_services()
                .starts_after(&[HEAD, WORKER])
                .when_ready(),
        ]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        let groups = self.spec.worker_groups.iter();
        RoleSpecs::default()
            .one(HEAD, Some(&self.spec.head))
            .named(
                WORKER,
                groups.map(|group| (&*group.group_name, Some(&group.spec))),
            )
            .one(SUBMITTER, self.spec.submitter.as_ref())
    }
    // endregion: roles

    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        let head = topology.class(HEAD).next().map(|head| head.host(0));
        let head = head.unwrap_or_default();
        vec![
            variable("RAY_ADDRESS", format!("{head}:{}", GCS.1)),
            variable("RAY_DASHBOARD", format!("http://{head}:{}", DASHBOARD.1)),
            variable("RAY_GROUP", replica.role.name()),
        ]
    }

    /// Containers without a command join the cluster. Its processes are ready when they listen.
    fn customize(&self, _: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec) {
        let Some(container) = replica
            .role
            .container
            .and_then(|main| pod.containers.get_mut(main))
        else {
            return;
        };
        let command = match replica.role.class() {
            HEAD => format!(
                "ray start --head --port={} --dashboard-host=0.0.0.0 --block",
                GCS.1
            ),
            WORKER => "ray start --address=$RAY_ADDRESS --block".to_owned(),
            _ => return,
        };
        if container.command.is_none() {
            container.command = Some(["/bin/sh", "-c", &command].map(str::to_owned).into());
        }
        if replica.role.class() == HEAD {
            add_probe(container);
        }
    }

    fn objects(&self, topology: &Topology<'_>, _: &Replicas<'_>) -> Vec<JobObject> {
        let hosts: String = topology.all().map(|replica| replica.host() + "\n").collect();
        let name = format!("{}-members", topology.job);
        vec![MEMBERS.object(name, json!({"data": {"hosts": hosts}}))]
    }

    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        match &self.spec.submitter {
            Some(_) => replicas.decided_by(&[SUBMITTER]),
            None => replicas.decided_by(&[HEAD]),
        }
    }

    /// A new head has an empty control store, so the whole cluster restarts with it.
    fn restart_scope(&self, _: &Topology<'_>, role: &Role<'_>) -> Scope {
        match role.class() {
            HEAD => Scope::Job,
            _ => Scope::Replica,
        }
    }

    fn retries(&self, role: &Role<'_>) -> Option<u32> {
        (role.class() == SUBMITTER).then_some(self.spec.submitter_retries)
    }

    // region: each
    fn checks() -> Vec<Check<Self>> {
        let replicas = "self.?replicas.orValue(1)";
        let at_least = format!("{replicas} >= self.minReplicas");
        let at_most = format!("{replicas} < self.minReplicas || {replicas} <= self.maxReplicas");
        vec![
            Check::each(
                "workerGroups",
                "replicas",
                "must be at least minReplicas",
                "raise it, or lower minReplicas",
                at_least,
                |job| job.groups(|group, replicas| replicas >= group.min_replicas),
            ),
            Check::each(
                "workerGroups",
                "replicas",
                "must be at most maxReplicas",
                "lower it, or raise maxReplicas",
                at_most,
                |job| {
                    job.groups(|group, replicas| {
                        replicas < group.min_replicas || replicas <= group.max_replicas
                    })
                },
            ),
        ]
    }
    // endregion: each

    fn validate(&self, _: &Topology<'_>, errors: &mut FieldErrors) {
        errors.check_range("spec.submitterRetries", Some(self.spec.submitter_retries), 0..=10);
    }
}

impl RayTrainJob {
    fn groups(&self, holds: fn(&WorkerGroup, i32) -> bool) -> Vec<bool> {
        let groups = self.spec.worker_groups.iter();
        groups
            .map(|group| holds(group, group.spec.replicas.unwrap_or(1)))
            .collect()
    }
}

fn add_probe(container: &mut Container) {
    let listens = TCPSocketAction {
        port: IntOrString::Int(GCS.1),
        ..TCPSocketAction::default()
    };
    container.readiness_probe.get_or_insert_with(|| Probe {
        tcp_socket: Some(listens),
        period_seconds: Some(2),
        ..Probe::default()
    });
}
