//! The options for processes that `local run` and `local node` share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, anyhow, bail};
use local_node::{LogLine, NodeConfig, Prepared, devices_of_this_machine};

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

    /// A file with such variables, one in a line, also as export NAME=VALUE; quotes around a value are removed; lines
    /// that begin with # are comments
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,

    /// A directory to prepend to PATH for the processes; may be repeated
    #[arg(long, value_name = "DIR")]
    pub path: Vec<PathBuf>,

    /// A directory of this machine for a volume of the pods, by the volume's name; paths below its mount path are
    /// replaced in commands, arguments and environment values, but not in programs; may be repeated
    #[arg(long, value_name = "VOLUME=DIR", value_parser = mount)]
    pub mount: Vec<(String, PathBuf)>,

    /// Start pods without the devices that they request, such as GPUs that this machine does not have
    #[arg(long)]
    pub ignore_devices: bool,

    /// Write each replica's output to a file in DIR as well
    #[arg(long, value_name = "DIR")]
    pub keep_logs: Option<PathBuf>,

    /// Show how each process differs from the same container in a cluster
    #[arg(long)]
    pub why: bool,
}

fn mount(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((volume, directory)) if !volume.is_empty() && !directory.is_empty() => {
            Ok((volume.to_owned(), directory.into()))
        }
        _ => Err("must be the name of a volume and a directory, such as data=./data".to_owned()),
    }
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
        let paths = self.path.iter().map(|path| ("--path", path));
        let mut directories = paths.chain(self.mount.iter().map(|(_, directory)| ("--mount", directory)));
        if let Some((option, path)) = directories.find(|(_, path)| !path.is_dir()) {
            bail!("{option}: the directory {} does not exist", path.display());
        }
        match &self.keep_logs {
            Some(logs) => check_writable(logs).map_err(|error| {
                let logs = logs.display();
                anyhow!("--keep-logs: files cannot be written to {logs}: {error}; name another directory")
            }),
            None => Ok(()),
        }
    }

    /// Returns the variables of `--env-file` and `--env`, and one by which Python prints at once. The last one of a name
    /// counts.
    fn variables(&self) -> anyhow::Result<Vec<(String, String)>> {
        let mut last = BTreeMap::from([("PYTHONUNBUFFERED".to_owned(), "1".to_owned())]);
        if let Some(file) = &self.env_file {
            let text = fs::read_to_string(file);
            let text = text.with_context(|| format!("--env-file: {}", file.display()))?;
            for (n, line) in text.trim_start_matches(BYTE_ORDER_MARK).lines().enumerate() {
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let place = || format!("--env-file: {}:{}", file.display(), n + 1);
                let exported = line
                    .strip_prefix("export")
                    .filter(|rest| rest.starts_with([' ', '\t']));
                let (name, value) = variable(exported.map_or(line, str::trim_start)).with_context(place)?;
                last.insert(name, unquoted(&value).to_owned());
            }
        }
        for text in &self.env {
            let (name, value) = variable(text).context("--env")?;
            last.insert(name, value);
        }
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
        config.mounts = self.mount.iter().cloned().collect();
        config.devices = (!self.ignore_devices).then(devices_of_this_machine);
        config.logs = self.keep_logs.clone();
        config.adjust_env = kinds
            .adjust_env
            .iter()
            .map(|(controller, adjust)| ((*controller).to_owned(), *adjust))
            .collect();
        Ok(config)
    }
}

/// The mark that editors of Windows put before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the name and the value of `NAME=VALUE`, or of `NAME` with the value in this shell.
fn variable(text: &str) -> anyhow::Result<(String, String)> {
    let name = text.split('=').next().unwrap_or_default();
    if name.is_empty() {
        bail!("{text}: must have a name before =");
    }
    if name.contains(char::is_whitespace) {
        let name = name.split_whitespace().last().unwrap_or_default();
        bail!("{text}: the name of a variable must have no blanks; write {name}=VALUE");
    }
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => match std::env::var(text) {
            Ok(value) => Ok((text.to_owned(), value)),
            Err(_) => bail!("{text} is not set in this shell; set it, or use {text}=VALUE"),
        },
    }
}

/// Returns a value without the quotes around the whole of it.
fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// Creates the directory if it does not exist, and checks that files can be created in it.
fn check_writable(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let file = directory.join(format!(".writable-{}", std::process::id()));
    fs::write(&file, "")?;
    fs::remove_file(&file)
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        processes: ProcessArgs,
    }

    /// Returns the variables of a file, or the error, without the place of the file.
    fn read(text: &str) -> Result<Vec<String>, String> {
        let file = std::env::temp_dir().join(format!("variables-{}-{}", std::process::id(), text.len()));
        fs::write(&file, text).unwrap();
        let line = Line::parse_from([Path::new("x"), Path::new("--env-file"), file.as_path()]);
        let read = line.processes.variables();
        fs::remove_file(&file).unwrap();
        let read = read.map_err(|error| format!("{error:#}").replace(&*file.to_string_lossy(), "FILE"))?;
        Ok(read
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect())
    }

    #[test]
    fn a_file_of_variables_is_read_as_shells_and_editors_write_it() {
        let text = "\u{feff}FIRST=1\r\nexport SECOND=2\r\n# no\r\n\r\nFOURTH=\"a b\"\nFIFTH='c'\nSIXTH=a\"b\"\nE=\n export\tT=x=y\n";
        let expected = [
            "E=",
            "FIFTH=c",
            "FIRST=1",
            "FOURTH=a b",
            "PYTHONUNBUFFERED=1",
            "SECOND=2",
            "SIXTH=a\"b\"",
            "T=x=y",
        ];
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(read("PYTHONUNBUFFERED=").unwrap(), ["PYTHONUNBUFFERED="]);
    }

    #[test]
    fn a_name_with_blanks_is_an_error_with_its_line() {
        for (text, error) in [
            (
                "A=1\nTHIRD = 3\n",
                "--env-file: FILE:2: THIRD = 3: the name of a variable must have no blanks; write THIRD=VALUE",
            ),
            ("=1", "--env-file: FILE:1: =1: must have a name before ="),
            (
                "set A=1",
                "--env-file: FILE:1: set A=1: the name of a variable must have no blanks; write A=VALUE",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), error);
        }
    }
}
