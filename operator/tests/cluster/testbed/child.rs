//! Runs this test program as a child that starts a control plane.

use std::process::Command;

use training_job_testbed::cluster::{ControlPlane, Program};

const ROLE: &str = "CLUSTER_TEST_CHILD";

/// Returns a command that runs [`child`] in a role: `start`, `stay` or `panic`.
pub(crate) fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["testbed::child::child", "--exact", "--nocapture"])
        .env(ROLE, role)
        .env_remove("TEST_KUBECONFIG");
    command
}

/// Not a test itself: the tests of process ends start it. Its control plane is in a static, so it is never dropped.
#[tokio::test]
async fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let cluster = ControlPlane::shared().await;
    // The sleeping child process would survive if the process group were not killed.
    let program = cluster.spawn(
        Program::new("sh")
            .args(["-c", "sleep 1000 & echo asleep; wait"])
            .env("MARK", cluster.directory()),
    );
    // Before this line the program may not have started.
    program.wait_for_line("asleep").await;
    println!("\nready {}", cluster.directory().display());
    match &*role {
        "stay" => std::future::pending().await,
        "panic" => panic!("as asked"),
        _ => {}
    }
}
