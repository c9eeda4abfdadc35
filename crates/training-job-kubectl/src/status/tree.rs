//! The status of a job as a tree of text (pure).

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use training_job::api::{ConditionStatus, FailureRecord};
use training_job_review::duration::short_time;

use super::StatusView;
use crate::replicas::{ReplicaView, RoleView};

/// The number of replicas of a role that are printed one by one.
const MAX_SINGLE_REPLICAS: usize = 10;

/// The number of bytes of a message on a line.
const MAX_MESSAGE: usize = 400;

/// A line with the lines below it.
struct Node {
    text: String,
    children: Vec<Node>,
}

impl Node {
    fn leaf(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            children: Vec::new(),
        }
    }

    fn of(text: impl Into<String>, children: Vec<Self>) -> Self {
        Self {
            text: text.into(),
            children,
        }
    }

    fn write(&self, first: &str, rest: &str, text: &mut String) {
        for (n, line) in self.text.lines().enumerate() {
            let prefix = if n == 0 { first } else { rest };
            text.push_str(format!("{prefix}{line}").trim_end());
            text.push('\n');
        }
        let last = self.children.len().saturating_sub(1);
        for (n, child) in self.children.iter().enumerate() {
            let (branch, below) = if n == last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            child.write(&format!("{rest}{branch}"), &format!("{rest}{below}"), text);
        }
    }
}

/// Returns the tree with terminal styles. `is_wide` prints each replica and its node.
pub(crate) fn text(view: &StatusView, now: Timestamp, is_wide: bool) -> String {
    let job = &view.job;
    let bold = Style::new().bold();
    let mut parts = vec![format!(
        "{bold}{} {}/{}{bold:#}  {}",
        job.kind,
        job.namespace,
        job.name,
        styled(&job.state)
    )];
    parts.extend(
        job.duration_seconds
            .map(|seconds| format!("for {}", short_time(seconds))),
    );
    if job.restarts > 0 || job.restart_limit.is_some() {
        parts.push(format!("restarts {}", job.restarts()));
    }
    let mut title = parts.join("  ");
    if !job.why.is_empty() {
        title = format!("{title}  {}", job.why);
    }
    let mut children = Vec::new();
    if !view.conditions.is_empty() {
        children.push(Node::of("Conditions", conditions(view, now)));
    }
    if let Some(progress) = &view.progress {
        let numbers = [("loss", progress.loss)].into_iter();
        let others = progress
            .values
            .iter()
            .map(|(name, value)| (name.as_str(), Some(*value)));
        let numbers = numbers.chain(others);
        let numbers = numbers.filter_map(|(name, value)| Some(format!("{name} {}", value?)));
        let at = progress
            .at
            .as_ref()
            .map(|at| now.duration_since(at.0).as_secs().max(0));
        let at = at.map(|seconds| format!("{} ago", short_time(seconds)));
        let summary = Some(progress.summary.clone()).filter(|summary| !summary.is_empty());
        let parts: Vec<String> = summary.into_iter().chain(numbers).chain(at).collect();
        let line = Node::leaf(cut_end(&progress.line));
        children.push(Node::of(format!("Progress: {}", parts.join(", ")), vec![line]));
    }
    if !view.role_replicas.is_empty() {
        children.push(Node::of(
            "Replicas",
            view.role_replicas
                .iter()
                .map(|role| self::role(role, is_wide))
                .collect(),
        ));
    }
    if !view.errors.is_empty() {
        children.push(Node::of("Errors", view.errors.iter().map(Node::leaf).collect()));
    }
    if let Some(cause) = &view.root_cause {
        let title = match &*job.state {
            "Running" | "Stalled" | "Created" | "Suspended" => "Last failure",
            _ => "Root cause",
        };
        children.push(Node::of(title, vec![failure(cause, now)]));
    }
    if !view.earlier_failures.is_empty() {
        let earlier = view
            .earlier_failures
            .iter()
            .rev()
            .map(|cause| failure(cause, now));
        children.push(Node::of("Earlier failures", earlier.collect()));
    }
    if !view.not_readable.is_empty() {
        let text = format!("you are not allowed to list {}", view.not_readable.join(", "));
        children.push(Node::of("Not read", vec![Node::leaf(text)]));
    }
    children.push(Node::of(
        "Next",
        view.next
            .iter()
            .map(|sentence| Node::leaf(cut_end(sentence)))
            .collect(),
    ));
    let mut text = String::new();
    Node::of(title, children).write("", "", &mut text);
    text
}

fn conditions(view: &StatusView, now: Timestamp) -> Vec<Node> {
    let width = view
        .conditions
        .iter()
        .map(|condition| condition.type_.len())
        .max()
        .unwrap_or(0);
    let line = |condition: &training_job::api::JobCondition| {
        let is_true = condition.status == ConditionStatus::True;
        let status = if is_true { "True " } else { "False" };
        let time = condition.last_transition_time.as_ref();
        let age = time
            .map(|time| format!("{} ago", ago(time.0, now)))
            .unwrap_or_default();
        let text = format!(
            "{:width$}  {status}  {age:10}  {}",
            condition.type_,
            one_line(&condition.message)
        );
        let dimmed = Style::new().dimmed();
        Node::leaf(match is_true {
            true => text,
            false => format!("{dimmed}{text}{dimmed:#}"),
        })
    };
    view.conditions.iter().map(line).collect()
}

fn role(role: &RoleView, is_wide: bool) -> Node {
    let restarts = match role.restarts {
        0 => String::new(),
        restarts => format!(", restarts {restarts}"),
    };
    let title = format!(
        "{} {}/{} ready, restartPolicy {}{restarts}",
        role.role,
        role.ready,
        role.replicas.len(),
        role.restart_policy
    );
    let groups: Vec<Vec<&ReplicaView>> = match is_wide || role.replicas.len() <= MAX_SINGLE_REPLICAS {
        true => role.replicas.iter().map(|replica| vec![replica]).collect(),
        false => grouped(&role.replicas),
    };
    let name = |group: &[&ReplicaView]| match group {
        [first, .., last] => format!("{} to {}", first.name, last.index),
        [only] => only.name.clone(),
        [] => String::new(),
    };
    let width = groups.iter().map(|group| name(group).len()).max().unwrap_or(0);
    let line = |group: &Vec<&ReplicaView>| {
        let Some(first) = group.first() else {
            return Node::leaf("");
        };
        // A style has no width.
        let padding = " ".repeat(9_usize.saturating_sub(first.state.as_str().len()));
        let mut text = format!(
            "{:width$}  {}{padding}",
            name(group),
            styled(first.state.as_str())
        );
        if group.len() == 1 {
            let age = first.age.map(short_time).unwrap_or_default();
            text += &format!("  {age:6}");
        }
        if first.restarts > 0 {
            text += &format!("  restarts {}", first.restarts);
        }
        if !first.why.is_empty() {
            text += &format!("  {}", first.why);
        }
        let node = first.node.as_ref().filter(|_| is_wide);
        text += &node
            .map(|node| format!("  on {node}, pod {}", first.pod))
            .unwrap_or_default();
        Node::leaf(text)
    };
    Node::of(title, groups.iter().map(line).collect())
}

/// Returns runs of replicas that have the same state for the same reason.
fn grouped(replicas: &[ReplicaView]) -> Vec<Vec<&ReplicaView>> {
    let is_same = |a: &ReplicaView, b: &ReplicaView| {
        (a.state, &a.why, a.restarts, a.exit_code) == (b.state, &b.why, b.restarts, b.exit_code)
    };
    replicas
        .chunk_by(is_same)
        .map(|group| group.iter().collect())
        .collect()
}

fn failure(cause: &FailureRecord, now: Timestamp) -> Node {
    let age = cause
        .time
        .as_ref()
        .map(|time| format!(", {} ago", ago(time.0, now)))
        .unwrap_or_default();
    let summary = match cause.summary.is_empty() {
        true => &cause.reason,
        false => &cause.summary,
    };
    let place = [
        ("pod", &cause.pod),
        ("container", &cause.container),
        ("node", &cause.node),
    ];
    let place = place
        .iter()
        .filter_map(|(word, name)| Some(format!("{word} {}", name.as_ref()?)));
    let place: Vec<String> = place.collect();
    let mut children: Vec<Node> = Vec::new();
    if !place.is_empty() {
        children.push(Node::leaf(place.join(", ")));
    }
    if !cause.message.is_empty() {
        children.push(Node::leaf(cut(&cause.message)));
    }
    Node::of(format!("{summary}{age}"), children)
}

fn ago(time: Timestamp, now: Timestamp) -> String {
    short_time(now.duration_since(time).as_secs().max(0))
}

fn one_line(text: &str) -> String {
    cut(text).replace(['\n', '\r'], " ")
}

/// Returns the beginning of a long sentence, which has its cause, without control characters.
fn cut_end(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns the end of a long output, because it has the most information, without control characters.
fn cut(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    match text.char_indices().rev().nth(MAX_MESSAGE) {
        Some((start, _)) => format!("…{}", &text[start..]),
        None => text,
    }
}

/// Returns a state in its color.
fn styled(state: &str) -> String {
    if state == "No pod" {
        return state.to_owned();
    }
    let color = match state {
        "Ready" | "Running" | "Succeeded" => AnsiColor::Green,
        "Failed" | "HookPanicked" | "Unknown" => AnsiColor::Red,
        _ => AnsiColor::Yellow,
    };
    let style = color.on_default();
    format!("{style}{state}{style:#}")
}
