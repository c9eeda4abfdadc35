//! `training-operator run`.

use std::process::ExitCode;

use training_job_cli::{Kinds, Run};

/// Run the operator on a cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    run: Run,
    #[command(flatten)]
    ignored: Ignored,
}

/// Runs the operator until a signal ends it.
pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> ExitCode {
    arguments.run.start_logs();
    for flag in arguments.ignored.given_flags() {
        tracing::warn!(
            "{flag} is ignored: this operator has no webhooks and no template for init containers"
        );
    }
    arguments.run.run(kinds)
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
