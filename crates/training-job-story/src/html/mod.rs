//! The page of a story: one file, without network and script.

mod axis;
mod chart;
mod sections;
mod site;
mod spans;
mod time;
mod timeline;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::story::Story;
use crate::text::is_hidden;

pub use site::Site;

use time::{duration, seconds_between, time};

/// The stylesheet of the page.
pub const STYLE: &str = include_str!("style.css");

/// The browser loads and runs nothing, whatever the texts of the page are.
const SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Returns the page as HTML. All texts of the story are escaped, and characters that hide or reorder text are removed.
pub fn html(story: &Story) -> String {
    visible(page(story, None))
}

/// Returns the page of a server. The server sends the security policy, as a header.
pub fn site_html(story: &Story, site: &Site<'_>) -> String {
    visible(page(story, Some(site)))
}

fn visible(page: Markup) -> String {
    let mut page = page.into_string();
    // A story that was read from a file may contain any text.
    page.retain(|c| !is_hidden(c));
    page
}

fn page(story: &Story, site: Option<&Site<'_>>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                @if site.is_none() { meta http-equiv="Content-Security-Policy" content=(SECURITY_POLICY); }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { (story.kind) " " (story.name) ": " (story.state) }
                @match site {
                    Some(site) => (site.head()),
                    None => style { (PreEscaped(STYLE)) },
                }
            }
            body data-events=[site.map(|site| site.events)] {
                a.skip href="#main" { "Skip to the content" }
                header data-live[site.is_some()] {
                    @if let Some(site) = site { (site.back()) (site.notes()) }
                    @for note in &story.notes { p.note { (note) } }
                    h1 { (story.kind) " " (story.name) }
                    p { span.state.(class_of_state(&story.state)) { (story.state) } (outcome(story)) }
                    (facts(story))
                    (contents(story))
                }
                main #main data-live[site.is_some()] {
                    (sections::root_cause(story))
                    (sections::warnings(story))
                    (timeline::timeline(story))
                    (chart::charts(story))
                    (sections::conditions(story))
                    (sections::events(story))
                    (sections::spec(story))
                    (sections::rendered(story))
                    (sections::logs(story))
                    @if let Some(site) = site { (site.logs(story)) }
                }
                footer.soft data-live[site.is_some()] {
                    (sections::omitted(story))
                    p { "As of " (time(story.created_at, Some(story.observed_at))) ". Relative times count from the creation of the job." }
                }
            }
        }
    }
}

/// Returns the class of a known state. Other texts must not select a class.
fn class_of_state(state: &str) -> &'static str {
    match state {
        "Succeeded" => "Succeeded",
        "Failed" => "Failed",
        "Restarting" => "Restarting",
        _ => "other",
    }
}

fn outcome(story: &Story) -> Markup {
    let end = story.finished_at.unwrap_or(story.observed_at);
    let length = duration(seconds_between(story.created_at, end));
    html! {
        @if story.is_finished() { " after " (length) } @else { " for " (length) " so far" }
        @if let Some(failure) = story.failure.as_ref() { ": " (failure.summary) }
        @else if !story.waiting_reason.is_empty() { ", waits: " (story.waiting_reason) }
        @if !story.progress.is_empty() { ", progress " (story.progress) }
    }
}

fn facts(story: &Story) -> Markup {
    let from = story.created_at;
    html! {
        dl {
            div { dt { "Namespace" } dd { (story.namespace) } }
            div { dt { "API version" } dd { (story.api_version) } }
            div { dt { "Created" } dd { (time(from, Some(from))) } }
            @if let Some(at) = story.started_at { div { dt { "Started" } dd { (time(from, Some(at))) } } }
            @if let Some(at) = story.finished_at { div { dt { "Finished" } dd { (time(from, Some(at))) } } }
            div { dt { "Restarts" } dd {
                (story.restarts) @match story.restart_limit {
                    Some(limit) => { " of " (limit) " allowed (backoffLimit)" },
                    None => { " (backoffLimit is not set)" },
                }
            } }
            div { dt { "Replicas" } dd { (story.replicas.len() + story.omitted.replicas) } }
        }
    }
}

fn contents(story: &Story) -> Markup {
    let links = [
        ("cause", "Root cause", story.failure.is_some()),
        ("warnings", "Warnings", !story.warnings.is_empty()),
        ("timeline", "Timeline", true),
        ("curves", "Metrics", !story.curves.is_empty()),
        ("conditions", "Conditions", true),
        ("events", "Events", true),
        ("spec", "Specification", true),
        ("rendered", "Pods as rendered", !story.rendered.is_empty()),
        (
            "logs",
            "Logs",
            story
                .replicas
                .iter()
                .any(|replica| replica.pods.iter().any(|pod| !pod.log.is_empty())),
        ),
    ];
    html! {
        nav aria-label="Sections" { ul { @for (id, title, exists) in links { @if exists { li { a href={ "#" (id) } { (title) } } } } } }
    }
}
