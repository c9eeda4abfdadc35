//! The command `run`.

use std::process::ExitCode;

use training_job_controller::process::{self, Flags};
use training_job_review::controller_config::ControllerConfigArgs;
use training_job_review::{exit, help};

#[cfg(feature = "views")]
use crate::history::HistoryArgs;
use crate::kinds::Kinds;

const HELP: &str = "\
The cluster is the one of --kubeconfig, $USE_KUBE_CONFIG, $KUBECONFIG or ~/.kube/config, whichever
comes first; without these, the cluster in which this process runs as a pod. Logs go to standard
error. Each flag can also be set by the environment variable that is shown with it.

Examples:
  {program} run
  {program} run --kubeconfig ~/.kube/config --namespace team-a --zap-encoder json
  {program} run --leader-elect --default-restart-scope Replica

Exit codes:
  0    ended by SIGTERM or SIGINT, after finishing its work and releasing the lease
  1    the cluster's configuration, a port or a client is not usable
  2    bad usage, or an error in the file of --controller_config_file
  130  or 143: ended at once by a second signal";

/// Run the operator on a cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Run {
    /// A file that the user meant for `local run`.
    #[arg(hide = true)]
    file: Option<String>,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    controller_config: ControllerConfigArgs,
    #[cfg(feature = "views")]
    #[command(flatten)]
    history: HistoryArgs,
}

impl Run {
    /// Starts the logs, which [`run`](Self::run) does as well.
    pub fn start_logs(&self) {
        process::start_logs(&self.flags.logs);
    }

    /// Runs an operator for these kinds until a signal ends it. Returns 2 for bad usage, or else the exit code of
    /// [`process::main`].
    pub fn run(&self, kinds: &Kinds) -> ExitCode {
        if let Some(file) = &self.file {
            let remedy = help(&format!(
                "runs the operator of a cluster and takes no file; to run a job on this machine: {{program}} local run {file}"
            ));
            return exit::code(|| Err(exit::Failure::new("run", remedy)));
        }
        self.start_logs();
        let mut flags = self.flags.clone();
        match self.controller_config.read() {
            Ok(config) => {
                for warning in &config.warnings {
                    tracing::warn!("{warning}");
                }
                flags.accelerators = config.accelerators;
            }
            Err(failure) => {
                tracing::error!("{failure}");
                return exit::bad_input();
            }
        }
        #[cfg(feature = "views")]
        match self.history.keeper(kinds) {
            Ok(keeper) => flags.finished_jobs = keeper,
            Err(error) => {
                tracing::error!("{error:#}");
                return ExitCode::FAILURE;
            }
        }
        process::main(&flags, kinds.of_operator())
    }
}
