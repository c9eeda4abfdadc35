//! The agent with real processes on a fake API.

mod exec;
mod fake_api;
mod files;
mod running;
mod stopping;

use serde_json::{Value, json};

/// Returns a pod of one container that runs a shell script.
fn script(policy: &str, script: &str) -> Value {
    json!({"restartPolicy": policy, "containers": [{"name": "main", "image": "none", "command": ["sh", "-c", script]}]})
}

/// Returns true if a process exists and is not a zombie.
fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Waits until a process is gone.
async fn dead(pid: u32) {
    let limit = std::time::Duration::from_secs(20);
    let gone = async {
        while alive(pid) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(limit, gone)
        .await
        .unwrap_or_else(|_| panic!("process {pid} is still there"));
}
