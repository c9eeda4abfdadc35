//! The states of a pod over time.

use jiff::Timestamp;

use crate::story::{ContainerRun, PodHistory};

/// A state of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Waits for a node.
    Pending,
    /// On a node, and no container has run.
    Starting,
    /// An init container runs.
    Init,
    /// The first container runs.
    Running,
    /// Waits for the restart of a container.
    Waiting,
    /// Asked to stop.
    Stopping,
    /// Not observed, and without a known run.
    Existed,
    /// No container runs.
    Ended,
}

impl State {
    pub(super) const DRAWN: [Self; 6] = [
        Self::Pending,
        Self::Starting,
        Self::Init,
        Self::Running,
        Self::Waiting,
        Self::Stopping,
    ];

    /// Returns the class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Pending => "p",
            Self::Starting => "s",
            Self::Init => "i",
            Self::Running | Self::Existed => "r",
            Self::Waiting => "w",
            Self::Stopping => "t",
            Self::Ended => "",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Starting => "starting: images, volumes",
            Self::Init => "init container",
            Self::Running => "running",
            Self::Waiting => "waiting to restart",
            Self::Stopping => "stopping",
            Self::Existed => "existed; its states are not known",
            Self::Ended => "ended",
        }
    }
}

/// A period in which a pod was in one state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span<'a> {
    pub(super) state: State,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// The reason of the state in one word.
    pub(super) reason: &'a str,
}

/// Returns the states of a pod until `end`, oldest first. States that are not drawn are left out.
pub(super) fn spans<'a>(pod: &'a PodHistory, end: Timestamp) -> Vec<Span<'a>> {
    let mut changes: Vec<(Timestamp, State, &str)> = Vec::new();
    let first = match (pod.is_inferred, pod.runs.is_empty()) {
        (false, _) => Some(State::Pending),
        (true, true) => Some(State::Existed),
        (true, false) => None,
    };
    changes.extend(pod.created_at.zip(first).map(|(at, state)| (at, state, "")));
    changes.extend(pod.scheduled_at.map(|at| (at, State::Starting, "")));
    for wait in &pod.waits {
        let has_run = main_runs(pod).any(|run| run.started_at <= wait.at);
        let state = match pod.scheduled_at.is_some_and(|at| at <= wait.at) || has_run {
            _ if has_run => State::Waiting,
            true => State::Starting,
            false => State::Pending,
        };
        changes.push((wait.at, state, wait.reason.as_str()));
    }
    for run in pod.runs.iter().filter(|run| run.is_init) {
        changes.push((run.started_at, State::Init, run.container.as_str()));
        changes.extend(run.finished_at.map(|at| (at, State::Starting, "")));
    }
    for run in main_runs(pod) {
        changes.push((run.started_at, State::Running, ""));
        changes.extend(run.finished_at.map(|at| (at, State::Ended, "")));
    }
    // A run that ends, and a wait that begins at the same time, are in this order.
    changes.sort_by_key(|(at, state, _)| (*at, matches!(state, State::Waiting)));
    let last_end = main_runs(pod).filter_map(|run| run.finished_at).max();
    let is_over = matches!(&*pod.phase, "Succeeded" | "Failed");
    let end = pod.gone_at.or(last_end.filter(|_| is_over)).unwrap_or(end);
    if let Some(stopping) = pod.stopping_at.filter(|at| *at < end) {
        changes.retain(|(at, ..)| *at <= stopping);
        let runs = main_runs(pod).any(|run| run.finished_at.is_none_or(|finished| finished > stopping));
        if runs || pod.runs.is_empty() {
            changes.push((stopping, State::Stopping, ""));
        }
    }
    let nexts = changes.iter().skip(1).map(|(at, ..)| *at).chain([end]);
    let spans = changes.iter().zip(nexts).map(|((from, state, reason), to)| Span {
        state: *state,
        from: *from,
        to: to.min(end).max(*from),
        reason,
    });
    spans
        .filter(|span| span.state != State::Ended && span.to > span.from)
        .collect()
}

/// Returns the runs of the container whose end is the end of the replica: the first one except init containers.
pub(super) fn main_runs(pod: &PodHistory) -> impl Iterator<Item = &ContainerRun> {
    let main = pod
        .runs
        .iter()
        .find(|run| !run.is_init)
        .map(|run| run.container.as_str());
    pod.runs
        .iter()
        .filter(move |run| !run.is_init && Some(run.container.as_str()) == main)
}
