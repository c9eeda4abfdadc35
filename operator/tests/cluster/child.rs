//! This test program, run as a child of itself that starts a control plane.

use std::process::Command;

use training_job_testing::cluster::{ControlPlane, Program};

const ROLE: &str = "CLUSTER_TEST_CHILD";

/// A command that runs [`child`] in a role: `start`, `stay` or `panic`.
pub(crate) fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["child::child", "--exact", "--nocapture"])
        .env(ROLE, role)
        .env_remove("TEST_KUBECONFIG");
    command
}

/// No test of its own: what tests of ends start. Its control plane is in a static, so nothing drops it.
#[tokio::test]
async fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let cluster = ControlPlane::shared().await;
    // It would have the shell that watches over it stay, if the group were not killed.
    let program = cluster.spawn(
        Program::new("sh")
            .args(["-c", "sleep 1000 & echo asleep; wait"])
            .env("MARK", cluster.directory()),
    );
    // Until then it is the shell that watches over it, or nothing.
    program.wait_for_line("asleep").await;
    println!("\nready {}", cluster.directory().display());
    match &*role {
        "stay" => std::future::pending().await,
        "panic" => panic!("as asked"),
        _ => {}
    }
}
