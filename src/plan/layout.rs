//! Rejects a change of the layout of a job whose pods run.

use crate::api::Layout;
use crate::validate::{ValidJob, annotations, common_service_name};

use super::observed::Observed;

/// Returns the error of a job whose pods were created for the other layout. They find each other by names that the new
/// layout does not have. The API server rejects an edit of the field, but the annotation that stands for it can be
/// edited.
pub(super) fn change(job: &ValidJob<'_>, observed: &Observed) -> Option<String> {
    let status = job.job.status();
    if job.policy.suspend || status.is_some_and(|status| status.is_finished()) {
        return None;
    }
    if observed
        .pods
        .values()
        .all(|pod| pod.deleting || pod.is_terminal())
    {
        return None;
    }
    let topology = &job.topology;
    let common = common_service_name(topology.job);
    let has_common = observed.services.contains_key(&common);
    let has_own = || observed.services.keys().any(|name| topology.has_host_named(name));
    let made_for = match topology.common_service {
        None if has_common && !topology.has_host_named(&common) => Layout::Compact,
        Some(_) if !has_common && has_own() => Layout::Plain,
        _ => return None,
    };
    Some(format!(
        "{}: must not change while pods run, because they were created for the layout {word} and find each other by its \
         names; set {word}, or suspend the job first",
        annotations::path_of(&*job.job, "layout"),
        word = made_for.as_str(),
    ))
}
