//! What a JAXJob's processes read, to the byte as the Go operator v1.9.0 writes it (`envvar.go`). JAX itself
//! reads none of it: the program hands it to `jax.distributed.initialize`.

use k8s_openapi::api::core::v1::EnvVar;
use training_job::api::variable;
use training_job::{Replica, Topology};

pub(crate) const WORKER: &str = "Worker";

/// The environment of a replica: where process 0 is, which has each process meet the others.
pub(crate) fn variables(topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
    vec![
        // What a process prints is seen at once.
        variable("PYTHONUNBUFFERED", "1"),
        variable("COORDINATOR_PORT", replica.role.port.to_string()),
        variable("COORDINATOR_ADDRESS", replica.role.host(0)),
        variable("NUM_PROCESSES", topology.total().to_string()),
        variable("PROCESS_ID", replica.index.to_string()),
    ]
}
