//! What an XGBoostJob's processes read, to the byte as the Go operator v1.8.1 writes it (`xgboost.go`).

use k8s_openapi::api::core::v1::EnvVar;
use training_job::api::variable;
use training_job::{Replica, Topology};

pub(crate) const MASTER: &str = "Master";
pub(crate) const WORKER: &str = "Worker";

/// The environment of a replica: for XGBoost where the tracker is, for LightGBM all workers as well.
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
        // What a process prints is seen at once.
        variable("PYTHONUNBUFFERED", "1"),
    ];
    if let Some(worker) = topology.role(WORKER) {
        let hosts = topology.once("WORKER_ADDRS", || {
            worker.all().map(|w| w.host()).collect::<Vec<_>>().join(",")
        });
        environment.push(variable("WORKER_PORT", worker.port.to_string()));
        environment.push(variable("WORKER_ADDRS", &*hosts));
    }
    environment
}
