//! Events as text (pure).

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use training_job_review::duration::short_time;
use training_job_review::table::Table;

use crate::job_events::event_time;

pub(super) const HEADINGS: [&str; 6] = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"];

/// Returns events as a table.
pub(crate) fn table(events: &[Event], now: Timestamp) -> String {
    let mut table = Table::new(&HEADINGS);
    for event in events {
        table.row(row(event, now));
    }
    table.to_string()
}

pub(super) fn row(event: &Event, now: Timestamp) -> [String; 6] {
    let about = &event.involved_object;
    let kind = about.kind.as_deref().unwrap_or_default().to_lowercase();
    let count = event
        .series
        .as_ref()
        .and_then(|series| series.count)
        .or(event.count)
        .unwrap_or(1);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        event_time(event)
            .map(|time| short_time(now.duration_since(time).as_secs().max(0)))
            .unwrap_or_default(),
        text(&event.type_),
        text(&event.reason),
        format!("{kind}/{}", about.name.as_deref().unwrap_or_default()),
        count.to_string(),
        text(&event.message),
    ]
}

/// Returns a line with the name of an event, as kubectl prints it.
pub(super) fn name(event: &Event) -> String {
    format!("event/{}\n", event.metadata.name.as_deref().unwrap_or_default())
}
