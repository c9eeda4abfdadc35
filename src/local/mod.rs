//! The node agent: pods as local processes.
mod addresses;
mod config;
mod environment;
mod lifecycle;
mod logs;
mod names;
mod resources;
mod sources;
mod text;

pub use config::{EnvAdjust, LocalPod, NodeConfig, OPERATOR_NAME_LABEL, RestartBackoff};
pub use environment::{Difference, DifferenceKind, Environment};
