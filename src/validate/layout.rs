//! Checks compact jobs. The operator sets the host names and the domain of their pods.

use crate::job::{FieldErrors, Topology};

/// Returns the name of a compact job's one service.
///
/// A replica's name ends with its index, unless its kind names it otherwise. `check` rejects a job with a replica of
/// this name.
pub(crate) fn service_name(job: &str) -> String {
    format!("{job}-hosts")
}

/// Checks a job whose replicas share one service.
pub(super) fn check(topology: &Topology<'_>, errors: &mut FieldErrors) {
    let Some(service) = &topology.common_service else {
        return;
    };
    for role in &topology.roles {
        let Some(spec) = &role.template().spec else {
            continue;
        };
        let is_set = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
        let fields = [
            ("hostname", is_set(&spec.hostname)),
            ("subdomain", is_set(&spec.subdomain)),
            ("setHostnameAsFQDN", spec.set_hostname_as_fqdn == Some(true)),
        ];
        for (field, _) in fields.into_iter().filter(|(_, set)| *set) {
            errors.push(
                format!("{}.spec.{field}", role.template_path()),
                "must not be set with layout Compact, because the operator sets it",
                "remove it, or use layout Plain",
            );
        }
    }
    if topology.has_replica_named(service) || topology.has_host_named(service) {
        errors.push(
            "metadata.name",
            format!("must not give a replica the name of the job's service ({service})"),
            "use layout Plain",
        );
    }
}
