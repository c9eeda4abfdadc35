//! Python environments for the tests that train.

use std::path::PathBuf;
use std::process::Command;

use training_job_testbed::cluster::repository;

/// Returns a Python environment, which is created if it is missing.
pub fn venv(name: &str) -> PathBuf {
    let root = repository();
    let made = Command::new(root.join("tools/venv.sh"))
        .arg(name)
        .status()
        .unwrap();
    assert!(made.success(), "tools/venv.sh {name}");
    root.join(".venv").join(name)
}
