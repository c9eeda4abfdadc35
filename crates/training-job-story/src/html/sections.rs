//! The parts of the page other than pictures.

use maud::{Markup, html};

use crate::story::{Failure, PodHistory, Story};

use super::time::time;

/// The maximum number of lines of a failure's message that are shown at once.
const MAX_MESSAGE_LINES: usize = 12;

pub(super) fn root_cause(story: &Story) -> Markup {
    let Some(failure) = &story.failure else {
        return Markup::default();
    };
    let pod = failed_pod(story, failure);
    // In local runs, and with terminationMessagePolicy: FallbackToLogsOnError, the message is the end of the log.
    let is_in_message = |pod: &&PodHistory| {
        let mut last = pod.log.iter().rev().filter(|line| !line.text.trim().is_empty());
        last.next()
            .is_none_or(|line| failure.message.contains(&line.text))
    };
    html! {
        section aria-labelledby="cause" {
            h2 #cause { "Root cause" }
            div.box {
                p { strong { (failure.summary) } }
                dl {
                    div { dt { "Time" } dd { (time(story.created_at, failure.at)) } }
                    div { dt { "Reason" } dd { (failure.reason) } }
                    @if let Some(code) = failure.exit_code { div { dt { "Exit code" } dd { (code) } } }
                    @if let Some(signal) = failure.signal { div { dt { "Signal" } dd { (signal) } } }
                    @if let Some(pod) = &failure.pod { div { dt { "Pod" } dd { (pod) } } }
                    @if let Some(container) = &failure.container { div { dt { "Container" } dd { (container) } } }
                    @if let Some(node) = &failure.node { div { dt { "Node" } dd { (node) } } }
                }
                (shortened(&failure.message))
                @if let Some(pod) = pod.filter(|pod| !is_in_message(pod)) {
                    h3 { "Last lines of its log" }
                    (log(pod))
                }
            }
            @if !story.earlier_failures.is_empty() {
                h3 { "Earlier failures" }
                ul { @for earlier in &story.earlier_failures {
                    li { (earlier.summary) ", " (time(story.created_at, earlier.at))
                        @if !earlier.message.is_empty() { details { summary { "Message" } pre { (earlier.message) } } } }
                } }
            }
        }
    }
}

/// Returns the last lines of a message, which may be the end of a log, and the whole message to unfold.
fn shortened(message: &str) -> Markup {
    let lines: Vec<&str> = message.lines().collect();
    let first = lines.len().saturating_sub(MAX_MESSAGE_LINES);
    let last = lines.get(first..).unwrap_or_default();
    html! {
        @if !last.is_empty() { pre { @if first > 0 { "…\n" } (last.join("\n")) } }
        @if first > 0 { details { summary { "All " (lines.len()) " lines of the message" } pre { (message) } } }
    }
}

/// Returns the pod of a failure. A replaced pod may have had the same name, so the one that failed at that time is meant.
fn failed_pod<'a>(story: &'a Story, failure: &Failure) -> Option<&'a PodHistory> {
    let name = failure.pod.as_deref()?;
    let pods = story.replicas.iter().flat_map(|replica| &replica.pods);
    let named: Vec<_> = pods.filter(|pod| pod.name == name && !pod.is_inferred).collect();
    let failed = named.iter().rev().find(|pod| {
        let mut runs = pod.runs.iter();
        runs.any(|run| run.exit_code.is_some() && run.exit_code == failure.exit_code)
    });
    failed.copied().or(named.last().copied())
}

fn log(pod: &PodHistory) -> Markup {
    let lines: Vec<&str> = pod.log.iter().map(|line| line.text.as_str()).collect();
    html! { pre { (lines.join("\n")) } }
}

pub(super) fn logs(story: &Story) -> Markup {
    let replicas = story
        .replicas
        .iter()
        .flat_map(|replica| replica.pods.iter().map(move |pod| (replica, pod)));
    let logs: Vec<_> = replicas.filter(|(_, pod)| !pod.log.is_empty()).collect();
    html! {
        @if !logs.is_empty() {
            section aria-labelledby="logs" {
                h2 #logs { "Last lines of logs" }
                @for (replica, pod) in logs {
                    details { summary { (replica.name()) @if pod.attempt > 0 { ", restart " (pod.attempt) }
                        " " span.soft { "(" (pod.log.len()) " lines)" } } (log(pod)) }
                }
            }
        }
    }
}

pub(super) fn warnings(story: &Story) -> Markup {
    html! {
        @if !story.warnings.is_empty() {
            section aria-labelledby="warnings" {
                h2 #warnings { "Warnings about the job" }
                ul { @for warning in &story.warnings {
                    li { code { (warning.path) } ": " (warning.problem) @if !warning.remedy.is_empty() { "; " (warning.remedy) } }
                } }
            }
        }
    }
}

fn table(label: &str, heads: &[&str], rows: &[Vec<Markup>]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label={ (label) " (table)" } {
            table {
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody { @for row in rows { tr { @for cell in row { td { (cell) } } } } }
            }
        }
    }
}

fn text(text: &str) -> Markup {
    html! { (text) }
}

pub(super) fn conditions(story: &Story) -> Markup {
    let rows = story.conditions.iter().map(|condition| {
        vec![
            time(story.created_at, condition.at),
            text(&condition.type_),
            text(&condition.status),
            html! { (condition.reason) @if !condition.message.is_empty() { ": " (condition.message) } },
        ]
    });
    html! {
        section aria-labelledby="conditions" {
            h2 #conditions { "Conditions" }
            (table("Conditions", &["Since", "Condition", "Status", "Why"], &rows.collect::<Vec<_>>()))
        }
    }
}

pub(super) fn events(story: &Story) -> Markup {
    let rows = story.events.iter().map(|event| {
        let is_warning = event.type_ == "Warning";
        vec![
            time(story.created_at, event.at),
            html! { span.warn[is_warning] { (event.type_) } },
            html! { (event.reason) @if event.count > 1 { " " span.soft { "×" (event.count) } } },
            text(&event.object),
            text(&event.message),
        ]
    });
    html! {
        section aria-labelledby="events" {
            h2 #events { "Events" }
            @if story.events.is_empty() { p.soft { "No events. An API server deletes events after an hour." } }
            @else { (table("Events", &["Time", "Type", "Reason", "Object", "Message"], &rows.collect::<Vec<_>>())) }
        }
    }
}

pub(super) fn spec(story: &Story) -> Markup {
    let rows = story.settings.iter().map(|setting| {
        vec![
            html! { code { (setting.path) } },
            html! { span.mono { (setting.value) } },
            html! { @if setting.is_default { span.soft { "default" } } @else { "set" } },
        ]
    });
    html! {
        section aria-labelledby="spec" {
            h2 #spec { "Specification" }
            (table("Specification", &["Field", "Value", "Origin"], &rows.collect::<Vec<_>>()))
        }
    }
}

pub(super) fn rendered(story: &Story) -> Markup {
    let rows = story.rendered.iter().map(|role| {
        vec![
            text(&role.role),
            text(&role.pods.to_string()),
            text(&role.image),
            html! { code { (role.command) } },
            html! { span.mono { (role.resources) } },
            html! { (role.env.join(", ")) },
        ]
    });
    let heads = [
        "Role",
        "Pods",
        "Image",
        "Command",
        "Resources",
        "Environment variables",
    ];
    html! {
        @if !story.rendered.is_empty() {
            section aria-labelledby="rendered" {
                h2 #rendered { "Pods as rendered" }
                p.soft { "Main container of each role. Values of environment variables are left out." }
                (table("Pods as rendered", &heads, &rows.collect::<Vec<_>>()))
            }
        }
    }
}

/// Returns a sentence about what was left out, if anything was.
pub(super) fn omitted(story: &Story) -> Markup {
    let omitted = story.omitted;
    let parts = [
        (omitted.replicas, "replicas"),
        (omitted.pods, "pods"),
        (omitted.runs, "runs and waits"),
        (omitted.lines, "lines of logs"),
        (omitted.events, "events"),
        (omitted.curves, "curves"),
        (omitted.settings, "values of the specification"),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| format!("{count} {noun}"))
        .collect();
    html! { @if !parts.is_empty() { p { "Left out, because the page is bounded: " (parts.join(", ")) "." } } }
}
