//! Runs whole training jobs on one machine without a cluster: an in-memory API, the operator and a node in one process.
//!
//! This is what the command `local run` of the package training-job-cli does. [`Jobs`] is for programs with a view of
//! their own:
//!
//! ```no_run
//! # async fn is_async<MyJob: training_job::TrainingJob>() -> Result<(), training_job_local::RunError> {
//! use training_job_local::{Jobs, NodeConfig};
//!
//! let manifest = std::fs::read_to_string("job.yaml").unwrap();
//! let mut run = Jobs::default().kind::<MyJob>().yaml(&manifest)?.start(NodeConfig::default()).await?;
//! while let Some(event) = run.next().await {
//!     if let Some(line) = event.line() {
//!         println!("{line}");
//!     }
//! }
//! println!("{}", if run.succeeded() { "succeeded" } else { "failed" });
//! # Ok(()) }
//! ```
//!
//! The default feature `cluster` has `Jobs::cluster`, an API over HTTPS for kubectl and other clients. Without it,
//! SQLite, CEL and certificates are not compiled.
//!
//! The processes run under a [`local_node::Node`], whose documentation lists the differences from a cluster.

#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod data;
mod error;
mod event;
mod jobs;
mod pods;
mod progress;
mod run;

#[cfg(feature = "cluster")]
pub use cluster::LocalCluster;
#[cfg(feature = "cluster")]
pub use data::{DataDirectory, DataError};
pub use error::{RunError, ServerError};
pub use event::RunEvent;
pub use jobs::Jobs;
#[doc(no_inline)]
pub use local_node::{Environment, LocalPod, NodeConfig};
pub use run::Run;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
