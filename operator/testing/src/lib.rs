//! Helpers that several test programs of the operator share. A panic is how a test fails, so these functions panic.

pub mod cluster_training;
pub mod corpus;
pub mod local_run;
pub mod machine;
pub mod manifests;
pub mod operator;
pub mod operators;
pub mod pod_rules;
pub mod processes;
pub mod program;
pub mod recordings;
pub mod same;
pub mod usage;
pub mod venv;
