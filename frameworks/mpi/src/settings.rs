//! The settings of the operator for MPIJobs.

use training_job::{SettingDefinition, Settings};

/// The image that installs `kubectl` for the launcher.
pub(crate) const DELIVERY_IMAGE: SettingDefinition = SettingDefinition::new(
    "mpi-kubectl-delivery-image",
    "kubeflow/kubectl-delivery:latest",
    "Image of the init container that installs kubectl in an MPIJob's launcher",
);

/// The operator's own image, if it installs the launcher's remote shell.
pub(crate) const SHELL_IMAGE: SettingDefinition = SettingDefinition::new(
    "mpi-remote-shell-image",
    "",
    "Image of this operator, to install its remote shell in an MPIJob's launcher instead of kubectl; if empty, \
     --mpi-kubectl-delivery-image installs kubectl. The operator must be allowed to get pods/exec",
);

/// Returns true if the operator's own program is the launcher's remote shell.
pub(crate) fn is_own_shell(settings: &Settings) -> bool {
    !settings.get(&SHELL_IMAGE).is_empty()
}
