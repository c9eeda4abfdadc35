//! Pods and nodes.

mod ends;
mod hands;
mod nodes;
