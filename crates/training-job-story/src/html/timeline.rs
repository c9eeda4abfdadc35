//! The replicas over time as SVG, and as a table.

use jiff::Timestamp;
use maud::{Markup, html};

use crate::story::{ContainerRun, PodHistory, Replica, Story};

use super::axis::time_ticks;
use super::spans::{State, main_runs, spans};
use super::time::{duration, relative, seconds_between, short_time};

const WIDTH: f64 = 1_000.0;
const NAMES: f64 = 150.0;
const RIGHT: f64 = 80.0;
const LANE: f64 = 16.0;
const TOP: f64 = 22.0;

/// The place of times on the page.
struct Scale {
    from: Timestamp,
    length: f64,
}

impl Scale {
    fn x(&self, at: Timestamp) -> f64 {
        let part = (seconds_between(self.from, at) / self.length).clamp(0.0, 1.0);
        ((NAMES + part * (WIDTH - NAMES - RIGHT)) * 10.0).round() / 10.0
    }
}

pub(super) fn timeline(story: &Story) -> Markup {
    let end = story.end();
    let scale = Scale {
        from: story.created_at,
        length: seconds_between(story.created_at, end).max(0.1),
    };
    let roles = story.replicas.chunk_by(|a, b| a.role == b.role);
    html! {
        section aria-labelledby="timeline" {
            h2 #timeline { "Timeline" }
            p.soft { "From the creation of the job to " (relative(story.created_at, end)) ". The table below has the same facts." }
            ul.legend {
                @for state in State::DRAWN {
                    li { svg viewBox="0 0 12 12" aria-hidden="true" { rect.(state.class()) width="12" height="12" {} } (state.title()) }
                }
                li { svg viewBox="0 0 12 12" aria-hidden="true" { rect.ok x="4" width="4" height="12" {} } "exit code 0" }
                li { svg viewBox="0 0 12 12" aria-hidden="true" { rect.ko x="4" width="4" height="12" {} } "other exit code" }
                li { svg viewBox="0 0 12 12" aria-hidden="true" { rect.t x="4" width="4" height="12" {} } "ended because it was stopped" }
                li { svg viewBox="0 0 12 12" aria-hidden="true" { rect.r.guess width="12" height="12" {} } "known from events only" }
            }
            @for role in roles {
                @if let Some(first) = role.first() { (lanes(&first.role, role, &scale, end)) }
            }
            details open[story.replicas.len() <= 20] {
                summary { "Table of all pods" }
                (table(story, end))
            }
        }
    }
}

fn lanes(role: &str, replicas: &[Replica], scale: &Scale, end: Timestamp) -> Markup {
    // A page has fewer than 2^32 lanes.
    let height = TOP + LANE * replicas.len() as f64 + 4.0;
    let label = format!("Timeline of role {role}, {} replicas", replicas.len());
    html! {
        figure {
            figcaption { (role) " " span.soft { "(" (replicas.len()) ")" } }
            div.scroll tabindex="0" role="region" aria-label=(label) {
                svg.lanes viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(label) {
                    @for tick in time_ticks(scale.length) {
                        @let x = NAMES + tick / scale.length * (WIDTH - NAMES - RIGHT);
                        path.grid d=(format!("M{x:.1} {TOP}V{height}")) {}
                        text.axis x=(format!("{x:.1}")) y="14" { "+" (duration(tick)) }
                    }
                    @for (n, replica) in replicas.iter().enumerate() {
                        (lane(replica, TOP + LANE * n as f64, scale, end))
                    }
                }
            }
        }
    }
}

fn lane(replica: &Replica, y: f64, scale: &Scale, end: Timestamp) -> Markup {
    let name = replica.name();
    let shown: String = match name.chars().count() {
        ..=21 => name,
        count => ["…".to_owned(), name.chars().skip(count - 20).collect()].concat(),
    };
    html! {
        text x="0" y=(y + 11.0) { (shown) }
        @for pod in &replica.pods {
            @for span in spans(pod, end) {
                @let (x, to) = (scale.x(span.from), scale.x(span.to));
                rect.(span.state.class()).guess[pod.is_inferred] x=(x) y=(y + 2.0) width=(format!("{:.1}", (to - x).max(1.0))) height="12" {
                    title {
                        (span.state.title()) @if !span.reason.is_empty() { ": " (span.reason) }
                        ", " (relative(scale.from, span.from)) " to " (relative(scale.from, span.to))
                    }
                }
            }
            @for run in main_runs(pod) { (mark(pod, run, y, scale)) }
        }
        @if let Some(code) = last_failure(replica) {
            text.bad x=(end_of(replica, scale) + 5.0) y=(y + 11.0) { (code) }
        }
    }
}

fn mark(pod: &PodHistory, run: &ContainerRun, y: f64, scale: &Scale) -> Markup {
    let Some(finished) = run.finished_at else {
        return Markup::default();
    };
    let class = match run.exit_code {
        Some(0) => "ok",
        _ if pod.was_stopped(run) => "t",
        _ => "ko",
    };
    html! {
        rect.(class) x=(scale.x(finished) - 1.5) y=(y + 1.0) width="3" height="14" {
            title { (outcome(run)) ", " (relative(scale.from, finished)) }
        }
    }
}

/// Returns the text after a lane: the exit code of the latest run if it failed.
fn last_failure(replica: &Replica) -> Option<String> {
    let pod = replica.pods.last()?;
    let run = main_runs(pod).last().filter(|run| !pod.was_stopped(run))?;
    let code = run.exit_code.filter(|code| *code != 0)?;
    Some(match run.signal {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit {code}"),
    })
}

fn end_of(replica: &Replica, scale: &Scale) -> f64 {
    let pod = replica.pods.last();
    let ends = pod.and_then(|pod| main_runs(pod).filter_map(|run| run.finished_at).max());
    ends.map_or(NAMES, |at| scale.x(at))
}

pub(super) fn outcome(run: &ContainerRun) -> String {
    let mut text = match (run.exit_code, run.signal) {
        (_, Some(signal)) => format!("killed by signal {signal}"),
        (Some(code), None) => format!("exit {code}"),
        (None, None) => "running".to_owned(),
    };
    if !matches!(&*run.reason, "" | "Error" | "Completed") {
        text = format!("{text} ({})", run.reason);
    }
    text
}

fn table(story: &Story, end: Timestamp) -> Markup {
    let from = story.created_at;
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table of all pods" {
            table {
                caption.soft { "Times are relative to the creation of the job." }
                thead { tr {
                    th scope="col" { "Replica" } th scope="col" { "Pod" } th scope="col" { "Restarts" } th scope="col" { "Created" }
                    th scope="col" { "Scheduled" } th scope="col" { "Waited for" } th scope="col" { "Runs" } th scope="col" { "Deleted" }
                } }
                tbody {
                    @for replica in &story.replicas { @for pod in &replica.pods {
                        tr {
                            th scope="row" { (replica.name()) }
                            td { (pod.name) @if pod.is_inferred { span.soft { " (from events)" } } }
                            td { @if pod.is_inferred { "–" } @else { (pod.attempt) } }
                            td { (short_time(from, pod.created_at)) }
                            td { (short_time(from, pod.scheduled_at)) @if let Some(node) = &pod.node { " " span.soft { (node) } } }
                            td { (waits(pod, from)) }
                            td { @for run in &pod.runs { (run_line(pod, run, from, end)) } (phase_reason(pod)) }
                            td { (short_time(from, pod.gone_at.or(pod.stopping_at))) }
                        }
                    } }
                }
            }
        }
    }
}

fn waits(pod: &PodHistory, from: Timestamp) -> Markup {
    html! {
        @for wait in &pod.waits {
            div { (wait.reason) " " span.soft { "from " (relative(from, wait.at)) } @if !wait.message.is_empty() { ": " (wait.message) } }
        }
        @if pod.waits.is_empty() { span.soft { "–" } }
    }
}

fn run_line(pod: &PodHistory, run: &ContainerRun, from: Timestamp, end: Timestamp) -> Markup {
    let stopped = pod.was_stopped(run);
    let failed = run.exit_code.is_some_and(|code| code != 0) && !stopped;
    let length = seconds_between(run.started_at, run.finished_at.unwrap_or(end));
    html! {
        div {
            (run.container) ": " span.bad[failed] { (outcome(run)) @if stopped { ", stopped" } } " "
            span.soft { "from " (relative(from, run.started_at)) " for " (duration(length)) }
        }
    }
}

fn phase_reason(pod: &PodHistory) -> Markup {
    html! {
        @if !pod.reason.is_empty() && pod.runs.iter().all(|run| run.reason != pod.reason) {
            div { (pod.reason) @if !pod.message.is_empty() { ": " (pod.message) } }
        }
    }
}
