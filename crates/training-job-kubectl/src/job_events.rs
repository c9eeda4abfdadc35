//! Selects the events of a job (pure).

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};

use crate::stored::StoredJob;

/// The job and the pods that events are about. Pods that exist no more are recognized by their names, because an event
/// has no labels.
#[derive(Debug)]
pub(super) struct JobEvents {
    uids: BTreeSet<String>,
    pods: BTreeSet<String>,
    created: Option<Timestamp>,
}

impl JobEvents {
    /// Returns the selection for a job with these pods.
    pub(super) fn of(job: &StoredJob, pods: &[Pod]) -> Self {
        let uids = pods.iter().filter_map(|pod| pod.metadata.uid.clone());
        let outline = job.outline.as_ref().ok();
        let roles = outline.into_iter().flat_map(|outline| &outline.roles);
        Self {
            uids: uids.chain([job.uid().to_owned()]).collect(),
            pods: roles
                .flat_map(|role| (0..role.replicas).map(|index| role.pod_name(index)))
                .collect(),
            created: job.created(),
        }
    }

    pub(super) fn has(&self, event: &Event) -> bool {
        let about = &event.involved_object;
        let is_pod = about.kind.as_deref() == Some("Pod");
        let is_named = is_pod && about.name.as_ref().is_some_and(|name| self.pods.contains(name));
        about.uid.as_ref().is_some_and(|uid| self.uids.contains(uid))
            // An earlier job of the same name had the same pods.
            || is_named && event_time(event) >= self.created
    }

    /// Removes other events, and sorts the job's by time.
    pub(super) fn keep(&self, events: &mut Vec<Event>) {
        events.retain(|event| self.has(event));
        events.sort_by_key(event_time);
    }
}

/// Returns the time of an event's last occurrence.
pub(crate) fn event_time(event: &Event) -> Option<Timestamp> {
    let series = event
        .series
        .as_ref()
        .and_then(|series| series.last_observed_time.as_ref())
        .map(|time| time.0);
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let first = event.event_time.as_ref().map(|time| time.0);
    let created = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
    series.or(last).or(first).or(created)
}
