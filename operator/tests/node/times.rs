//! Measured times. They are recorded and printed, never compared with a limit.

use std::collections::BTreeMap;
use std::path::PathBuf;

use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use training_job_testbed::cluster::repository;

fn file() -> PathBuf {
    repository().join("target/node/times.json")
}

/// Records the seconds between two moments of a case. The file holds those of all test processes of a run.
pub(crate) fn record(case: &str, from: Timestamp, to: Timestamp) {
    static FILE: Mutex<()> = Mutex::new(());
    let _guard = FILE.lock();
    let text = std::fs::read(file()).unwrap_or_default();
    let mut times: BTreeMap<String, f64> = serde_json::from_slice(&text).unwrap_or_default();
    let seconds = to.duration_since(from).as_secs_f64();
    times.insert(case.to_owned(), (seconds * 10.0).round() / 10.0);
    std::fs::write(file(), serde_json::to_string_pretty(&times).unwrap()).unwrap();
}
