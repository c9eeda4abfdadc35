//! The options for processes that `local run` and `local node` share.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use local_node::{LogLine, NodeConfig, Prepared};

use crate::kinds::Kinds;

/// The maximum number of lines that wait to be printed. If there are more, the processes that write them are blocked.
pub(super) const MAX_QUEUED_LINES: usize = 1_024;

#[derive(Debug, clap::Args)]
pub struct ProcessArgs {
    /// A Python virtual environment for the processes; its programs come first in PATH [default: .venv in their
    /// working directory, if it exists]
    #[arg(long, value_name = "DIR")]
    pub venv: Option<PathBuf>,

    /// A variable for the processes whose containers do not set it; without a value, that of this shell; may be repeated
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,

    /// A file with such variables, one in a line; lines that begin with # are comments
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,

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
    fn check(&self) -> anyhow::Result<()> {
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

    /// Returns the variables of `--env-file` and `--env`. The last one of a name counts.
    fn variables(&self) -> anyhow::Result<Vec<(String, String)>> {
        let file = self.env_file.as_ref().map(|file| {
            let text = std::fs::read_to_string(file);
            text.with_context(|| format!("--env-file: {}", file.display()))
        });
        let file = file.transpose()?.unwrap_or_default();
        let lines = file.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let given = lines.map(|line| ("--env-file", line));
        let given = given.chain(self.env.iter().map(|text| ("--env", text.as_str())));
        let all = given.map(|(option, text)| match text.split_once('=') {
            Some(("", _)) => bail!("{option}: {text}: must have a name before ="),
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => match std::env::var(text) {
                Ok(value) => Ok((text.to_owned(), value)),
                Err(_) => bail!("{option}: {text} is not set in this shell; set it, or use {text}=VALUE"),
            },
        });
        let last: BTreeMap<_, _> = all.collect::<anyhow::Result<_>>()?;
        Ok(last.into_iter().collect())
    }

    /// Returns the configuration of a node whose processes start in `workdir`. The environments of `kinds` are adjusted
    /// to one machine.
    ///
    /// # Errors
    /// A directory or a file does not exist, or a variable has no value.
    pub(super) fn node_config(&self, workdir: PathBuf, kinds: &Kinds) -> anyhow::Result<NodeConfig> {
        self.check()?;
        let mut config = NodeConfig::default();
        let of_workdir = Some(workdir.join(".venv")).filter(|venv| venv.join("bin/python").exists());
        config.workdir = workdir;
        config.path = self.path.clone();
        config.venv = self.venv.clone().or(of_workdir);
        config.env = self.variables()?;
        config.logs = self.keep_logs.clone();
        config.adjust_env = kinds
            .iter()
            .map(|kind| (kind.framework.controller.to_owned(), kind.adjust_env as _))
            .collect();
        Ok(config)
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
