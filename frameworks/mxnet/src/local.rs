//! Adjustments for replicas that all run on one machine.

use local_node::{Environment, LocalPod};

/// Sets `DMLC_USE_KUBERNETES=0`. With 1 the scheduler listens at every address, so that two jobs with one port break
/// each other. With 0 it listens at its own. Servers and workers would choose the machine's first network, or fail
/// without one.
pub fn adjust_local(pod: &LocalPod, environment: &mut Environment) {
    if environment.in_pod("DMLC_USE_KUBERNETES") == Some("1") {
        environment.set(
            "DMLC_USE_KUBERNETES",
            "0",
            "so that the scheduler listens on its own address only",
        );
    }
    if environment.get("DMLC_NODE_HOST").is_none() && environment.get("DMLC_INTERFACE").is_none() {
        environment.set(
            "DMLC_NODE_HOST",
            pod.address.to_string(),
            "so that others find it at its own address",
        );
    }
}
