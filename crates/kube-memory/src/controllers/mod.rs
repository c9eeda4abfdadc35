//! What every cluster does by itself after a request: it collects garbage, and counts quotas.

pub(crate) mod collector;
pub(crate) mod quota;
