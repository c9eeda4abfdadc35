//! Checks `manifests/monitoring` with the programs that read it: the alerts in Prometheus's `promtool`, the
//! objects in an API server with the definitions of the Prometheus operator, and the dashboard from Grafana's SDK.
//! `make test-alerts` builds these and runs this test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::manifests::{build, find};
use training_operator_testing::operator::Operator;
use training_operator_testing::program::{empty_directory, root};

fn promtool(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(root().join("target/prometheus/promtool"))
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It reads all before it prints.
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn expect_success(output: &Output) {
    let (text, errors) = (&output.stdout, &output.stderr);
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(text),
        String::from_utf8_lossy(errors)
    );
    assert!(output.status.success(), "{text}");
}

/// The rules of the PrometheusRule in a file of Prometheus, which the cases name.
static RULES: LazyLock<PathBuf> = LazyLock::new(|| {
    let text = fs::read_to_string(root().join("manifests/monitoring/alerts.yaml")).unwrap();
    let rule: Value = serde_saphyr::from_str(&text).unwrap();
    let path = root().join("target/prometheus/rules.yaml");
    fs::write(&path, rule["spec"].to_string()).unwrap();
    path
});

#[test]
fn every_alert_fires_and_is_silent_as_its_cases_require() {
    let check = ["check", "rules", "--lint-fatal", RULES.to_str().unwrap()];
    expect_success(&promtool(&check, ""));
    expect_success(&promtool(&["test", "rules", "tests/prometheus/alerts.yaml"], ""));
}

/// Returns the queries of the dashboard, with values for Grafana's variables.
fn dashboard_queries() -> Vec<String> {
    let text = fs::read_to_string(root().join("manifests/monitoring/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries: Vec<String> = targets
        .map(|target| {
            let query = target["expr"].as_str().unwrap();
            let query = query.replace("$__rate_interval", "5m");
            ["$operator", "$namespace", "$kind"]
                .iter()
                .fold(query, |query, variable| query.replace(variable, ".*"))
        })
        .collect();
    assert!(
        queries.len() > 40 && !queries.concat().contains('$'),
        "{queries:?}"
    );
    queries
}

/// Prometheus parses each query as the expression of a rule.
#[test]
fn prometheus_reads_every_query_of_the_dashboard() {
    let as_rules = |queries: Vec<String>| {
        let rule = |(n, query): (usize, &String)| json!({"record": format!("query:{n}"), "expr": query});
        let rules: Vec<Value> = queries.iter().enumerate().map(rule).collect();
        json!({"groups": [{"name": "dashboard", "rules": rules}]}).to_string()
    };
    expect_success(&promtool(&["check", "rules"], &as_rules(dashboard_queries())));
    let broken = promtool(&["check", "rules"], &as_rules(vec!["sum(a".to_owned()]));
    assert!(!broken.status.success(), "{broken:?}");
}

#[test]
fn the_dashboard_is_that_of_its_declaration() {
    let made = Command::new(root().join(".venv/dashboard/bin/python"))
        .args(["-I", "tools/dashboard.py"])
        .current_dir(root())
        .output()
        .unwrap();
    expect_success(&made);
    let kept = fs::read(root().join("manifests/monitoring/dashboard.json")).unwrap();
    assert!(
        made.stdout == kept,
        "manifests/monitoring/dashboard.json is stale; run: make dashboard"
    );
}

#[tokio::test]
async fn the_component_adds_objects_that_the_prometheus_operators_definitions_accept() {
    let cluster = ControlPlane::shared().await;
    for name in ["prometheusrules", "podmonitors"] {
        let file = root().join(format!("target/prometheus/{name}.yaml"));
        let apply = ["apply", "--server-side", "-f", file.to_str().unwrap()];
        cluster.kubectl(&apply).await.success();
        cluster.served(&format!("{name}.monitoring.coreos.com")).await;
    }
    let namespace = cluster.namespace("monitored").await;
    let with = build(cluster, "namespaced", &["monitoring"], &namespace).await;
    let without = build(cluster, "namespaced", &[], &namespace).await;
    assert_eq!(with.len(), without.len() + 3);
    let strict = [
        "create",
        "--namespace",
        &*namespace,
        "--validate=strict",
        "-f",
        "-",
    ];
    for (kind, name) in [
        ("PrometheusRule", "training-operator"),
        ("PodMonitor", "training-operator"),
        ("ConfigMap", "training-operator-dashboard"),
    ] {
        let object = find(&with, kind, name);
        assert_eq!(object["metadata"]["namespace"], *namespace, "{kind}");
        cluster
            .kubectl_with_input(&strict, &object.to_string())
            .await
            .success();
        let mut wrong = object.clone();
        wrong["metadata"]["name"] = json!("wrong");
        wrong["spec"]["grups"] = json!([]);
        wrong["date"] = json!({});
        let refused = cluster.kubectl_with_input(&strict, &wrong.to_string()).await;
        assert!(refused.stderr.contains("unknown field"), "{}", refused.stderr);
    }
    // The PodMonitor selects the operator's pods and a port that they have.
    let deployment = find(&with, "Deployment", "training-operator");
    let monitor = &find(&with, "PodMonitor", "training-operator")["spec"];
    assert_eq!(
        monitor["selector"]["matchLabels"],
        deployment["spec"]["selector"]["matchLabels"]
    );
    let ports = &deployment["spec"]["template"]["spec"]["containers"][0]["ports"];
    let port = &monitor["podMetricsEndpoints"][0]["port"];
    assert!(
        ports.as_array().unwrap().iter().any(|p| p["name"] == *port),
        "{ports}"
    );
    let dashboard = find(&with, "ConfigMap", "training-operator-dashboard");
    assert_eq!(dashboard["metadata"]["labels"]["grafana_dashboard"], "1");
    let board: Value =
        serde_json::from_str(dashboard["data"]["training-operator.json"].as_str().unwrap()).unwrap();
    assert_eq!(board["uid"], "training-operator");
}

/// Returns the metrics page of an operator after it has run a job of one worker.
async fn page() -> String {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("scraped").await;
    let own = format!("--namespace={namespace}");
    let operator = Operator::start(cluster, &cluster.kubeconfig_in(&namespace), &[&own]);
    operator.ready().await;
    let template = json!({"spec": {"containers": [{"name": "jax", "image": "example.com/i"}]}});
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "JAXJob", "metadata": {"name": "a"},
        "spec": {"jaxReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}},
    });
    cluster.create(&namespace, &job).await;
    let kubelet = cluster.kubelet(&namespace).await;
    let pod = "a-worker-0";
    cluster.wait::<Pod>(&namespace, pod, |pod| pod.is_some()).await;
    let labels = format!("{{job_namespace=\"{namespace}\",framework=\"jax\",state");
    kubelet.runs(pod).await;
    operator
        .wait_for_metric(&format!("training_operator_jobs{labels}=\"Running\"}}"), 1.0)
        .await;
    kubelet.succeeds(pod).await;
    operator
        .wait_for_metric(&format!("training_operator_jobs{labels}=\"Succeeded\"}}"), 1.0)
        .await;
    let (code, page) = operator.page("metrics", "/metrics").await;
    assert_eq!(code, 200);
    page
}

/// Runs a test of `promtool` in which all series of a page keep their values for two hours. It expects these values of
/// expressions after that time.
fn expect_after_two_hours(name: &str, page: &str, expected: &[(String, Value)]) {
    let target = "namespace=\"kubeflow\",pod=\"a\",job=\"operator\",instance=\"a\"";
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let series: Vec<Value> = samples
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let series = match series.strip_suffix('}') {
                Some(labelled) => format!("{labelled},{target}}}"),
                None => format!("{series}{{{target}}}"),
            };
            json!({"series": series, "values": format!("{value}x120")})
        })
        .collect();
    let expressions: Vec<Value> = expected
        .iter()
        .map(|(expr, samples)| json!({"expr": expr, "eval_time": "2h", "exp_samples": samples}))
        .collect();
    let test = json!({
        "rule_files": [&*RULES],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": expressions}],
    });
    let file = empty_directory(name).join("test.yaml");
    fs::write(&file, test.to_string()).unwrap();
    expect_success(&promtool(&["test", "rules", file.to_str().unwrap()], ""));
}

/// No alert is mistaken about an operator that works.
#[tokio::test]
async fn an_operator_that_works_fires_no_alert() {
    let page = page().await;
    expect_success(&promtool(&["check", "metrics"], &page));
    let alerts = |samples: Value| [("count by (alertname) (ALERTS)".to_owned(), samples)];
    expect_after_two_hours("alerts-of-a-leader", &page, &alerts(json!([])));
    let standby = page.replace("training_operator_leader 1", "training_operator_leader 0");
    let fires = json!([{"labels": "{alertname=\"TrainingOperatorNoLeader\"}", "value": 1}]);
    expect_after_two_hours("alerts-of-a-standby", &standby, &alerts(fires));
}

/// A query whose labels do not fit together is valid and has no values.
#[tokio::test]
async fn every_query_of_the_dashboard_has_values_after_a_job() {
    let has_values = json!([{"labels": "{}", "value": 1}]);
    let expected: Vec<_> = dashboard_queries()
        .into_iter()
        .map(|query| (format!("count({query}) > bool 0"), has_values.clone()))
        .collect();
    expect_after_two_hours("values-of-the-dashboard", &page().await, &expected);
}
