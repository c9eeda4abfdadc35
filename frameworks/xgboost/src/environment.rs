//! The environment variables of an XGBoostJob, byte for byte as the Go operator v1.8.1 writes them (`xgboost.go`).

use k8s_openapi::api::core::v1::EnvVar;
use training_job::api::variable;
use training_job::{Replica, Topology};

pub(crate) const MASTER: &str = "Master";
pub(crate) const WORKER: &str = "Worker";

/// Returns the environment of a replica: the address of the tracker for XGBoost, and of all workers for LightGBM.
pub(crate) fn variables(topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
    let Some(master) = topology.role(MASTER) else {
        return Vec::new();
    };
    let rank = match replica.role.name() {
        WORKER => master.replicas + replica.index,
        _ => replica.index,
    };
    let mut environment = vec![
        variable("MASTER_PORT", master.port.to_string()),
        variable("MASTER_ADDR", master.host(0)),
        variable("WORLD_SIZE", topology.total().to_string()),
        variable("RANK", rank.to_string()),
        // Makes Python write its output without buffering.
        variable("PYTHONUNBUFFERED", "1"),
    ];
    if let Some(worker) = topology.role(WORKER) {
        let hosts = topology.shared_text("WORKER_ADDRS", || {
            worker.all().map(|w| w.host()).collect::<Vec<_>>().join(",")
        });
        environment.push(variable("WORKER_PORT", worker.port.to_string()));
        environment.push(variable("WORKER_ADDRS", &*hosts));
    }
    environment
}
