//! The work of every cluster after a request: garbage collection and quota counts.

pub(crate) mod collector;
pub(crate) mod quota;
