//! Adjustments for replicas that all run on one machine.

use local_node::{Environment, LocalPod};

/// Sets ports of the job's own. PyTorch's first process listens at all addresses of the machine, so that two jobs
/// with one port would connect to each other.
pub fn adjust_local(pod: &LocalPod, environment: &mut Environment) {
    if pod.container == "init-pytorch" {
        environment.skip_container("names are replaced by addresses, and a worker waits for the port itself");
        return;
    }
    environment.give_own_port("MASTER_PORT", "MASTER_ADDR");
    environment.give_own_port("PET_MASTER_PORT", "PET_MASTER_ADDR");
    environment.give_own_ports("PET_RDZV_ENDPOINT");
}
