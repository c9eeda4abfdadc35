//! A kind whose roles are a list. The kinds of this repository have their roles in maps.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::EnvVar;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpec, RunPolicy};
use training_job::{
    Framework, Outcome, Replica, Replicas, Requirement, RoleDefinition, RoleSpecs, Topology, TrainingJob,
    admission,
};
use training_job_testbed::cluster::ControlPlane;

use super::costs::refused;

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "ListJob",
    namespaced,
    status = "JobStatus"
)]
#[serde(rename_all = "camelCase")]
struct ListJobSpec {
    #[serde(default)]
    members: Vec<Member>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Member {
    member_type: String,
    #[serde(flatten)]
    spec: ReplicaSpec,
}

impl TrainingJob for ListJob {
    const FRAMEWORK: Framework = Framework::new("list", "listjob-controller")
        .main_container("main")
        .port("list-port", 9000)
        .roles_in_list(
            "members",
            "memberType",
            &[
                RoleDefinition::new("HEAD").at_most(1),
                RoleDefinition::new("CLIENT").at_most(1),
                RoleDefinition::new("WORKER").at_least(2),
            ],
        )
        .names_replicas();

    fn replica_specs(&self) -> RoleSpecs<'_> {
        let members = self.spec.members.iter();
        RoleSpecs::list(members.map(|m| (Cow::Borrowed(&*m.member_type), Cow::Borrowed(&m.spec))))
    }

    fn run_policy(&self) -> RunPolicy {
        RunPolicy::default()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, _: &Topology<'_>, _: &Replica<'_>) -> Vec<EnvVar> {
        Vec::new()
    }

    fn requirements() -> Vec<Requirement<Self>> {
        vec![
            Requirement::any_of(&["HEAD", "CLIENT"], "nobody hands out work", "add a HEAD"),
            Requirement::at_least("WORKER", 3, "so few workers are too slow", "use 3 or more"),
        ]
    }

    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        replicas.decided_by(&["WORKER"])
    }
}

#[tokio::test]
async fn the_rules_of_a_list_are_cheap_enough() {
    let plane = ControlPlane::shared().await;
    let definition = admission::definition::<ListJob>().unwrap();
    assert_eq!(refused(plane, &definition).await, []);
}
