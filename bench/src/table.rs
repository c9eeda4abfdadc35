//! The stored figures, and the tables that show them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The results of a run of the benchmark.
#[derive(Deserialize, Serialize)]
pub(crate) struct Results {
    /// The cores of the machine, which operator, control plane and driver share.
    pub(crate) cores: usize,
    /// The plain writer's calls in flight.
    pub(crate) in_flight: usize,
    /// The lines of work.
    pub(crate) works: Vec<Worked>,
}

/// One line of work with its runs.
#[derive(Deserialize, Serialize)]
pub(crate) struct Worked {
    /// The name that selects it.
    pub(crate) name: String,
    /// The heading in the report.
    pub(crate) title: String,
    /// The runs in the order of their execution.
    pub(crate) runs: Vec<Run>,
}

/// One run of one contender.
#[derive(Deserialize, Serialize)]
pub(crate) struct Run {
    /// The name of the contender.
    pub(crate) by: String,
    /// The number of the round, from 1.
    pub(crate) round: usize,
    /// The figures by name.
    pub(crate) figures: BTreeMap<String, f64>,
    /// The calls by verb and resource.
    pub(crate) calls: BTreeMap<String, f64>,
}

/// The contenders: the stored names and the displayed names.
const CONTENDERS: [(&str, &str); 5] = [
    ("ours", "this operator"),
    ("go-unlimited", "Go, unlimited"),
    ("go", "Go"),
    ("floor", "plain writer"),
    ("local-cluster", "local cluster"),
];

/// The figures in the order of display. Others follow them by their own names.
const FIGURES: [(&str, &str); 45] = [
    ("cpu", "operator CPU, s"),
    ("rss", "peak RSS, MiB"),
    ("rss_after", "RSS at the end, MiB"),
    ("memory_one", "RSS with one kind, MiB"),
    ("memory_all", "RSS with all kinds, MiB"),
    ("memory_kind", "of these, for each kind, MiB"),
    ("ready", "from start to ready, s"),
    ("pods_p50", "job to pod, p50, s"),
    ("pods_p99", "job to pod, p99, s"),
    ("making_p50", "job to its last pod, p50, s"),
    ("making_p99", "job to its last pod, p99, s"),
    ("pods_all", "until all pods exist, s"),
    ("pods_rate", "pods created per second"),
    ("making_alone", "small job alone, to its last pod, s"),
    ("making_beside", "small job beside, to its last pod, s"),
    ("making_large", "large job, to its last pod, s"),
    ("large_had", "pods of the large job at that time"),
    ("running_shown", "jobs that showed Running, %"),
    ("reported_p50", "job to Running, p50, s"),
    ("reported_p99", "job to Running, p99, s"),
    ("running_p50", "start of the last pod to Running, p50, s"),
    ("running_p99", "start of the last pod to Running, p99, s"),
    ("anew_p50", "killed worker to its next pod, p50, s"),
    ("anew_p99", "killed worker to its next pod, p99, s"),
    ("end_p50", "last pod's end to Succeeded, p50, s"),
    ("end_p99", "last pod's end to Succeeded, p99, s"),
    ("next_p50", "end of a job to the last pod of the next, p50, s"),
    ("next_p99", "end of a job to the last pod of the next, p99, s"),
    ("created", "until all jobs are created, s"),
    ("done", "until all jobs have succeeded, s"),
    ("all_cpu", "CPU of API server, store, operator and node, s"),
    ("all_rss", "peak RSS of these, MiB"),
    ("calls", "calls"),
    ("status_writes", "of these, writes of a status"),
    ("events", "events, not in these calls"),
    ("received", "received, MiB"),
    ("sent", "sent, MiB"),
    ("connections", "connections made"),
    ("server_cpu", "API server CPU, s"),
    ("etcd_cpu", "etcd CPU, s"),
    ("driver_cpu", "driver CPU, s"),
    ("seconds", "measured for, s"),
    ("call_mean", "a call, mean, ms"),
    ("call_p50", "a call, p50, ms"),
    ("call_p99", "a call, p99, ms"),
];

/// Returns a heading and two tables for each line of work: figures, and calls.
pub(crate) fn tables(results: &Results) -> String {
    results.works.iter().map(section).collect()
}

fn section(work: &Worked) -> String {
    let rounds = work.runs.iter().map(|run| run.round).max().unwrap_or_default();
    let times = if rounds == 1 {
        "one round".to_owned()
    } else {
        format!("{rounds} rounds")
    };
    let mut text = format!("## {}\n\n`--work {}`, {times}.\n\n", work.title, work.name);
    let shown = FIGURES.map(|(name, title)| (name, title.to_owned()));
    let named: std::collections::BTreeSet<&String> =
        work.runs.iter().flat_map(|run| run.figures.keys()).collect();
    let is_titled = |name: &str| FIGURES.iter().any(|(titled, _)| *titled == name);
    let others = named.into_iter().filter(|name| !is_titled(name));
    let others = others.map(|name| (&**name, name.clone()));
    let shown: Vec<_> = shown.into_iter().chain(others).collect();
    text += &table(work, "figure", &shown, |run| &run.figures);
    let calls: std::collections::BTreeSet<&String> =
        work.runs.iter().flat_map(|run| run.calls.keys()).collect();
    let calls: Vec<_> = calls.into_iter().map(|name| (&**name, name.clone())).collect();
    if !calls.is_empty() {
        text += &format!("\n{}", table(work, "calls", &calls, |run| &run.calls));
    }
    text + "\n"
}

/// Returns a table with one row for each figure that a contender has and one column for each contender. Further
/// columns give this operator's figure as a fraction of another contender's.
fn table(
    work: &Worked,
    head: &str,
    rows: &[(&str, String)],
    values: fn(&Run) -> &BTreeMap<String, f64>,
) -> String {
    let is_there = |by: &str| work.runs.iter().any(|run| run.by == by);
    let by: Vec<_> = CONTENDERS.into_iter().filter(|(by, _)| is_there(by)).collect();
    let others: Vec<_> = by
        .iter()
        .filter(|(by, _)| is_there("ours") && ["go-unlimited", "floor", "local-cluster"].contains(by))
        .collect();
    let titles = by.iter().map(|(_, title)| (*title).to_owned());
    let titles = titles.chain(others.iter().map(|(_, title)| format!("of {title}")));
    let titles: Vec<_> = titles.collect();
    let mut text = format!(
        "| {head} | {} |\n|---{}|\n",
        titles.join(" | "),
        "|--:".repeat(titles.len())
    );
    for (name, title) in rows {
        let of = |by: &str| {
            let runs = work.runs.iter().filter(|run| run.by == by);
            let mut all: Vec<f64> = runs.filter_map(|run| values(run).get(*name).copied()).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let cells: Vec<String> = by.iter().map(|(by, _)| spread(&of(by))).collect();
        if cells.iter().all(String::is_empty) {
            continue;
        }
        let parts = others
            .iter()
            .map(|(by, _)| part(middle(&of("ours")), middle(&of(by))));
        let cells: Vec<String> = cells.into_iter().chain(parts).collect();
        text += &format!("| {title} | {} |\n", cells.join(" | "));
    }
    text
}

/// Returns the median of the rounds and the range.
fn spread(values: &[f64]) -> String {
    match (middle(values), values) {
        (Some(middle), [first, .., last]) => {
            format!("{} ({}–{})", number(middle), number(*first), number(*last))
        }
        (Some(middle), _) => number(middle),
        (None, _) => String::new(),
    }
}

/// Returns the median of sorted values. For an even number it is the mean of the two in the middle.
fn middle(values: &[f64]) -> Option<f64> {
    let (low, high) = (
        values.get(values.len().checked_sub(1)? / 2)?,
        values.get(values.len() / 2)?,
    );
    Some(f64::midpoint(*low, *high))
}

fn part(ours: Option<f64>, theirs: Option<f64>) -> String {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if theirs > 0.0 => format!("{:.2}", ours / theirs),
        _ => String::new(),
    }
}

/// Returns a number with its significant digits.
fn number(value: f64) -> String {
    match value {
        value if value.fract() == 0.0 => format!("{value:.0}"),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
