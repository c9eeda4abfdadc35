//! A job on which its own code panics.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::EnvVar;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use kube::{CustomResourceExt, Resource};
use kube_memory::Description;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, RunPolicy};
use training_job::{Framework, Outcome, Replica, Replicas, RoleDefinition, RoleSpecs, Topology, TrainingJob};
use training_job_controller::Operator;
use training_job_mxnet::MXJob;
use training_job_simulation::faults::PodFate::Succeeds;
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{make, remove, settle_and_check};

/// Like an MXJob, but its code panics when the operator asks for its outcome.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Poisoned(MXJob);

impl Resource for Poisoned {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "PoisonedJob".into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        "kubeflow.org".into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        "poisonedjobs".into()
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

impl CustomResourceExt for Poisoned {
    fn crd() -> CustomResourceDefinition {
        MXJob::crd()
    }

    fn crd_name() -> &'static str {
        "poisonedjobs.kubeflow.org"
    }

    fn api_resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }

    fn shortnames() -> &'static [&'static str] {
        &[]
    }
}

impl TrainingJob for Poisoned {
    const FRAMEWORK: Framework = Framework::new("poison", "poisonedjob-controller")
        .main_container("mxnet")
        .port("mxjob-port", 9091)
        .roles(
            "mxReplicaSpecs",
            &[
                RoleDefinition::new("Scheduler").at_most(1),
                RoleDefinition::new("Server"),
                RoleDefinition::new("Worker"),
            ],
        );

    fn replica_specs(&self) -> RoleSpecs<'_> {
        self.0.replica_specs()
    }

    fn run_policy(&self) -> RunPolicy {
        self.0.run_policy()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.0.status()
    }

    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        self.0.env(topology, replica)
    }

    fn outcome(&self, _: &Replicas<'_>) -> Outcome {
        panic!("poison")
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_panics_stops_no_other_and_is_tried_ever_more_rarely() {
    let mut sim = Simulation::without_operator(|_, _| Succeeds(20));
    let description = Description::new("kubeflow.org", "v1", "PoisonedJob", "poisonedjobs");
    sim.cluster.install(description.with_status());
    let metrics = training_job_controller::Metrics::default();
    let counted = metrics.clone();
    sim.start_as(|client, mut options| {
        options.metrics = counted;
        // One that hangs on to its turn would be noticed.
        options.concurrency = 1;
        let operator = Operator::new(client, options).manage::<Poisoned>();
        operator.manage::<MXJob>().run()
    });
    let mut poison = train("poison", &SMALL);
    poison["kind"] = "PoisonedJob".into();
    make(&sim, "poisonedjobs", poison).await;
    sim.create(train("job", &SMALL)).await;
    sim.advance(60).await;
    assert!(
        sim.conditions("job").ends_with("Succeeded"),
        "{}",
        sim.conditions("job")
    );
    sim.advance(3_540).await;
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
    let line = page
        .lines()
        .find(|l| l.contains("_count{") && l.contains("poison") && l.contains("error"));
    let tries = line.and_then(|l| l.rsplit(' ').next()?.parse::<u32>().ok());
    let tries = tries.unwrap_or_else(|| panic!("{page}"));
    // The backoff doubles from half a second to five minutes.
    assert!((10..=25).contains(&tries), "{tries} tries in an hour");
    assert!(remove(&sim, "poisonedjobs", "poison").await);
    settle_and_check(&mut sim).await;
}
