//! The roles of an MPIJob.

use std::collections::BTreeMap;

use training_job::Role;

pub(crate) const LAUNCHER: &str = "Launcher";
pub(crate) const WORKER: &str = "Worker";

/// Returns true if a container of the role has a limit on GPUs. Processes then run in it as well.
pub(crate) fn requests_gpu(role: &Role<'_>) -> bool {
    let containers = role.template().spec.iter().flat_map(|spec| &spec.containers);
    let limits = containers.filter_map(|container| container.resources.as_ref()?.limits.as_ref());
    limits
        .flat_map(BTreeMap::keys)
        .any(|resource| resource.contains("gpu"))
}
