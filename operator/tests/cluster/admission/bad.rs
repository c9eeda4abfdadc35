//! Every invalid job of the corpus, and the component that reports it.

use std::fmt::Write;

use kube::api::DeleteParams;
use serde_json::Value;
use training_job_testbed::cluster::{ControlPlane, wait};
use training_operator_testing::corpus::{self, Manifest};

use super::{api, operator};

/// In the snapshot, `=` marks errors of the API server with the same message as `validate`, `api` marks other
/// messages of the API server, and `validate` marks errors that only `validate` reports. For accepted jobs,
/// `operator` is the resulting condition.
#[tokio::test]
async fn the_api_server_refuses_invalid_jobs_in_the_words_of_validate() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("bad").await;
    let running = operator::start(cluster, &namespace);
    let mut table = String::new();
    for manifest in corpus::ALL.iter().filter(|m| !m.offline.is_empty()) {
        let offline = &manifest.offline;
        writeln!(table, "{}", manifest.file).unwrap();
        let told = api::create(cluster, &namespace, &manifest.text, &[]).await;
        let same = |line: &String| offline.iter().any(|o| words(o) == words(line));
        for line in &told {
            writeln!(table, "  {:9}{line}", if same(line) { "=" } else { "api" }).unwrap();
        }
        for line in offline {
            if !told.iter().any(|told| words(told) == words(line)) {
                writeln!(table, "  validate {line}").unwrap();
            }
        }
        if told.is_empty() {
            for line in stored(cluster, &namespace, manifest).await {
                writeln!(table, "  operator {line}").unwrap();
            }
        }
    }
    running.abort();
    insta::assert_snapshot!(table);
}

/// Returns a message without its path, which a rule may report less precisely, and without a suggestion, which a rule
/// cannot compute.
fn words(line: &str) -> String {
    let said = line.split_once(": ").map_or(line, |(_, said)| said);
    match (said.find("did you mean "), said.find("? use one of ")) {
        (Some(from), Some(to)) => format!("{}{}", &said[..from], &said[to + 2..]),
        _ => said.to_owned(),
    }
}

/// Returns the operator's messages about the stored jobs of a manifest, and deletes these jobs.
async fn stored(cluster: &ControlPlane, namespace: &str, manifest: &Manifest) -> Vec<String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&manifest.text).unwrap_or_default();
    let mut lines = Vec::new();
    for job in documents {
        let (Some(kind), Some(name)) = (job["kind"].as_str(), job["metadata"]["name"].as_str()) else {
            continue;
        };
        if ![
            "MXJob",
            "TFJob",
            "XGBoostJob",
            "PyTorchJob",
            "JAXJob",
            "PaddleJob",
        ]
        .contains(&kind)
        {
            continue;
        }
        let jobs = operator::jobs(cluster, namespace, kind);
        match operator::verdict(&jobs, name).await {
            problems if problems.is_empty() => lines.push("runs it".to_owned()),
            problems => lines.extend(problems),
        }
        jobs.delete(name, &DeleteParams::background()).await.unwrap();
        wait(jobs, name, |job| job.is_none()).await;
    }
    lines
}
