//! The node agent: pods as local processes.
mod addresses;
mod config;
mod environment;
mod event;
mod guard;
mod lifecycle;
mod logs;
mod names;
mod prepare;
mod process;
mod resources;
mod sources;
mod status;
mod stop;
mod text;

pub use config::{EnvAdjust, LocalPod, NodeConfig, OPERATOR_NAME_LABEL, RestartBackoff};
pub use environment::{Difference, DifferenceKind, Environment};
pub use event::{LogLine, NodeEvent, Prepared, Stream};
