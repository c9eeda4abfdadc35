use prometheus_client::encoding::text::encode;
use serde_json::json;

use super::*;
use training_job::api::FailureRecord;

fn status(types: &[&str], restarts: i32) -> JobStatus {
    let conditions: Vec<_> = types
        .iter()
        .map(|t| json!({"type": t, "status": "True", "lastTransitionTime": "2026-01-01T00:00:07Z"}))
        .collect();
    serde_json::from_value(json!({
        "conditions": conditions,
        "restartCount": restarts,
        "startTime": "2026-01-01T00:00:00Z",
        "completionTime": "2026-01-01T00:01:40Z",
    }))
    .unwrap()
}

#[test]
fn a_job_that_reached_a_limit_counts_as_failed() {
    let metrics = Metrics::default();
    let mut failed = status(&["Created", "Failed"], 1);
    failed.failure = Some(FailureRecord {
        reason: "BackoffLimitExceeded".to_owned(),
        ..FailureRecord::default()
    });
    metrics.status_stored("any", "team", None, &status(&["Created", "Running"], 1), &failed);
    let mut registry = Registry::with_prefix("training_operator");
    metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let line = r#"training_operator_jobs_failed_total{job_namespace="team",framework="any"} 1"#;
    assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
}

#[test]
fn each_change_counts_once() {
    let metrics = Metrics::default();
    let created = Some("2026-01-01T00:00:00Z".parse().unwrap());
    let life = [
        status(&[], 0),
        status(&["Created"], 0),
        status(&["Created", "Running"], 0),
        status(&["Created", "Restarting"], 2),
        status(&["Created", "Running"], 2),
        status(&["Created", "Succeeded"], 2),
        status(&["Created", "Succeeded"], 2),
    ];
    for pair in life.windows(2) {
        metrics.status_stored("any", "team", created, &pair[0], &pair[1]);
    }
    metrics.deleted("any", "team");
    let mut registry = Registry::with_prefix("training_operator");
    metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let has = |line: &str| assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
    let labels = r#"{job_namespace="team",framework="any"}"#;
    has(&format!("training_operator_jobs_created_total{labels} 1"));
    has(&format!("training_operator_jobs_restarted_total{labels} 2"));
    has(&format!("training_operator_jobs_successful_total{labels} 1"));
    has(&format!("training_operator_jobs_deleted_total{labels} 1"));
    has(r#"training_operator_job_startup_seconds_sum{framework="any"} 7.0"#);
    has(r#"training_operator_job_duration_seconds_sum{framework="any",result="succeeded"} 100.0"#);
    assert!(!text.contains("jobs_failed_total{"), "{text}");
}

/// Returns the lines of all metrics.
fn lines(metrics: &Metrics) -> Vec<String> {
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_counters_of_a_kind_and_of_a_namespace_begin_with_0() {
    let metrics = Metrics::default();
    metrics.add_kind("any", "");
    drop(metrics.count_job("any", "team", None));
    let lines = lines(&metrics);
    let has = |line: &str| assert!(lines.iter().any(|l| l == line), "no {line} in {lines:#?}");
    for counter in ["created", "deleted", "successful", "failed", "restarted"] {
        for namespace in ["", "team"] {
            has(&format!(
                "jobs_{counter}_total{{job_namespace=\"{namespace}\",framework=\"any\"}} 0"
            ));
        }
    }
    for reason in ErrorReason::ALL {
        let reason = reason.as_str();
        has(&format!(
            "reconcile_errors_total{{framework=\"any\",reason=\"{reason}\"}} 0"
        ));
    }
    for cause in ["RateLimit", "Queue", "Call", "Stop"] {
        has(&format!("events_dropped_total{{cause=\"{cause}\"}} 0"));
    }
    has("job_startup_seconds_count{framework=\"any\"} 0");
    for result in ["succeeded", "failed"] {
        has(&format!(
            "job_duration_seconds_count{{framework=\"any\",result=\"{result}\"}} 0"
        ));
    }
}

#[test]
fn a_job_counts_in_its_state_while_it_is_cached() {
    let metrics = Metrics::default();
    let count = |state: &str| {
        let name = format!("jobs{{job_namespace=\"team\",framework=\"any\",state=\"{state}\"}} ");
        let value = lines(&metrics)
            .iter()
            .find_map(|line| line.strip_prefix(&name)?.parse::<i64>().ok());
        value.unwrap_or_default()
    };
    let of = |types: &[&str]| metrics.count_job("any", "team", Some(&status(types, 0)));
    let new = metrics.count_job("any", "team", None);
    let running = [of(&["Created", "Running"]), of(&["Created", "Running"])];
    let failed = of(&["Created", "Running", "Failed"]);
    assert_eq!((count("New"), count("Running"), count("Failed")), (1, 2, 1));
    drop((new, running, failed));
    assert_eq!((count("New"), count("Running"), count("Failed")), (0, 0, 0));
}

#[cfg(feature = "process")]
#[test]
fn only_a_resource_with_a_crd_can_be_missing() {
    let metrics = Metrics::default();
    metrics.add_resource("toyjobs.example.com", true);
    metrics.add_resource("pods", false);
    metrics.absent("toyjobs.example.com");
    metrics.absent("pods");
    metrics.listed("pods");
    let lines = lines(&metrics);
    let missing: Vec<_> = lines
        .iter()
        .filter(|line| line.starts_with("crd_missing{"))
        .collect();
    assert_eq!(missing, [r#"crd_missing{resource="toyjobs.example.com"} 1"#]);
    let failed = r#"watch_failures_total{resource="pods"} 1"#.to_owned();
    assert!(lines.contains(&failed), "{lines:#?}");
    assert_eq!(metrics.missing_crds(), ["toyjobs.example.com"]);
    metrics.forget_missing_crds();
    assert!(metrics.missing_crds().is_empty());
    let found = r#"crd_missing{resource="toyjobs.example.com"} 0"#.to_owned();
    assert!(self::lines(&metrics).contains(&found));
}
