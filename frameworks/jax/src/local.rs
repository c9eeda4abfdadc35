//! Adjustments for replicas that all run on one machine.

use local_node::{Environment, LocalPod};

/// Sets the address of the coordinator. By default it listens at all addresses of the machine, so that the
/// coordinator of a second job would fail.
pub fn adjust_local(pod: &LocalPod, environment: &mut Environment) {
    if environment.get("JAX_COORDINATOR_BIND_ADDRESS").is_some() {
        return;
    }
    if environment.get("PROCESS_ID") == Some("0")
        && let Some(port) = environment.get("COORDINATOR_PORT").map(str::to_owned)
    {
        environment.set(
            "JAX_COORDINATOR_BIND_ADDRESS",
            format!("{}:{port}", pod.address),
            "so that the coordinator listens at its own address only",
        );
    }
}
