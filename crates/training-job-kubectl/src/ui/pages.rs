//! The list of jobs, and pages for errors.

use maud::{DOCTYPE, Markup, html};
use training_job_review::duration::short_time;

use super::filter::Query;
use crate::list::JobRow;
use crate::situation::RoleCount;

pub(super) const STYLE: &str = "/ui.css";
pub(super) const SCRIPT: &str = "/ui.js";
pub(super) const LIST: &str = "/";

/// The states in the filter.
const STATES: [&str; 7] = [
    "Created",
    "Running",
    "Restarting",
    "Suspended",
    "Succeeded",
    "Failed",
    "New",
];

/// The content of the list of jobs.
#[derive(Debug)]
pub(super) struct ListPage<'a> {
    /// The rows that the query selects.
    pub(super) rows: &'a [JobRow],
    pub(super) query: &'a Query,
    /// The number of jobs without a query.
    pub(super) total: usize,
    /// The namespace of the jobs; `None` for all.
    pub(super) namespace: Option<&'a str>,
    pub(super) kinds: &'a [&'a str],
    /// Sentences about what the list lacks.
    pub(super) notes: &'a [String],
}

fn page(title: &str, events: &str, body: Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="icon" href="data:,";
                link rel="stylesheet" href=(STYLE);
                script src=(SCRIPT) defer {}
            }
            body data-events=(events) { (body) }
        }
    }
    .into_string()
}

pub(super) fn list(list: &ListPage<'_>) -> String {
    let place = match list.namespace {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "in all namespaces".to_owned(),
    };
    let body = html! {
        a.skip href="#main" { "Skip to the content" }
        header {
            h1 { "Training jobs " (place) }
            (form(list))
        }
        main #main data-live {
            @for note in list.notes { p.note { (note) } }
            p { (list.rows.len()) " of " (list.total) " jobs" }
            @if !list.rows.is_empty() { (table(list.rows)) }
        }
    };
    page(&format!("Training jobs {place}"), "/events", body)
}

fn form(list: &ListPage<'_>) -> Markup {
    let query = list.query;
    let choice = |label: &str, name: &str, chosen: &str, values: &[&str]| {
        html! {
            label { (label) select name=(name) {
                option value="" { "all" }
                @for value in values { option value=(value) selected[*value == chosen] { (value) } }
            } }
        }
    };
    html! {
        form method="get" action=(LIST) role="search" {
            (choice("Kind", "kind", &query.kind, list.kinds))
            @if list.namespace.is_none() {
                label { "Namespace" input name="namespace" value=(query.namespace) autocomplete="off"; }
            }
            (choice("State", "state", &query.state, &STATES))
            label { "Name or reason" input name="text" type="search" value=(query.text) autocomplete="off"; }
            button { "Filter" }
            @if *query != Query::default() { a href=(LIST) { "Show all" } }
        }
    }
}

/// Returns the address of a job's story.
pub(super) fn address(row: &JobRow) -> String {
    let address = format!("/job/{}/{}/{}", row.namespace, row.kind, row.name);
    match row.is_of_history {
        true => {
            let uid: String = form_urlencoded::byte_serialize(row.uid.as_bytes()).collect();
            format!("{address}?uid={uid}")
        }
        false => address,
    }
}

fn table(rows: &[JobRow]) -> Markup {
    let heads = [
        "Namespace",
        "Kind",
        "Name",
        "State",
        "Ready",
        "Restarts",
        "Progress",
        "Age",
        "Duration",
        "Why",
    ];
    let time = |seconds: Option<i64>| seconds.map(short_time).unwrap_or_default();
    html! {
        div.scroll.jobs tabindex="0" role="region" aria-label="Jobs (table)" {
            table {
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody { @for row in rows { tr {
                    td { (row.namespace) }
                    td { (row.kind) }
                    td { a href=(address(row)) { (row.name) } }
                    td { span.state.(class(&row.state)) { (row.state) } @if row.is_deleted { " (deleted)" } }
                    td { (row.roles.iter().map(RoleCount::text).collect::<Vec<_>>().join(", ")) }
                    td { (row.restarts()) }
                    td { (row.progress) }
                    td { (time(row.age_seconds)) }
                    td { (time(row.duration_seconds)) }
                    td { (row.why) }
                } } }
            }
        }
    }
}

/// Returns the class of a known state. Other texts must not select a class.
fn class(state: &str) -> &'static str {
    match state {
        "Succeeded" => "Succeeded",
        "Failed" => "Failed",
        "Restarting" => "Restarting",
        _ => "other",
    }
}

/// The maximum number of other jobs on the page of a missing one.
const MAX_OTHERS: usize = 50;

/// Returns the page of a problem, with links to jobs that exist.
pub(super) fn problem(title: &str, text: &str, others: &[JobRow]) -> String {
    let body = html! {
        main #main {
            p.back { a href=(LIST) { "All jobs" } }
            h1 { (title) }
            p { (text) }
            @if !others.is_empty() {
                h2 { "Jobs of this namespace" }
                ul { @for row in others.iter().take(MAX_OTHERS) {
                    li { a href=(address(row)) { (row.kind) "/" (row.name) } ": " (row.state)
                        @if row.is_deleted { " (deleted)" } }
                } }
            }
        }
    };
    page(title, "", body)
}
