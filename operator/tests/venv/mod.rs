//! Python environments for the tests that train.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a Python environment, which is created if it is missing.
pub(crate) fn venv(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap();
    let made = Command::new(root.join("tools/venv.sh"))
        .arg(name)
        .status()
        .unwrap();
    assert!(made.success(), "tools/venv.sh {name}");
    root.join(".venv").join(name)
}
