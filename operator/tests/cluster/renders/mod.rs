//! The output of commands without a cluster equals the objects in a cluster.

mod cluster_diff;
mod compact;
mod pod_rules;
mod restricted;
mod same_objects;
