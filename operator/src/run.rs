//! `training-operator run`.

use std::process::ExitCode;

use clap::Args;
use training_job::process;

use crate::cli::Run;
use crate::kinds;

/// Runs the operator until a signal ends it.
pub(crate) fn run(arguments: &Run) -> ExitCode {
    process::start_logs(&arguments.flags.logs);
    for flag in arguments.ignored.given() {
        tracing::warn!("{flag} has no meaning for this operator, which has no webhook, PyTorchJob or MPIJob");
    }
    process::main(&arguments.flags, kinds::for_clusters())
}

/// Flags of the Go operator that are about kinds and webhooks which are not here. A Deployment that
/// has them starts all the same.
#[derive(Clone, Debug, Args)]
pub(crate) struct Ignored {
    #[arg(long, hide = true)]
    webhook_server_port: Option<String>,
    #[arg(long, hide = true)]
    webhook_service_name: Option<String>,
    #[arg(long, hide = true)]
    webhook_secret_name: Option<String>,
    #[arg(long, hide = true)]
    pytorch_init_container_image: Option<String>,
    #[arg(long, hide = true)]
    pytorch_init_container_template_file: Option<String>,
    #[arg(long, hide = true)]
    pytorch_init_container_max_tries: Option<String>,
    #[arg(long, hide = true)]
    mpi_kubectl_delivery_image: Option<String>,
}

impl Ignored {
    /// Those that were given.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--webhook-server-port", &self.webhook_server_port),
            ("--webhook-service-name", &self.webhook_service_name),
            ("--webhook-secret-name", &self.webhook_secret_name),
            (
                "--pytorch-init-container-image",
                &self.pytorch_init_container_image,
            ),
            (
                "--pytorch-init-container-template-file",
                &self.pytorch_init_container_template_file,
            ),
            (
                "--pytorch-init-container-max-tries",
                &self.pytorch_init_container_max_tries,
            ),
            ("--mpi-kubectl-delivery-image", &self.mpi_kubectl_delivery_image),
        ];
        all.into_iter()
            .filter(|(_, value)| value.is_some())
            .map(|(name, _)| name)
            .collect()
    }
}
