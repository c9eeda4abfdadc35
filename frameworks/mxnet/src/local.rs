//! What differs where all replicas run on one machine.

use local_node::{Environment, LocalPod};

/// With `DMLC_USE_KUBERNETES=1` the scheduler listens on every address, and two jobs with one port
/// break each other; with 0 it listens on its own. Servers and workers would pick the machine's
/// first network, or fail where there is none.
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
