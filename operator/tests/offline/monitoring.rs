//! The alerts and the dashboard of `manifests/monitoring` fit the metrics that the operator exports, and each alert has a
//! runbook and cases for `promtool`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use training_job_controller::process::{self, Program};
use training_operator_testing::program::root;

use crate::promql::names;

/// Labels that Prometheus and its operator add to each series.
const TARGET_LABELS: [&str; 4] = ["namespace", "pod", "job", "instance"];

const RUNBOOKS: &str = "docs/users/runbooks";

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&read(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn alerts() -> Vec<Value> {
    let rule = yaml("manifests/monitoring/alerts.yaml");
    let groups = rule["spec"]["groups"].as_array().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    rules.cloned().collect()
}

fn name(alert: &Value) -> &str {
    alert["alert"].as_str().unwrap()
}

fn dashboard() -> Value {
    serde_json::from_str(&read("manifests/monitoring/dashboard.json")).unwrap()
}

/// Returns the panels with queries.
fn panels(dashboard: &Value) -> Vec<&Value> {
    let panels = dashboard["panels"].as_array().unwrap();
    panels.iter().filter(|panel| panel["type"] != "row").collect()
}

/// Returns the queries of the dashboard's panels and variables. That of a variable is changed into one of Prometheus.
fn dashboard_queries(dashboard: &Value) -> Vec<String> {
    let targets = panels(dashboard)
        .into_iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap().to_owned());
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let values = variables.iter().filter_map(|variable| {
        let query = variable["query"]["query"]
            .as_str()?
            .strip_prefix("label_values(")?;
        let (metric, label) = query.strip_suffix(')')?.split_once(", ")?;
        Some(format!("sum by ({label}) ({metric})"))
    });
    targets.chain(values).collect()
}

/// The exported metrics with their labels, as queries name them.
struct Exported {
    labels: BTreeMap<String, BTreeSet<String>>,
    /// The values of labels that docs/users/metrics.md lists.
    values: BTreeMap<String, BTreeSet<String>>,
}

impl Exported {
    fn read() -> Self {
        let mut labels = BTreeMap::new();
        for metric in process::metric_descriptions(&Program::new("training-operator")) {
            let own: BTreeSet<String> = metric.labels.into_iter().collect();
            if metric.kind == "histogram" {
                for part in ["sum", "count"] {
                    labels.insert(format!("{}_{part}", metric.name), own.clone());
                }
                let of_bucket = own.into_iter().chain(["le".to_owned()]).collect();
                labels.insert(format!("{}_bucket", metric.name), of_bucket);
            } else {
                labels.insert(metric.name, own);
            }
        }
        let page = read("docs/users/metrics.md");
        let (_, table) = page.split_once("| label | values |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with("| `"));
        let quoted = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let values = rows.filter_map(|row| {
            let (label, values) = row.strip_prefix("| `")?.split_once("` | ")?;
            Some((label.to_owned(), quoted(values)))
        });
        Self {
            labels,
            values: values.collect(),
        }
    }

    /// Returns the names in a query that no series has.
    fn unknown(&self, query: &str) -> Vec<String> {
        let found = names(query);
        let mut unknown = Vec::new();
        let mut known: BTreeSet<&str> = TARGET_LABELS.into();
        for selector in &found.selectors {
            let metric = &selector.metric;
            let Some(labels) = self.labels.get(metric) else {
                unknown.push(metric.clone());
                continue;
            };
            known.extend(labels.iter().map(String::as_str));
            for (label, value) in &selector.matchers {
                if !labels.contains(label) && !TARGET_LABELS.contains(&&**label) {
                    unknown.push(format!("{metric}{{{label}}}"));
                }
                let listed = self.values.get(label).filter(|_| !value.starts_with('$'));
                let is_listed = |value: &&str| {
                    let is_pattern = value.contains('.') || value.parse::<u16>().is_ok();
                    is_pattern || listed.is_none_or(|listed| listed.contains(*value))
                };
                let missing = value.split('|').filter(|value| !is_listed(value));
                unknown.extend(missing.map(|value| format!("{metric}{{{label}=\"{value}\"}}")));
            }
        }
        let labels = found.grouping.iter().filter(|label| !known.contains(&***label));
        unknown.extend(labels.cloned());
        unknown
    }
}

#[test]
fn every_query_names_exported_metrics_and_labels() {
    let exported = Exported::read();
    let alerts = alerts();
    let expressions = alerts
        .iter()
        .map(|alert| alert["expr"].as_str().unwrap().to_owned());
    let queries: Vec<String> = expressions.chain(dashboard_queries(&dashboard())).collect();
    assert!(queries.len() > 50, "{}", queries.len());
    for query in queries {
        let unknown = exported.unknown(&query);
        assert!(unknown.is_empty(), "{unknown:?} in {query}");
    }
    for (query, unknown) in [
        ("training_operator_job", "training_operator_job"),
        (
            "training_operator_leader{framework=\"mxnet\"}",
            "training_operator_leader{framework}",
        ),
        ("sum by (state) (training_operator_queue_depth)", "state"),
        (
            "training_operator_jobs{state=~\"Running|Ended\"}",
            "training_operator_jobs{state=\"Ended\"}",
        ),
    ] {
        assert_eq!(exported.unknown(query), [unknown], "{query}");
    }
}

#[test]
fn the_dashboard_shows_every_metric_from_the_chosen_source() {
    let dashboard = dashboard();
    let queries = dashboard_queries(&dashboard);
    let shown: BTreeSet<String> = queries
        .iter()
        .flat_map(|query| names(query).selectors)
        .map(|selector| selector.metric)
        .collect();
    for metric in process::metric_descriptions(&Program::new("training-operator")) {
        let parts = ["", "_bucket", "_sum", "_count"].map(|part| format!("{}{part}", metric.name));
        let is_it = |shown: &String| parts.contains(shown);
        assert!(shown.iter().any(is_it), "no panel shows {}", metric.name);
    }
    for panel in panels(&dashboard) {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let names: Vec<_> = variables.iter().map(|v| v["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["datasource", "operator", "namespace", "kind"]);
}

#[test]
fn every_alert_has_a_severity_texts_and_a_runbook() {
    let alerts = alerts();
    for alert in &alerts {
        let name = name(alert);
        assert!(alert["for"].as_str().is_some(), "{name}");
        let severity = alert["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}");
        let notes = &alert["annotations"];
        for note in ["summary", "description"] {
            let text = notes[note].as_str().unwrap();
            assert!(text.ends_with('.'), "{name}: {note}: {text}");
        }
        let page = format!("{RUNBOOKS}/{name}.md");
        let url = format!("https://github.com/training-job/training-job/blob/main/{page}");
        assert_eq!(notes["runbook_url"], *url);
        let text = read(&page);
        let headings: Vec<_> = text.lines().filter(|line| line.starts_with('#')).collect();
        let expected = [
            &*format!("# {name}"),
            "## Meaning",
            "## Impact",
            "## Check",
            "## Remedy",
        ];
        assert_eq!(headings, expected, "{page}");
    }
    let pages = fs::read_dir(root().join(RUNBOOKS)).unwrap();
    let pages: BTreeSet<String> = pages
        .map(|page| page.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let expected = alerts.iter().map(|alert| format!("{}.md", name(alert)));
    assert_eq!(pages, expected.collect());
    // The overview of users has each with its severity.
    let overview = read("docs/users/metrics.md");
    for alert in &alerts {
        let (name, severity) = (name(alert), alert["labels"]["severity"].as_str().unwrap());
        let row = format!("| [{name}](runbooks/{name}.md) | {severity} | ");
        assert!(overview.contains(&row), "docs/users/metrics.md has no {row}");
    }
}

/// `make test-alerts` runs the cases.
#[test]
fn every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_silent() {
    let cases = yaml("tests/prometheus/alerts.yaml");
    let tests = cases["tests"].as_array().unwrap().iter();
    let cases: Vec<&Value> = tests
        .flat_map(|test| test["alert_rule_test"].as_array().unwrap())
        .collect();
    let of = |is_silent: bool| -> BTreeSet<&str> {
        let chosen = cases
            .iter()
            .filter(|case| case["exp_alerts"].as_array().unwrap().is_empty() == is_silent);
        chosen.map(|case| case["alertname"].as_str().unwrap()).collect()
    };
    let alerts = alerts();
    let names: BTreeSet<&str> = alerts.iter().map(name).collect();
    assert_eq!(of(true), names);
    assert_eq!(of(false), names);
}
