//! The cluster that `tests/node/lab.sh` has started, with an operator.

use tokio::sync::OnceCell;
use training_job_testbed::cluster::{ControlPlane, Program};

use crate::install;

/// Returns the cluster. The first call in a process installs the operator.
pub(crate) async fn cluster() -> &'static ControlPlane {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let plane = ControlPlane::shared().await;
    assert!(!plane.is_own(), "there are no nodes; run make test-node");
    INSTALLED.get_or_init(|| install::operator(plane)).await;
    plane
}

/// Runs a command of `tests/node/lab.sh` and returns its output.
pub(crate) async fn lab(arguments: &[&str]) -> String {
    let program = Program::new("tests/node/lab.sh").args(arguments);
    let process = ControlPlane::shared().await.spawn(program);
    let code = process.exit_code().await;
    let output = process.text();
    assert_eq!(code, 0, "lab.sh {arguments:?}: {output}");
    output
}
