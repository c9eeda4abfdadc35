//! A kind that is shaped as unlike the others as the contract allows: its replica specs are a list, its pods and services
//! have names and labels of their own, its status is another on the wire, and it fills in images.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, EnvVar, Pod, Service};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use training_job::api::{ConditionType, JobStatus, ReplicaSpec, RunPolicy, variable};
use training_job::{
    Check, FailureTolerance, Framework, JobObject, ObjectDefinition, ObjectKind, Outcome, Replica,
    ReplicaNames, Replicas, Role, RoleDefinition, RoleSpecs, SettingDefinition, Topology, TrainingJob,
};

/// A job whose roles are the entries of a list.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "ListJob",
    namespaced,
    status = "ListStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct ListJobSpec {
    /// The replicas by type.
    #[serde(default)]
    pub members: Vec<Member>,
    /// The image of containers without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// True for a job without a turn, which needs neither a HEAD nor a CLIENT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detached: Option<bool>,
    /// True if the job is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// The number of restarts after which the job fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<i32>,
}

/// One entry of the list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    member_type: Option<String>,
    #[serde(flatten)]
    spec: ReplicaSpec,
}

// region: status
/// The shared status below a field of its own, and a phase beside it.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ListStatus {
    /// The host of the client.
    pub client: Option<String>,
    /// `Creating` or `Done`.
    pub phase: String,
    job: JobStatus,
}

impl<'de> Deserialize<'de> for ListStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let job = serde_json::from_value(value["job"].clone()).unwrap_or_default();
        let phase = value["phase"].as_str().unwrap_or_default().to_owned();
        let client = value["client"].as_str().map(str::to_owned);
        Ok(Self { client, phase, job })
    }
}
// endregion: status

// region: kinds
/// The hosts of a job, until it is deleted.
pub const HOSTS: ObjectKind = ObjectKind::of::<ConfigMap>();

/// Its turn, as long as it is active.
pub const TURN: ObjectKind = ObjectKind::new("example.com", "v1", "Turn", "turns");

/// A pod that belongs to no replica, and its service.
const BOARD: [ObjectKind; 2] = [ObjectKind::of::<Service>(), ObjectKind::of::<Pod>()];
// endregion: kinds

/// The setting with the greeting of each replica.
pub const GREETING: SettingDefinition =
    SettingDefinition::new("list-greeting", "hello", "what each replica is greeted with");

// region: objects
/// The workers that run.
fn hosts(topology: &Topology<'_>, replicas: &Replicas<'_>) -> JobObject {
    let workers = replicas.role("WORKER").into_iter();
    let workers = workers.flat_map(|workers| workers.role.all().zip(&workers.states));
    let running = workers.filter(|(_, state)| state.runs());
    let running: String = running.map(|(worker, _)| worker.host() + "\n").collect();
    let name = format!("{}-hosts", topology.job);
    HOSTS.object(name, json!({"data": {"running": running}}))
}
// endregion: objects

impl TrainingJob for ListJob {
    const FRAMEWORK: Framework = Framework::new("list", "listjob-controller")
        .main_container("main")
        .port("list-port", 9000)
        .roles_in_list(
            "members",
            "memberType",
            &[
                RoleDefinition::new("HEAD").at_most(1),
                RoleDefinition::new("CLIENT").at_most(1).service("one"),
                RoleDefinition::new("WORKER").at_least(2),
                RoleDefinition::new("NOTEBOOK").without_services(),
            ],
        )
        .objects(&[
            ObjectDefinition::new(HOSTS),
            ObjectDefinition::new(TURN).while_active().refers_to(&[HOSTS]),
            ObjectDefinition::new(BOARD[0]),
            ObjectDefinition::new(BOARD[1]),
        ])
        .names_replicas()
        .fills_in_images()
        .settings(&[GREETING]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        let entries = self.spec.members.iter().map(|member| {
            let role = member.member_type.as_deref().unwrap_or("WORKER");
            (Cow::Borrowed(role), Cow::Borrowed(&member.spec))
        });
        RoleSpecs::list(entries).filled_in(|_, spec| {
            for container in spec.template.spec.iter_mut().flat_map(|pod| &mut pod.containers) {
                if container.image.is_none() {
                    container.image.clone_from(&self.spec.image);
                }
            }
        })
    }

    fn run_policy(&self) -> RunPolicy {
        RunPolicy {
            backoff_limit: self.spec.backoff_limit.or(Some(0)),
            suspend: self.spec.suspend,
            ..RunPolicy::default()
        }
    }

    // region: encode_status
    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref().map(|status| &status.job)
    }

    fn encode_status(
        &self,
        status: &JobStatus,
        topology: Option<&Topology<'_>>,
    ) -> serde_json::Result<Value> {
        let phase = if status.is(ConditionType::Succeeded) {
            "Done"
        } else {
            "Creating"
        };
        let client = topology.and_then(|topology| Some(topology.role("CLIENT")?.host(0)));
        Ok(json!({"phase": phase, "client": client, "job": serde_json::to_value(status)?}))
    }
    // endregion: encode_status

    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        vec![
            variable("GREETING", topology.settings.get(&GREETING)),
            variable("ME", replica.host()),
        ]
    }

    fn checks() -> Vec<Check<Self>> {
        vec![
            Check::any_of(&["HEAD", "CLIENT"], "nobody hands out work", "add a HEAD").when(
                |job| job.spec.detached != Some(true),
                "!self.?detached.orValue(false)",
            ),
            Check::at_least(
                "WORKER",
                3,
                "so many restarts are for more workers",
                "use 3 or more",
            )
            .when(
                |job| job.spec.backoff_limit.is_some_and(|limit| limit > 5),
                "self.?backoffLimit.orValue(0) > 5",
            ),
        ]
    }

    /// The annotation `one-name` makes a mistake.
    fn replica_names(&self, role: &Role<'_>) -> ReplicaNames {
        let job = self.metadata.name.as_deref().unwrap_or_default();
        match role.name() {
            _ if self.annotations().contains_key("one-name") => ReplicaNames::Single(format!("{job}-one")),
            "HEAD" => ReplicaNames::Single(format!("{job}-boss")),
            _ => ReplicaNames::Indexed(format!("{job}-{}-x1", role.slug)),
        }
    }

    fn labels(&self, _: &Topology<'_>, replica: &Replica<'_>) -> BTreeMap<String, String> {
        [
            ("member_type", replica.role.name()),
            ("training.kubeflow.org/job-name", "not-to-be-replaced"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    /// The hosts; and the job's turn, unless it is detached. Annotations make mistakes.
    fn objects(&self, topology: &Topology<'_>, replicas: &Replicas<'_>) -> Vec<JobObject> {
        let mut objects = vec![hosts(topology, replicas)];
        if self.spec.detached != Some(true) {
            let mut turn = json!({"spec": {"members": topology.total(), "reason": null}});
            if let Some(colour) = self.annotations().get("colour") {
                turn["spec"]["colour"] = json!(colour);
            }
            objects.push(TURN.object(topology.job, turn));
        }
        if let Some(name) = self.annotations().get("board") {
            let mut service = json!({"spec": {"selector": {"board": topology.job}, "ports": [{"port": 80}]}});
            if let Some(field) = self.annotations().get("board-field") {
                service["spec"]["ports"][0][field] = "eighty".into();
            }
            let pod = json!({"spec": {"containers": [{"name": "board", "image": "example.com/board:1"}]}});
            objects.extend(
                BOARD
                    .into_iter()
                    .zip([service, pod])
                    .map(|(kind, it)| kind.object(name, it)),
            );
        }
        if self.annotations().contains_key("undeclared") {
            let other = ObjectKind::new("example.com", "v1", "Other", "others");
            objects.push(other.object(topology.job, json!({})));
        }
        objects
    }

    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        replicas.decided_by(&["WORKER"])
    }

    fn tolerance(&self, role: &Role<'_>) -> FailureTolerance {
        match role.name() {
            "NOTEBOOK" => FailureTolerance::Always,
            _ => FailureTolerance::None,
        }
    }

    /// A notebook looks at workers, so there is none before they run. The annotation `waits` makes mistakes.
    fn starts_after(&self, _: &Topology<'_>, role: &Role<'_>) -> &'static [&'static str] {
        match (role.name(), self.annotations().get("waits").map(String::as_str)) {
            ("NOTEBOOK", None) => &["WORKER"],
            ("WORKER", Some("itself")) => &["WORKER"],
            ("WORKER", Some(_)) => &["NOBODY"],
            _ => &[],
        }
    }

    fn is_retryable(&self, role: &Role<'_>, _: i32, _: &str) -> bool {
        role.name() == "CLIENT"
    }
}
