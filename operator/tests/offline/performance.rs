//! docs/maintainers/performance.md and its pictures, and the table of docs/users/sizing.md, must match
//! docs/maintainers/performance.json, the figures of a whole run of `make bench`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

#[derive(Deserialize)]
struct Results {
    cores: usize,
    in_flight: usize,
    works: Vec<Work>,
}

#[derive(Deserialize)]
struct Work {
    name: String,
    title: String,
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    by: String,
    figures: BTreeMap<String, f64>,
}

const OURS: &str = "ours";
const GO: &str = "go-unlimited";
const PLAIN_WRITER: &str = "floor";
const LOCAL_CLUSTER: &str = "local-cluster";

/// The rows of the table: the work, its figure, and the words for the figure.
const ROWS: [(&str, &str, &str); 12] = [
    ("burst", "cpu", "CPU of the operator, s"),
    ("many", "cpu", "CPU of the operator, s"),
    ("many", "rss", "peak memory, MiB"),
    (
        "many",
        "end_p50",
        "from the end of the last pod to Succeeded, median, s",
    ),
    ("many", "end_p99", "the same, 99th percentile, s"),
    ("many", "done", "until all jobs have succeeded, s"),
    ("large", "pods_all", "until all pods exist, s"),
    ("compact", "pods_all", "until all pods exist, s"),
    ("mpi", "done", "until all jobs have succeeded, s"),
    (
        "churn",
        "anew_p50",
        "from the kill of a worker to its next pod, median, s",
    ),
    ("restart", "ready", "from start to ready, s"),
    ("idle", "cpu", "CPU of the operator, s"),
];

/// The rows of the table about sizes: the work, and its jobs and pods.
const SIZES: [(&str, &str); 7] = [
    ("kinds", "none"),
    ("foreign", "none, and 5,000 pods of others"),
    ("burst", "100 jobs, 500 pods"),
    ("many", "1,000 jobs, 5,000 pods"),
    ("large", "1 job, 1,002 pods"),
    ("compact", "1 job, 1,002 pods, layout Compact"),
    ("idle", "1,000 finished jobs, for 10 minutes"),
];

/// The rows of the table about the local cluster: the figure, and the words for it.
const LOCAL_ROWS: [(&str, &str); 5] = [
    ("ready", "from nothing to a cluster that accepts jobs, s"),
    ("created", "until all jobs are created, s"),
    ("done", "until all jobs have succeeded, s"),
    (
        "all_cpu",
        "CPU of all programs, without the jobs' own processes, s",
    ),
    ("all_rss", "peak memory of all programs, MiB"),
];

/// The works that differ only in their number of jobs.
const SERIES: [(&str, f64); 5] = [
    ("burst-10", 10.0),
    ("burst-30", 30.0),
    ("burst", 100.0),
    ("burst-300", 300.0),
    ("many", 1_000.0),
];

/// The pictures: the file, the figure, the title, and the label of the vertical axis.
const PICTURES: [(&str, &str, &str, &str); 3] = [
    (
        "performance-cpu.svg",
        "cpu",
        "CPU of the operator",
        "CPU time, seconds",
    ),
    (
        "performance-memory.svg",
        "rss",
        "Peak memory of the operator",
        "resident memory, MiB",
    ),
    (
        "performance-delay.svg",
        "end_p50",
        "Time from the end of the last pod until the client sees Succeeded",
        "median, seconds",
    ),
];

/// The ways in which the API server is away, with words for what its clients see.
const ABSENCES: [(&str, &str); 6] = [
    ("refused", "refused"),
    ("closed", "closed after it was accepted"),
    ("reset", "reset"),
    ("silent", "open, and no answer comes"),
    ("garbled", "answered with something else than TLS"),
    ("unavailable", "answered with 503 by a proxy"),
];

impl Results {
    fn work(&self, name: &str) -> Option<&Work> {
        self.works.iter().find(|work| work.name == name)
    }

    /// Returns the median of the rounds.
    fn figure(&self, work: &str, by: &str, name: &str) -> Option<f64> {
        let runs = self.work(work)?.runs.iter().filter(|run| run.by == by);
        let mut values: Vec<f64> = runs.filter_map(|run| run.figures.get(name).copied()).collect();
        values.sort_by(f64::total_cmp);
        let low = values.get(values.len().checked_sub(1)? / 2)?;
        Some(f64::midpoint(*low, *values.get(values.len() / 2)?))
    }

    fn points(&self, by: &str, figure: &str) -> Vec<(f64, f64)> {
        let works = SERIES.iter();
        works
            .filter_map(|(work, jobs)| Some((*jobs, self.figure(work, by, figure)?)))
            .collect()
    }

    fn table(&self) -> String {
        let mut text =
            "| work | figure | this operator | Go, unlimited | ratio | plain writer |\n".to_owned();
        text += "|---|---|--:|--:|--:|--:|\n";
        let mut last = "";
        for (work, figure, words) in ROWS {
            let title = &*self.work(work).unwrap().title;
            let title = if work == last { "" } else { title };
            last = work;
            let [ours, go, plain] = [OURS, GO, PLAIN_WRITER].map(|by| self.figure(work, by, figure));
            let ratio = match (ours, go) {
                (Some(ours), Some(go)) if ours / go >= 0.005 => format!("{:.2}", ours / go),
                (Some(_), Some(_)) => "< 0.01".to_owned(),
                _ => String::new(),
            };
            let [ours, go, plain] = [ours, go, plain].map(|value| value.map(number).unwrap_or_default());
            writeln!(text, "| {title} | {words} | {ours} | {go} | {ratio} | {plain} |").unwrap();
        }
        text
    }

    fn local_cluster(&self) -> String {
        let mut text =
            "| figure | `local cluster` | API server, operator, `local node` | ratio |\n".to_owned();
        text += "|---|--:|--:|--:|\n";
        for (figure, words) in LOCAL_ROWS {
            let [local, real] = [LOCAL_CLUSTER, OURS].map(|by| self.figure("processes", by, figure).unwrap());
            let [local, real, ratio] = [local, real, local / real].map(number);
            writeln!(text, "| {words} | {local} | {real} | {ratio} |").unwrap();
        }
        text
    }

    /// Returns a row for each way in which the API server was away.
    fn absences(&self) -> String {
        let mut text = "| the connection is | connections in the worst second | log lines in the worst second | from the \
                        return to the first pod, s | from the return to the last end, s |\n"
            .to_owned();
        text += "|---|--:|--:|--:|--:|\n";
        for (way, words) in ABSENCES {
            let figures = [
                "connections in the worst second",
                "log lines in the worst second",
                "from its return to the first pod, s",
                "from its return to the last end, s",
            ];
            let cell = |name| number(self.figure("away", OURS, &format!("{way}: {name}")).unwrap());
            writeln!(text, "| {words} | {} |", figures.map(cell).join(" | ")).unwrap();
        }
        text
    }

    fn sizes(&self) -> String {
        let mut text =
            "| jobs and pods | peak memory, MiB | CPU from their creation to their end, s |\n".to_owned();
        text += "|---|--:|--:|\n";
        for (work, words) in SIZES {
            let [memory, cpu] = ["rss", "cpu"].map(|figure| self.figure(work, OURS, figure).unwrap());
            writeln!(text, "| {words} | {} | {} |", number(memory), number(cpu)).unwrap();
        }
        text
    }

    /// Returns the page about sizes with a new table.
    fn sizing(&self, page: &str) -> String {
        let (before, rest) = page.split_once("<!-- sizes -->\n").unwrap();
        let (_, after) = rest.split_once("<!-- end of sizes -->").unwrap();
        format!(
            "{before}<!-- sizes -->\n{}<!-- end of sizes -->{after}",
            self.sizes()
        )
    }

    fn picture(&self, (_, figure, title, unit): (&str, &str, &str, &str)) -> String {
        chart(
            title,
            unit,
            &[
                Line {
                    label: "Go operator, unlimited",
                    color: "#c2410c",
                    dash: "7 4",
                    points: self.points(GO, figure),
                },
                Line {
                    label: "this operator",
                    color: "#1d4ed8",
                    dash: "none",
                    points: self.points(OURS, figure),
                },
            ],
        )
    }

    fn page(&self) -> String {
        let (cores, in_flight) = (self.cores, self.in_flight);
        let counts: Vec<String> = self
            .points(OURS, "cpu")
            .iter()
            .map(|(jobs, _)| format!("{jobs}"))
            .collect();
        let counts = counts.join(", ");
        let table = self.table();
        let (local_cluster, processes) = (self.local_cluster(), &self.work("processes").unwrap().title);
        let pictures: Vec<String> = PICTURES
            .iter()
            .map(|(file, _, title, _)| format!("![{title}, by the number of jobs]({file})\n"))
            .collect();
        let pictures = pictures.join("\n");
        let (absences, away) = (self.absences(), &self.work("away").unwrap().title);
        let lost = number(
            self.figure("away", OURS, "events of ended jobs that were lost")
                .unwrap(),
        );
        let quota = &self.work("quota").unwrap().title;
        let [all, median, worst] = ["done", "next_p50", "next_p99"]
            .map(|figure| number(self.figure("quota", OURS, figure).unwrap()));
        format!(
            "# Performance

This page is for people who choose between this operator and the Go operator, and for maintainers. After it you can
compare the cost and the speed of the two, and measure them again.

<!-- `make docs` writes this page and its pictures from performance.json, which `make bench` writes. -->

## What was measured

Three programs do the same work in turn: they create the services and pods of jobs, and report the states of the jobs.

| program | what it is |
|---|---|
| this operator | `training-operator run`, the program of the image |
| Go, unlimited | the Kubeflow training operator v1.8.1 without its client's limit of 20 calls per second, and with 8 jobs reconciled at a time |
| plain writer | a program that only sends the necessary calls, {in_flight} at a time, and has no watch: the least that the work costs |

Each run has a new API server with its own etcd, on one machine of {cores} cores, which all programs share. A driver
creates the jobs and plays the kubelets. It also watches the jobs as a client does: a state counts as seen when its
condition arrives in that watch. CPU and memory are those that Linux reports for the process.

## Figures

A figure is the median of its rounds. The work of 600 s without changes was measured with an earlier build. The ratio is this operator's figure divided by that of the Go operator; it depends
less on the machine than the figures do. An empty cell was not measured, or the program cannot do
the work.

{table}
[performance.json](performance.json) has all works, rounds and figures: also calls by verb and resource, bytes,
connections, percentiles, and the CPU of the API server and of etcd.

## Growth with the number of jobs

All jobs are created at once. They are MXJobs of 5 pods that train for 1 s. Sizes measured so
far: {counts} jobs.

{pictures}
## When the API server is away

The work is: {away}. A relay between the operator and the API server does it in six ways. Events of ended jobs that were
lost: {lost}.

{absences}
## Under a quota

The work is: {quota}. All jobs have succeeded after {all} s. From the end of a job until another one has all of its
pods it takes {median} s, and {worst} s at the 99th percentile.

## The local cluster

`training-operator local cluster` beside a real API server with its etcd, the operator and `local node`. The work is
{processes}; they run `true`. The
ratio is the figure of the local cluster divided by the other.

{local_cluster}
## Measure again

    make bench                  # all works, and this page: an hour and a half
    make bench QUICK=1          # smaller works, one round each, no page: under five minutes
    make bench-load JOBS=300    # one burst of a size that you choose

The programs of the benchmark are in [bench](../../bench).

## Limits

- The kubelets are played, so times exclude the scheduling of pods, the pull of images and the start of containers.
- Contenders, API server, etcd and driver share the cores. With a control plane of its own an operator is faster; the
  ratio of CPU times stays.
- Most works were run once. Differences below about 10 % are noise.
- The Go operator as released sends at most 20 calls per second, so its bursts take longer than those shown here.
- The API server is at most as busy as one machine allows. The figures show no cluster with thousands of nodes.
"
        )
    }
}

struct Line {
    label: &'static str,
    color: &'static str,
    dash: &'static str,
    points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = WIDTH - 70.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = HEIGHT - 56.0;

/// Draws lines over the number of jobs. Both axes are linear and begin at 0. The background is white, so that the
/// picture can be read on a dark page too.
fn chart(title: &str, unit: &str, lines: &[Line]) -> String {
    let all = || lines.iter().flat_map(|line| &line.points);
    let x_ticks = ticks(all().map(|point| point.0).fold(0.0, f64::max));
    let y_ticks = ticks(all().map(|point| point.1).fold(0.0, f64::max));
    let x = |jobs: f64| LEFT + jobs / x_ticks.last().unwrap() * (RIGHT - LEFT);
    let y = |value: f64| BOTTOM - value / y_ticks.last().unwrap() * (BOTTOM - TOP);
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" font-size="13" fill="#24292f">
<title>{title}, by the number of jobs</title>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<text x="{LEFT}" y="26" font-size="16" font-weight="bold">{title}</text>
"##
    );
    for (tick, at) in y_ticks.iter().map(|tick| (tick, y(*tick))) {
        let (before, middle) = (LEFT - 8.0, at + 4.5);
        svg += &format!(
            r##"<line x1="{LEFT}" x2="{RIGHT}" y1="{at:.1}" y2="{at:.1}" stroke="#d0d7de"/>
<text x="{before}" y="{middle:.1}" text-anchor="end">{}</text>
"##,
            short(*tick)
        );
    }
    for (tick, at) in x_ticks.iter().map(|tick| (tick, x(*tick))) {
        let (end, below) = (BOTTOM + 5.0, BOTTOM + 21.0);
        svg += &format!(
            r##"<line x1="{at:.1}" x2="{at:.1}" y1="{BOTTOM}" y2="{end}" stroke="#57606a"/>
<text x="{at:.1}" y="{below}" text-anchor="middle">{}</text>
"##,
            short(*tick)
        );
    }
    let (middle_x, middle_y, last) = (
        f64::midpoint(LEFT, RIGHT),
        f64::midpoint(TOP, BOTTOM),
        HEIGHT - 12.0,
    );
    svg += &format!(
        r##"<line x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}" stroke="#57606a"/>
<text x="{middle_x}" y="{last}" text-anchor="middle">number of jobs, created at once</text>
<text transform="translate(20 {middle_y}) rotate(-90)" text-anchor="middle">{unit}</text>
"##
    );
    for (number, line) in lines.iter().enumerate() {
        svg += &drawn(line, number, &x, &y);
    }
    svg + "</svg>\n"
}

/// Draws one line with its points, the value of its last point, and its entry in the legend.
fn drawn(line: &Line, number: usize, x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64) -> String {
    let Line {
        label,
        color,
        dash,
        points,
    } = line;
    let corners: Vec<String> = points
        .iter()
        .map(|(jobs, value)| format!("{:.1},{:.1}", x(*jobs), y(*value)))
        .collect();
    let mut svg = format!(
        r#"<polyline points="{}" fill="none" stroke="{color}" stroke-width="2.5" stroke-dasharray="{dash}"/>
"#,
        corners.join(" ")
    );
    for (jobs, value) in points {
        svg += &format!(
            r#"<circle cx="{:.1}" cy="{:.1}" r="4" fill="{color}"/>
"#,
            x(*jobs),
            y(*value)
        );
    }
    if let Some((jobs, value)) = points.last() {
        svg += &format!(
            r#"<text x="{:.1}" y="{:.1}" fill="{color}" font-weight="bold">{}</text>
"#,
            x(*jobs) + 9.0,
            y(*value) + 4.5,
            self::number(*value)
        );
    }
    let begin = LEFT + 220.0 * number as f64;
    let (end, words) = (begin + 34.0, begin + 42.0);
    svg + &format!(
        r#"<line x1="{begin}" x2="{end}" y1="50" y2="50" stroke="{color}" stroke-width="2.5" stroke-dasharray="{dash}"/>
<text x="{words}" y="54.5">{label}</text>
"#
    )
}

/// Returns the marks of an axis from 0 to at least this value: at most six, at 1, 2 or 5 times a power of ten.
fn ticks(most: f64) -> Vec<f64> {
    let power = 10_f64.powf((most / 5.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let step = steps.into_iter().find(|step| step * 5.0 >= most).unwrap();
    let count = (most / step).ceil() as u32;
    (0..=count).map(|n| f64::from(n) * step).collect()
}

fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns a number with three significant digits, or two decimals if it is small.
fn number(value: f64) -> String {
    match value {
        value if value.fract() == 0.0 || value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// The page about sizes, from the folder of the figures.
const SIZING: &str = "../users/sizing.md";

fn folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    root.join("docs/maintainers")
}

#[test]
fn the_page_and_its_pictures_match_the_figures() {
    let text = fs::read_to_string(folder().join("performance.json")).unwrap();
    let results: Results = serde_json::from_str(&text).unwrap();
    let pictures = PICTURES.map(|picture| (picture.0, results.picture(picture)));
    let sizing = fs::read_to_string(folder().join(SIZING)).unwrap();
    let pages = [
        ("performance.md", results.page()),
        (SIZING, results.sizing(&sizing)),
    ];
    let files = pictures.into_iter().chain(pages);
    for (name, content) in files {
        let file = folder().join(name);
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&file, &content).unwrap();
        } else {
            let stored = fs::read_to_string(&file).unwrap_or_default();
            assert!(
                stored == content,
                "docs/maintainers/{name} is stale; run: make docs"
            );
        }
    }
}

#[test]
fn axes_end_at_or_above_the_highest_point() {
    assert_eq!(ticks(1_000.0), [0.0, 200.0, 400.0, 600.0, 800.0, 1_000.0]);
    assert_eq!(ticks(19.6), [0.0, 5.0, 10.0, 15.0, 20.0]);
    assert!(*ticks(0.31).last().unwrap() >= 0.31);
}
