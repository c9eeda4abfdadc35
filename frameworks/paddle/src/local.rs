//! What differs where all replicas run on one machine.

use local_node::{Environment, LocalPod};

/// Paddle compares the address where all meet with its own, to know who has to listen there: without being told it takes the
/// one of the machine's name, and nobody listens. The one that does, does so at all addresses. And
/// each launcher writes its trainers' output into files of the working directory, to read it from there.
pub fn adjust_local(pod: &LocalPod, environment: &mut Environment) {
    environment.give_own_ports("PADDLE_MASTER");
    if environment.get("POD_IP").is_none() {
        environment.set(
            "POD_IP",
            pod.address.to_string(),
            "so that the one that the others meet knows that it is",
        );
    }
    if environment.get("PADDLE_LOG_DIR").is_none() {
        environment.set(
            "PADDLE_LOG_DIR",
            pod.temporary.join("log").display().to_string(),
            "so that no launcher shows the output of another pod's trainers",
        );
    }
}
