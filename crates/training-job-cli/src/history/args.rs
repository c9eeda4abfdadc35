//! The flags of an operator that keeps a history.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use training_job_controller::FinishedJobs;
use training_job_kubectl::story::Directory;
use training_job_program::variable;

use super::bounds::Limits;
use super::keeper::Keeper;
use crate::kinds::Kinds;

/// The flags of the history.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "History")]
pub(crate) struct HistoryArgs {
    /// Directory for the stories of finished jobs, such as a volume; `kubectl training report` and `list --finished` read it
    /// [default: none are kept].
    #[arg(long, env = variable("HISTORY"), value_name = "DIR")]
    history: Option<PathBuf>,
    /// Maximum number of stories; the oldest are removed first, as for the other bounds.
    #[arg(long, env = variable("HISTORY_MAX_JOBS"), value_name = "N", default_value = "1000",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    history_max_jobs: u32,
    /// Maximum size of all stories together; one has at most 1 MiB.
    #[arg(long, env = variable("HISTORY_MAX_BYTES"), value_name = "SIZE", default_value = "256Mi",
          value_parser = bytes)]
    history_max_bytes: u64,
    /// Maximum time since the end of a job.
    #[arg(long, env = variable("HISTORY_MAX_AGE"), value_name = "TIME", default_value = "720h",
          value_parser = age)]
    history_max_age: Duration,
}

impl HistoryArgs {
    /// Returns what keeps the finished jobs of these kinds, if there is a directory for them.
    ///
    /// # Errors
    /// Files cannot be written to the directory.
    pub(crate) fn keeper(&self, kinds: &Kinds) -> anyhow::Result<Option<Arc<dyn FinishedJobs>>> {
        let Some(directory) = self
            .history
            .as_deref()
            .filter(|path| !path.as_os_str().is_empty())
        else {
            return Ok(None);
        };
        let limits = Limits {
            jobs: usize::try_from(self.history_max_jobs).unwrap_or(usize::MAX),
            bytes: self.history_max_bytes,
            age: self.history_max_age,
        };
        keep(directory, limits, kinds).map(Some)
    }
}

/// Returns what keeps the finished jobs of these kinds in a directory.
///
/// # Errors
/// Files cannot be written to the directory.
pub(crate) fn keep(path: &Path, limits: Limits, kinds: &Kinds) -> anyhow::Result<Arc<dyn FinishedJobs>> {
    let directory = Directory::open(path.to_owned()).map_err(|error| {
        anyhow!(
            "--history {}: {error}; must be a directory to which this process can write",
            path.display()
        )
    })?;
    Ok(Arc::new(Keeper::new(directory, limits, kinds)))
}

/// Parses a size such as `256Mi`.
fn bytes(text: &str) -> Result<u64, String> {
    let amount = kube_schema::quantity::amount(text).filter(|amount| (1.0..1e15).contains(amount));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked"
    )]
    amount
        .map(|amount| amount as u64)
        .ok_or_else(|| "must be a size such as 256Mi or 1Gi".to_owned())
}

/// Parses a time such as `720h`.
fn age(text: &str) -> Result<Duration, String> {
    let span = text.parse::<jiff::SignedDuration>().ok();
    let age = span
        .and_then(|span| Duration::try_from(span).ok())
        .filter(|age| !age.is_zero());
    age.ok_or_else(|| "must be a time such as 72h or 90m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read() {
        assert_eq!(bytes("256Mi"), Ok(256 << 20));
        assert_eq!(bytes("5k"), Ok(5_000));
        assert!(bytes("0").is_err() && bytes("-1").is_err() && bytes("much").is_err());
        assert_eq!(age("1h30m"), Ok(Duration::from_secs(5_400)));
        assert!(age("0s").is_err() && age("-3s").is_err() && age("30").is_err());
    }
}
