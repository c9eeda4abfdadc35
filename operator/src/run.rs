//! `training-operator run`.

use std::process::ExitCode;

use training_job_controller::process;

use crate::controller_config::ControllerConfigArgs;
use crate::exit;
use crate::kinds::kinds;

const HELP: &str = "\
The cluster is the one of --kubeconfig, $USE_KUBE_CONFIG, $KUBECONFIG or ~/.kube/config, whichever
comes first; without these, the cluster in which this process runs as a pod. Logs go to standard
error. Each flag can also be set by the environment variable that is shown with it.

Examples:
  training-operator run
  training-operator run --kubeconfig ~/.kube/config --namespace team-a --zap-encoder json
  training-operator run --leader-elect --enable-scheme MXJob --default-restart-scope Replica

Exit codes:
  0    ended by SIGTERM or SIGINT, after finishing its work and releasing the lease
  1    the cluster's configuration, a port or a client is not usable
  2    bad usage, or an error in the file of --controller_config_file
  130  or 143: ended at once by a second signal";

/// Run the operator on a cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) flags: training_job_controller::process::Flags,
    #[command(flatten)]
    pub(crate) controller_config: ControllerConfigArgs,
    #[command(flatten)]
    pub(crate) ignored: Ignored,
}

/// Runs the operator until a signal ends it.
pub(crate) fn run(arguments: &Args) -> ExitCode {
    process::start_logs(&arguments.flags.logs);
    for flag in arguments.ignored.given_flags() {
        tracing::warn!(
            "{flag} is ignored: this operator has no webhooks and no template for init containers"
        );
    }
    let kinds = kinds().into_iter().map(|kind| kind.dyn_kind).collect();
    let mut flags = arguments.flags.clone();
    match arguments.controller_config.read() {
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
    process::main(&flags, kinds)
}

/// Flags of the Go operator that are accepted and ignored, so that a Deployment that sets them starts. They configure
/// webhooks and init containers that this operator lacks.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Ignored {
    #[arg(long, hide = true)]
    webhook_server_port: Option<String>,
    #[arg(long, hide = true)]
    webhook_service_name: Option<String>,
    #[arg(long, hide = true)]
    webhook_secret_name: Option<String>,
    #[arg(long, hide = true)]
    pytorch_init_container_template_file: Option<String>,
}

impl Ignored {
    fn given_flags(&self) -> Vec<&'static str> {
        let flags = [
            ("--webhook-server-port", &self.webhook_server_port),
            ("--webhook-service-name", &self.webhook_service_name),
            ("--webhook-secret-name", &self.webhook_secret_name),
            (
                "--pytorch-init-container-template-file",
                &self.pytorch_init_container_template_file,
            ),
        ];
        flags
            .into_iter()
            .filter(|(_, value)| value.is_some())
            .map(|(name, _)| name)
            .collect()
    }
}
