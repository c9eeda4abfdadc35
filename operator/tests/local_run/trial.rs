//! The environment of a test: its share of the machine, a folder, and a Python environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::manifest::Manifest;
use crate::run::Run;
use crate::venv::venv;

/// The number of concurrent jobs. Each has up to five processes that start together.
const JOBS: usize = 2;

static FREE: Mutex<usize> = Mutex::new(JOBS);
static FREED: Condvar = Condvar::new();

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

pub(crate) fn examples() -> PathBuf {
    root().join("examples/mxnet")
}

/// A test's folder, and its share of the machine until it is dropped.
pub(crate) struct Trial {
    pub(crate) dir: PathBuf,
    jobs: usize,
}

impl Trial {
    /// Waits until the machine has capacity for one more job.
    pub(crate) fn new() -> Self {
        Self::of_jobs(1)
    }

    /// Waits until the machine has capacity for this many jobs.
    pub(crate) fn of_jobs(jobs: usize) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut free = FREED
            .wait_while(free(), |free| *free < jobs)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= jobs;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("local-run-{}-{number}", std::process::id());
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&dir).unwrap();
        Self { dir, jobs }
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a manifest to a file named after its job.
    pub(crate) fn write(&self, manifest: &Manifest) -> PathBuf {
        self.file(&format!("{}.yaml", manifest.name()), &manifest.text())
    }

    /// Runs a job that needs only a shell, in this trial's folder.
    pub(crate) fn run(&self, manifest: &Manifest) -> Run {
        self.run_with(manifest, &[])
    }

    /// Runs such a job with options.
    pub(crate) fn run_with(&self, manifest: &Manifest, options: &[&str]) -> Run {
        Run::start(local_run().args(options).arg(self.write(manifest)))
    }

    /// Runs a job with MXNet in the folder of the example's script.
    pub(crate) fn train(&self, manifest: &Manifest) -> Run {
        Run::start(train(&examples()).arg(self.write(manifest)))
    }
}

/// Returns the command `training-operator local run`.
pub(crate) fn local_run() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_training-operator"));
    command.args(["local", "run"]);
    command
}

/// Returns the command `training-operator local run` with MXNet and a working directory.
pub(crate) fn train(workdir: &Path) -> Command {
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
        *free() += self.jobs;
        FREED.notify_all();
    }
}

fn free() -> MutexGuard<'static, usize> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}
