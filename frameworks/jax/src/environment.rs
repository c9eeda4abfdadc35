//! The environment variables of a JAXJob, byte for byte as the Go operator v1.9.0 writes them (`envvar.go`). JAX
//! itself reads none of them: the program passes them to `jax.distributed.initialize`.

use k8s_openapi::api::core::v1::EnvVar;
use training_job::api::variable;
use training_job::{Replica, Topology};

pub(crate) const WORKER: &str = "Worker";

/// Returns the environment of a replica: the address of process 0, through which all processes connect.
pub(crate) fn variables(topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
    vec![
        // Makes Python write its output without buffering.
        variable("PYTHONUNBUFFERED", "1"),
        variable("COORDINATOR_PORT", replica.role.port.to_string()),
        variable("COORDINATOR_ADDRESS", replica.role.host(0)),
        variable("NUM_PROCESSES", topology.total().to_string()),
        variable("PROCESS_ID", replica.index.to_string()),
    ]
}
