//! The options for processes that `local run` and `local node` share.

use std::path::PathBuf;

use anyhow::bail;
use local_node::{LogLine, NodeConfig, Prepared};

use crate::kinds::Kinds;

/// The maximum number of lines that wait to be printed. If there are more, the processes that write them are blocked.
pub(super) const MAX_QUEUED_LINES: usize = 1_024;

#[derive(Debug, clap::Args)]
pub struct ProcessArgs {
    /// A Python virtual environment for the processes; its programs come first in PATH
    #[arg(long, value_name = "DIR")]
    pub venv: Option<PathBuf>,

    /// A directory to prepend to PATH for the processes; may be repeated
    #[arg(long, value_name = "DIR")]
    pub path: Vec<PathBuf>,

    /// Write each replica's output to a file in DIR as well
    #[arg(long, value_name = "DIR")]
    pub keep_logs: Option<PathBuf>,

    /// Show how each process differs from the same container in a cluster
    #[arg(long)]
    pub why: bool,
}

impl ProcessArgs {
    /// Checks that the directories exist. Otherwise, the only error would be that a program is not found.
    ///
    /// # Errors
    /// A directory does not exist.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if let Some(venv) = &self.venv
            && !venv.join("bin/python").exists()
        {
            bail!(
                "--venv: {0} does not exist or is not a Python environment; create one with: python3 -m venv {0}",
                venv.display()
            );
        }
        match self.path.iter().find(|path| !path.is_dir()) {
            Some(path) => bail!("--path: the directory {} does not exist", path.display()),
            None => Ok(()),
        }
    }

    /// Returns the configuration of a node whose processes start in `workdir`. The environments of `kinds` are adjusted
    /// to one machine.
    pub(super) fn node_config(&self, workdir: PathBuf, kinds: &Kinds) -> NodeConfig {
        let mut config = NodeConfig::default();
        config.workdir = workdir;
        config.path = self.path.clone();
        config.venv = self.venv.clone();
        config.logs = self.keep_logs.clone();
        config.adjust_env = kinds
            .iter()
            .map(|kind| (kind.framework.controller.to_owned(), kind.adjust_env as _))
            .collect();
        config
    }
}

/// Returns the prefix of a line of output: `pod`, followed by the container if the pod has several.
pub(super) fn writer(pod: &str, log: &LogLine) -> String {
    match &log.container {
        Some(container) => format!("{pod}/{container}"),
        None => pod.to_owned(),
    }
}

/// Returns one line for each difference between a process and its container.
pub(super) fn differences(prepared: &Prepared) -> Vec<String> {
    if prepared.differences.is_empty() {
        return vec!["no differences from a cluster".to_owned()];
    }
    prepared.differences.iter().map(ToString::to_string).collect()
}
