//! Write a Kubernetes operator for a kind of training job by implementing one trait.
//!
//! A training job is a custom resource. Its spec has a number of *replicas* and a pod template for each *role*, such as
//! worker, server or scheduler. The operator creates a pod and a headless service of the same name for each replica,
//! puts the addresses of the others into its environment, restarts failed replicas, and keeps the job's status. An
//! implementation of [`TrainingJob`] defines what is specific to a framework. This library does everything else.
//!
//! This page shows a whole framework, how to run it, and the five steps of a reconcile. The tutorial
//! `docs/authors/add-a-framework.md` in the repository leads from an empty folder to a cluster. [`TrainingJob`]
//! documents the default of each hook, when it is called, and what it may rely on.
//!
//! # A framework
//!
//! The resource is a struct with the fields that users write. [`kube::CustomResource`] derives a custom resource from
//! it, and the trait describes its roles, replicas and environment.
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
//!         .restart_policy(&RestartPolicy::OnFailure)
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
//! let rendered = training_job::render::all(&valid);
//! let env = rendered.pods[1].spec.as_ref().unwrap().containers[0].env.as_ref().unwrap();
//! assert_eq!(env[0].value.as_deref(), Some("1 of blocks-worker-0,blocks-worker-1"));
//! ```
//!
//! # The operator
//!
//! | task | item | in |
//! |---|---|---|
//! | run a program with flags, logs, metrics, leader election | `process::main` | crate `training-job-controller`, feature `process` |
//! | run an operator inside another program | `Operator` | crate `training-job-controller` |
//! | make the definition to install | [`admission::definition`], [`admission::manifest`] | |
//! | run jobs on this machine, without a cluster | `main`, or `Jobs` with a view of your own | crate `training-job-local` |
//! | compare the objects of jobs with snapshots | `snapshots` | crate `training-job-testing` |
//! | compute the objects of a job | [`validate()`], [`render::all`] | |
//! | check the definition and its rules without an API server | `check_definition` | crate `training-job-testing` |
//! | test the life of a job | `Story` | crate `training-job-testing` |
//! | test against an API, with faults | `kube_memory::Cluster` under an `Operator` | crate `kube-memory` |
//! | treat jobs of several kinds alike, or check many jobs | [`Kind`] and [`AnyJob`], [`validate::validate_any`] | |
//! | find errors and likely mistakes in a job | [`validate()`], [`render::warnings`](render::warnings()) | |
//! | check and render jobs as JSON, also those whose hooks panic | [`offline`] | |
//!
//! # Five steps
//!
//! A reconcile of a job has five steps. Only the first and the last two use a client:
//!
//! | step | from | to | |
//! |---|---|---|---|
//! | observe | the caches | [`plan::observed::Observed`]: the job's children | `training-job-controller` |
//! | [`validate()`] | the raw spec | a [`ValidJob`], or all [`FieldErrors`] | pure |
//! | [`plan()`] | job, observed, now | a [`Plan`]: creates, deletes, status, events, when to reconcile again | pure |
//! | apply | the plan | calls | `training-job-controller` |
//! | report | the plan made again after apply | at most one patch of the status | `training-job-controller` |
//!
//! [`render`] makes a replica's pod and service. The plan calls it for missing objects, and an offline review for all
//! objects. So tests can go through a job's whole life with values: no client, no clock, no async.
//!
//! A reconcile may be interrupted anywhere, and the next one continues, because all state is in the job's status. Its
//! cost depends only on the job's own size. All jobs of all kinds share one watch of pods, one of services and one of
//! ConfigMaps. A job that has succeeded or failed never changes its result.
//!
//! # Modules
//!
//! Imports run one way: [`api`] → `output` → [`job`] → [`mod@validate`] → [`render`] → [`admission`] → [`offline`] →
//! [`mod@plan`]. The contract for
//! framework authors is [`job`]. This crate is pure: it needs no async runtime and no Kubernetes client, and it builds
//! for `wasm32-unknown-unknown`. The crate `training-job-controller` has the other steps, and the operator as a process.
//!
//! The crate does not select a Kubernetes version: enable one of the version features of `k8s-openapi` in the binary.
//!
//! # Versions
//!
//! `kube`, `k8s-openapi` and `schemars` are part of the public API: a new major version of one of them is a new major
//! version of this library. `docs/maintainers/public-api.txt` shows changes of the public API, and `make release-check`
//! checks that the version fits them.
//!
//! The lowest supported Rust is that of `rust-version`, which CI checks. It is raised only with a minor version, and to a
//! Rust that is at least six months old.

pub mod admission;
pub mod api;
pub mod job;
pub mod offline;
// Not an interface: what the operator's crates use.
#[doc(hidden)]
pub mod output;
#[doc(hidden)]
pub mod plan;
pub mod render;
pub mod validate;

#[doc(inline)]
pub use job::{
    Accelerator, Accelerators, AnyJob, Cause, Check, FailureTolerance, FieldError, FieldErrors, Framework,
    GangScheduler, HostVolume, JobObject, Kind, Milestone, Mount, ObjectDefinition, ObjectKind, Outcome,
    PodReport, Replica, ReplicaFailure, ReplicaNames, ReplicaState, Replicas, Restart, Role, RoleDefinition,
    RoleReplicas, RoleSpecs, Rule, Schemas, Scope, SettingDefinition, Settings, StartCondition, Topology,
    TrainingJob, any_replica, any_with_replicas, nearest, roles_named,
};
#[doc(hidden)]
pub use plan::{Plan, plan};
pub use validate::{ValidJob, validate};
