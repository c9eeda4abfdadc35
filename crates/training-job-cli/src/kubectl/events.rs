//! `events`: the events of a job and its pods.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};

use super::observe::StoredJob;

/// Keeps the events about a job and its pods, and sorts them by time. Pods that exist no more are recognized by their
/// names, because an event has no labels.
pub(super) fn keep_events_of(job: &StoredJob, pods: &[Pod], events: &mut Vec<Event>) {
    let uids: BTreeSet<&str> = pods
        .iter()
        .filter_map(|pod| pod.metadata.uid.as_deref())
        .chain([job.uid()])
        .collect();
    let names: BTreeSet<String> = match &job.outline {
        Ok(outline) => {
            let roles = outline.roles.iter();
            roles
                .flat_map(|role| (0..role.replicas).map(|index| role.pod_name(index)))
                .collect()
        }
        Err(_) => BTreeSet::new(),
    };
    let created = job.created();
    events.retain(|event| {
        let about = &event.involved_object;
        let is_pod = about.kind.as_deref() == Some("Pod");
        let is_named = is_pod && about.name.as_ref().is_some_and(|name| names.contains(name));
        about.uid.as_deref().is_some_and(|uid| uids.contains(uid))
            // An earlier job of the same name had the same pods.
            || is_named && time(event) >= created
    });
    events.sort_by_key(time);
}

/// Returns the time of an event's last occurrence.
pub(super) fn time(event: &Event) -> Option<Timestamp> {
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
