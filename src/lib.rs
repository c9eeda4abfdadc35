//! Write a Kubernetes operator for a kind of training job by implementing one trait.
//!
//! A training job is a custom resource whose spec has, for each *role* (worker, server, scheduler …),
//! a number of *replicas* and a pod template. The operator gives each replica a pod and a headless
//! service of the same name, tells it by its environment where the others are, restarts what fails,
//! and keeps the job's status. What is particular to a framework is a [`TrainingJob`]; everything
//! else is here.
//!
//! This page has a whole framework, how it runs, and what happens to a job in five steps. A longer way, from an
//! empty folder to a cluster, is `docs/add-a-framework.md` in the repository. Then read [`TrainingJob`]: it says of each hook
//! what its default is, when it is called, and what it may rely on.
//!
//! # A framework
//!
//! The resource is a struct with the fields that users write; [`kube::CustomResource`] makes a custom resource of it. The
//! trait says what it is made of.
//!
//! ```
//! use k8s_openapi::api::core::v1::EnvVar;
//! use kube::CustomResource;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use training_job::api::{JobStatus, ReplicaSpecs, RestartPolicy, RunPolicy, variable};
//! use training_job::{Framework, Replica, RoleDefinition, RoleSpecs, Settings, Topology, TrainingJob};
//!
//! #[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "ToyJob", namespaced, status = "JobStatus")]
//! #[serde(rename_all = "camelCase")]
//! struct ToyJobSpec {
//!     #[serde(default)]
//!     replica_specs: ReplicaSpecs,
//!     #[serde(default)]
//!     run_policy: RunPolicy,
//! }
//!
//! impl TrainingJob for ToyJob {
//!     const FRAMEWORK: Framework = Framework::new("toy", "toyjob-controller")
//!         .port("toy-port", 4000)
//!         .restart_policy(RestartPolicy::OnFailure)
//!         .roles("replicaSpecs", &[RoleDefinition::new("Worker")]);
//!
//!     fn replica_specs(&self) -> RoleSpecs<'_> { RoleSpecs::map(&self.spec.replica_specs) }
//!     fn run_policy(&self) -> RunPolicy { self.spec.run_policy.clone() }
//!     fn status(&self) -> Option<&JobStatus> { self.status.as_ref() }
//!
//!     fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
//!         let hosts: Vec<_> = topology.all().map(|r| r.host()).collect();
//!         vec![variable("TOY", format!("{} of {}", replica.index, hosts.join(",")))]
//!     }
//! }
//!
//! // Validation and rendering need no cluster:
//! let job: ToyJob = serde_json::from_value(serde_json::json!({
//!     "apiVersion": "example.com/v1", "kind": "ToyJob", "metadata": {"name": "blocks"},
//!     "spec": {"replicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"containers": [
//!         {"name": "toy", "image": "example.com/toy:1"}
//!     ]}}}}},
//! })).unwrap();
//! let valid = training_job::validate(&job, &Settings::default()).unwrap();
//! let (_services, pods) = training_job::render::all(&valid);
//! let env = pods[1].spec.as_ref().unwrap().containers[0].env.as_ref().unwrap();
//! assert_eq!(env[0].value.as_deref(), Some("1 of blocks-worker-0,blocks-worker-1"));
//! ```
//!
//! # The operator
//!
//! | you want | you call | feature |
//! |---|---|---|
//! | a program with flags, logs, metrics, leader election | `process::main` | `process` |
//! | the definition to install | [`admission::definition`], [`admission::manifest`] | |
//! | jobs run on this machine, without a cluster | `local::main`, or `local::Jobs` with a view of your own | `local`, `memory` |
//! | snapshot tests of what jobs get | `testing::snapshots` | `testing` |
//! | what a job would get, as values | [`validate()`], [`render::all`] | |
//! | tests against an API | `memory::Cluster` under [`Operator`] | `memory` |
//! | what is wrong with a job, or surely not meant | [`validate()`], [`validate::warnings`](validate::warnings()) | |
//!
//! An operator inside of another program runs until it is dropped:
//!
//! ```no_run
//! # async fn run<ToyJob: training_job::TrainingJob>() -> kube::Result<()> {
//! use training_job::{Operator, Options};
//!
//! let mut config = kube::Config::infer().await.map_err(kube::Error::InferConfig)?;
//! config.default_retry = false; // the operator retries by itself, per job
//! let client = kube::Client::try_from(config)?;
//! Operator::new(client, Options::default()).manage::<ToyJob>().run().await;
//! # Ok(()) }
//! ```
//!
//! # Five steps
//!
//! A pass over a job is five steps, of which only the first and the last two see a client:
//!
//! | step | from | to | |
//! |---|---|---|---|
//! | observe | the caches | [`observed::Observed`]: what the cluster holds of the job | [`controller`] |
//! | [`validate()`] | the raw spec | a [`ValidJob`], or all [`FieldErrors`] | pure |
//! | [`plan()`] | job, observed, now | a [`Plan`]: creates, deletes, status, events, when to look again | pure |
//! | apply | the plan | calls | [`controller`] |
//! | report | the plan made anew after apply | at most one patch of the status | [`controller`] |
//!
//! [`render`] makes a replica's pod and service; the plan calls it for what is missing, an offline
//! review for all. So a job's whole life can be tested with values: no client, no clock, no async.
//!
//! What is promised of a pass: it may end anywhere and the next one goes on (all that must be remembered is in the
//! job's status); it costs the job's own size, whatever else the cluster holds; all jobs of all kinds share one watch of
//! pods and one of services; a job that has ended well or badly stays so.
//!
//! # Features
//!
//! * `memory`: the in-memory Kubernetes API under a real `kube::Client` (tests, simulation, local runs).
//! * `testing`: snapshot tests of what jobs get, in one line.
//! * `process`: an operator as a process, with flags, logs, health, metrics, leader election and signals.
//! * `local`: the node agent, which runs pods as processes of this machine. Linux only. With `memory` also whole
//!   jobs, without a cluster.
//!
//! None is on by default. The library picks no Kubernetes version: enable one of `k8s-openapi`'s version features in the
//! binary.
//!
//! # Versions
//!
//! `kube`, `k8s-openapi` and `schemars` are part of the interface: a new major version of theirs is a new major version
//! of this library. What a change does to the interface shows in `docs/public-api.txt`, and `make release-check` tells
//! whether the version fits.

pub mod admission;
pub mod api;
pub mod controller;
pub mod job;
pub mod plan;
pub mod render;
pub mod validate;

#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "testing")]
pub mod testing;

pub use controller::{Metrics, Operator, Options};
#[doc(inline)]
pub use job::{
    FailureTolerance, FieldError, FieldErrors, Framework, Milestone, Outcome, Replica, ReplicaNames,
    ReplicaState, Replicas, Requirement, Role, RoleDefinition, RoleReplicas, RoleSpecs, Rule,
    SettingDefinition, Settings, Topology, TrainingJob, any_replica, roles_named,
};
pub use plan::{Plan, plan};
pub use validate::{ValidJob, validate};
