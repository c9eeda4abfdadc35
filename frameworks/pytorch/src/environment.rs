//! The environment variables of a PyTorchJob, byte for byte as the Go operator v1.8.1 writes them (`envvar.go`,
//! `elastic.go`). `PET_*` is for torchrun, the rest for programs without it.
//!
//! One case differs: the workers of a job that has no master and is not elastic. The Go operator gave them no
//! rendezvous address, so that a plain program could not start and torchrun waited at its own loopback address. Here
//! worker 0 takes the master's part, so that both work. Arguments of torchrun take precedence over these variables,
//! and variables that the job sets itself are unchanged.

use k8s_openapi::api::core::v1::EnvVar;
use training_job::{Replica, Role, Topology};

use crate::{ElasticPolicy, PyTorchJobSpec};

pub(crate) const MASTER: &str = "Master";
pub(crate) const WORKER: &str = "Worker";

/// Returns the environment of a replica.
pub(crate) fn variables(
    spec: &PyTorchJobSpec,
    topology: &Topology<'_>,
    replica: &Replica<'_>,
) -> Vec<EnvVar> {
    let mut environment = vec![variable("PYTHONUNBUFFERED", "1")];
    let master = topology.role(MASTER);
    if let Some(master) = master {
        environment.extend(rendezvous(spec, topology, replica, master));
    }
    if let Some(processes) = spec.processes_per_node() {
        environment.push(variable("PET_NPROC_PER_NODE", processes));
    }
    match &spec.elastic_policy {
        Some(policy) => environment.extend(elastic(policy, topology)),
        None => environment.push(variable("PET_NNODES", topology.total().to_string())),
    }
    if master.is_none() && spec.elastic_policy.is_none() {
        let mut variables = rendezvous(spec, topology, replica, replica.role);
        variables.retain(|variable| !sets(replica.role, &variable.name));
        environment.extend(variables);
    }
    environment
}

/// Returns a variable. Like the Go operator, it omits an empty value.
fn variable(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value.into()).filter(|v| !v.is_empty()),
        value_from: None,
    }
}

/// Returns the rendezvous address, which is the first replica of a role, and the replica's rank. The rank counts
/// pods, the size counts processes. torchrun starts several processes and replaces both.
fn rendezvous(
    spec: &PyTorchJobSpec,
    topology: &Topology<'_>,
    replica: &Replica<'_>,
    first: &Role<'_>,
) -> Vec<EnvVar> {
    let (port, host) = (first.port.to_string(), first.host(0));
    let others_before = match replica.role.name() {
        WORKER => topology.replicas(MASTER),
        _ => 0,
    };
    let rank = (others_before + replica.index).to_string();
    let size = u64::from(topology.total()) * spec.processes_if_counted();
    vec![
        variable("MASTER_PORT", &*port),
        variable("PET_MASTER_PORT", port),
        variable("MASTER_ADDR", &*host),
        variable("PET_MASTER_ADDR", host),
        variable("WORLD_SIZE", size.to_string()),
        variable("RANK", &*rank),
        variable("PET_NODE_RANK", rank),
    ]
}

/// Returns the rendezvous of an elastic job.
fn elastic(policy: &ElasticPolicy, topology: &Topology<'_>) -> Vec<EnvVar> {
    // A job without workers is invalid.
    let Some(workers) = topology.role(WORKER) else {
        return Vec::new();
    };
    let host = policy.rdzv_host.clone().unwrap_or_else(|| workers.host(0));
    let port = policy.rdzv_port.unwrap_or(workers.port);
    let (min, max) = policy.bounds(workers.replicas);
    let mut environment = vec![
        variable("PET_RDZV_ENDPOINT", format!("{host}:{port}")),
        variable("PET_RDZV_BACKEND", policy.backend()),
        variable("PET_NNODES", format!("{min}:{max}")),
    ];
    let conf = policy.rdzv_conf.as_deref().unwrap_or_default();
    let settings = [
        ("PET_MAX_RESTARTS", policy.max_restarts.map(|n| n.to_string())),
        (
            "PET_NPROC_PER_NODE",
            policy.n_proc_per_node.map(|n| n.to_string()),
        ),
        ("PET_RDZV_ID", policy.rdzv_id.clone()),
        ("PET_RDZV_CONF", (!conf.is_empty()).then(|| joined(conf))),
        (
            "PET_STANDALONE",
            (policy.standalone == Some(true)).then(String::new),
        ),
    ];
    let settings = settings.into_iter();
    environment.extend(settings.filter_map(|(name, value)| Some(variable(name, value?))));
    environment
}

fn joined(conf: &[crate::RdzvConf]) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let pairs = conf
        .iter()
        .map(|c| format!("{}={}", text(&c.key), text(&c.value)));
    pairs.collect::<Vec<_>>().join(",")
}

/// Returns true if a container of the role's template sets this variable.
fn sets(role: &Role<'_>, name: &str) -> bool {
    let containers = role.template().spec.iter().flat_map(|pod| &pod.containers);
    let mut set = containers.flat_map(|container| container.env.iter().flatten());
    set.any(|variable| variable.name == name)
}
