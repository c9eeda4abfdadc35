//! First jobs of a kind with required fields of its own.

use k8s_openapi::api::core::v1::EnvVar;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpec, RunPolicy};
use training_job::{Framework, Replica, RoleSpecs, Topology, TrainingJob};

use super::*;

/// A job on a data set, with a database and partitions that users name.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "BatchJob",
    namespaced,
    status = "JobStatus"
)]
#[serde(rename_all = "camelCase")]
struct BatchJobSpec {
    dataset: String,
    #[serde(default)]
    run_policy: RunPolicy,
    database: Option<ReplicaSpec>,
    partitions: Vec<Partition>,
    reports: Vec<Partition>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Partition {
    name: String,
    cores: u32,
    #[serde(flatten)]
    spec: ReplicaSpec,
}

impl TrainingJob for BatchJob {
    const FRAMEWORK: Framework = Framework::new("batch", "batchjob-controller").roles_in_fields(&[
        RoleDefinition::new("Database").in_field("database"),
        RoleDefinition::new("Partition").in_list("partitions", "name"),
        RoleDefinition::new("Report")
            .in_list("reports", "name")
            .exactly(1),
    ]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        fn named(list: &[Partition]) -> impl Iterator<Item = (&str, Option<&ReplicaSpec>)> {
            list.iter().map(|item| (&*item.name, Some(&item.spec)))
        }
        RoleSpecs::default()
            .one("Database", self.spec.database.as_ref())
            .named("Partition", named(&self.spec.partitions))
            .named("Report", named(&self.spec.reports))
    }
    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone()
    }
    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }
    fn env(&self, _: &Topology<'_>, _: &Replica<'_>) -> Vec<EnvVar> {
        Vec::new()
    }
    fn example() -> Value {
        json!({
            "dataset": "s3://data", "reports": [{"name": "final", "cores": 1}],
            "partitions": [{"name": "cpu", "cores": 4}, {"name": "gpu", "cores": 8, "replicas": 1}],
        })
    }
}

fn first_job(workers: Option<u32>) -> Value {
    let kinds = Kinds::default().kind::<BatchJob>();
    let job = JobArgs {
        workers,
        ..JobArgs::default()
    };
    let command = ["train".to_owned()];
    let (text, warnings) = text(&kinds, "batch", &job, IMAGE, &command, &[]).unwrap();
    assert!(warnings.is_empty(), "{warnings}");
    kube_manifest::parse(&text).unwrap()[0].to_json()
}

#[test]
fn the_example_of_a_kind_is_completed() {
    let job = first_job(None);
    assert_eq!(job["spec"]["dataset"], "s3://data");
    assert_eq!(job["spec"]["database"], Value::Null);
    let of = |name: &str, cores: u32, replicas: u32| {
        let containers = json!([{"name": "batch", "image": IMAGE, "command": ["train"]}]);
        json!({"name": name, "cores": cores, "replicas": replicas, "restartPolicy": "OnFailure",
            "template": {"spec": {"containers": containers}}})
    };
    assert_eq!(
        job["spec"]["partitions"],
        json!([of("cpu", 4, 2), of("gpu", 8, 1)])
    );
    let job = first_job(Some(3));
    assert_eq!(
        job["spec"]["partitions"],
        json!([of("cpu", 4, 3), of("gpu", 8, 3)])
    );
    assert_eq!(job["spec"]["reports"], json!([of("final", 1, 1)]));
}
