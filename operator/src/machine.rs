//! What processes of pods get of this machine: options that `local run` and `local node` share.

use std::path::PathBuf;

use anyhow::bail;
use local_node::{LogLine, NodeConfig, Prepared};

use crate::kinds::Kind;

/// Lines of output that may wait to be shown before processes have to wait.
pub(crate) const WAITING_LINES: usize = 1_024;

/// What the processes get.
#[derive(Debug, clap::Args)]
pub(crate) struct Machine {
    /// A Python virtual environment for the processes: its programs come first
    #[arg(long, value_name = "DIR")]
    pub venv: Option<PathBuf>,

    /// A directory to put before PATH for the processes; may be repeated
    #[arg(long, value_name = "DIR")]
    pub path: Vec<PathBuf>,

    /// Keep each replica's output as a file in DIR
    #[arg(long, value_name = "DIR")]
    pub keep_logs: Option<PathBuf>,

    /// Show in what each process differs from the same container in a cluster
    #[arg(long)]
    pub why: bool,
}

impl Machine {
    /// A directory that is not there would only show as a program that is not found.
    ///
    /// # Errors
    /// Names the option.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if let Some(venv) = &self.venv
            && !venv.join("bin/python").exists()
        {
            bail!(
                "--venv {0} does not exist, or is no Python environment; make one with: python3 -m venv {0}",
                venv.display()
            );
        }
        match self.path.iter().find(|path| !path.is_dir()) {
            Some(path) => bail!("--path {} does not exist", path.display()),
            None => Ok(()),
        }
    }

    /// Settings of a node whose processes start in `workdir`, with what these kinds need on one machine.
    pub(crate) fn node_config(&self, workdir: PathBuf, kinds: &[Kind]) -> NodeConfig {
        NodeConfig {
            workdir,
            path: self.path.clone(),
            venv: self.venv.clone(),
            logs: self.keep_logs.clone(),
            adjust_env: kinds
                .iter()
                .map(|kind| (kind.framework.controller.to_owned(), kind.adjust_local as _))
                .collect(),
            ..NodeConfig::default()
        }
    }
}

/// What is printed before a line of output, when its pod is called `pod`.
pub(crate) fn speaker(pod: &str, log: &LogLine) -> String {
    match &log.container {
        Some(container) => format!("{pod}/{container}"),
        None => pod.to_owned(),
    }
}

/// Lines that tell in what a process differs from its container.
pub(crate) fn why(prepared: &Prepared) -> Vec<String> {
    if prepared.differences.is_empty() {
        return vec!["as in a cluster".to_owned()];
    }
    prepared.differences.iter().map(ToString::to_string).collect()
}
