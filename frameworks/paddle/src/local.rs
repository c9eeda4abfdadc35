//! Adjustments for replicas that all run on one machine.

use local_node::{Environment, LocalPod};

/// Sets the pod's address and its log directory. Paddle's launcher runs the rendezvous server if the rendezvous
/// address is its own. By default its own address is that of the machine's name, so that no launcher would run the
/// server. The server listens at all addresses, so that each job needs a port of its own. Each launcher writes its
/// trainers' output to files in the working directory and reads it from there.
pub fn adjust_local(pod: &LocalPod, environment: &mut Environment) {
    environment.give_own_ports("PADDLE_MASTER");
    if environment.get("POD_IP").is_none() {
        environment.set(
            "POD_IP",
            pod.address.to_string(),
            "so that the launcher at the rendezvous address starts the server",
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
