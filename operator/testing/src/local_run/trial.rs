//! The environment of a test: its share of the machine, a folder, and a Python environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::SemaphorePermit;

use super::manifest::{Manifest, examples};
use super::run::Run;
use crate::machine::JOBS;
use crate::program;
use crate::venv::venv;

/// A test's folder, and its share of the machine until it is dropped.
pub struct Trial {
    pub dir: PathBuf,
    _share: SemaphorePermit<'static>,
}

impl Trial {
    /// Waits until the machine has capacity for one more job.
    #[expect(clippy::new_without_default, reason = "a default value does not wait")]
    pub fn new() -> Self {
        Self::of_jobs(1)
    }

    /// Waits until the machine has capacity for this many jobs.
    pub fn of_jobs(jobs: u32) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let share = futures::executor::block_on(JOBS.acquire_many(jobs)).unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("local-run-{}-{number}", std::process::id());
        let dir = program::temporary().join(name);
        fs::create_dir_all(&dir).unwrap();
        Self { dir, _share: share }
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a manifest to a file named after its job.
    pub fn write(&self, manifest: &Manifest) -> PathBuf {
        self.file(&format!("{}.yaml", manifest.name()), &manifest.text())
    }

    /// Runs a job that needs only a shell, in this trial's folder.
    pub fn run(&self, manifest: &Manifest) -> Run {
        self.run_with(manifest, &[])
    }

    /// Runs such a job with options.
    pub fn run_with(&self, manifest: &Manifest, options: &[&str]) -> Run {
        Run::start(local_run().args(options).arg(self.write(manifest)))
    }

    /// Runs a job with MXNet in the folder of the example's script.
    pub fn train(&self, manifest: &Manifest) -> Run {
        Run::start(train(&examples()).arg(self.write(manifest)))
    }
}

/// Returns the command `training-operator local run`.
pub fn local_run() -> Command {
    let mut command = Command::new(program::path());
    command.args(["local", "run"]);
    command
}

/// Returns the command `training-operator local run` with MXNet and a working directory.
pub fn train(workdir: &Path) -> Command {
    let mut command = local_run();
    command
        .arg("--venv")
        .arg(venv("mxnet"))
        .arg("--workdir")
        .arg(workdir);
    command
}

impl Drop for Trial {
    fn drop(&mut self) {
        // After a failure the files may show the cause.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}
