//! Adjustments for replicas that all run on one machine.

use local_node::{Environment, LocalPod};

/// Sets ports of the job's own, because TensorFlow listens at all addresses of the machine.
pub fn adjust_local(_: &LocalPod, environment: &mut Environment) {
    environment.give_own_ports("TF_CONFIG");
}
