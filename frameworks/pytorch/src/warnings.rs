//! Warnings about valid PyTorchJobs that cannot do what their author intends.

use training_job::{FieldErrors, Role, Topology};

use crate::PyTorchJob;
use crate::environment::WORKER;

/// Programs that start several processes in a pod.
const LAUNCHERS: [&str; 6] = [
    "torchrun",
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate",
    "deepspeed",
    "lightning",
];

pub(crate) fn add(job: &PyTorchJob, topology: &Topology<'_>, warnings: &mut FieldErrors) {
    check_processes(job, topology, warnings);
    check_minimum(job, topology, warnings);
}

/// Warns of a number of processes without torchrun. The number is an argument of torchrun. It also multiplies
/// `WORLD_SIZE`, and other programs wait for that many processes.
fn check_processes(job: &PyTorchJob, topology: &Topology<'_>, warnings: &mut FieldErrors) {
    let older = job.spec.elastic_policy.as_ref().and_then(|p| p.n_proc_per_node);
    let (field, processes) = match older {
        Some(n) => ("spec.elasticPolicy.nProcPerNode", u64::try_from(n).unwrap_or(0)),
        None => ("spec.nprocPerNode", job.spec.processes_if_counted()),
    };
    let mut roles = topology.roles.iter().filter(|role| role.replicas > 0);
    if processes > 1
        && let Some(role) = roles.find(|role| is_plain_python(role))
    {
        let problem = format!(
            "python starts one process in a {}, and no program starts the other {}",
            role.name(),
            processes - 1
        );
        warnings.push(
            field,
            problem,
            "start the script with torchrun, or remove the field",
        );
    }
}

/// Returns true if the container runs Python without a launcher.
fn is_plain_python(role: &Role<'_>) -> bool {
    let spec = role.template().spec.as_ref();
    let container = role.container.and_then(|n| spec?.containers.get(n));
    let Some(container) = container else { return false };
    let mut words = container.command.iter().chain(&container.args).flatten();
    let program = words.next().and_then(|word| word.rsplit('/').next());
    program.is_some_and(|program| program.starts_with("python"))
        && !words.any(|word| LAUNCHERS.iter().any(|launcher| word.contains(launcher)))
}

/// Warns of fewer workers than the minimum. Workers wait for each other until there are enough. An autoscaler would
/// add them.
fn check_minimum(job: &PyTorchJob, topology: &Topology<'_>, warnings: &mut FieldErrors) {
    let Some(policy) = job.spec.elastic_policy.as_ref().filter(|p| p.metrics.is_none()) else {
        return;
    };
    let minimum = policy.min_replicas.and_then(|n| u32::try_from(n).ok());
    if topology.role(WORKER).is_some() && minimum.is_some_and(|minimum| topology.total() < minimum) {
        warnings.push(
            "spec.elasticPolicy.minReplicas",
            "exceeds the number of replicas, so no worker starts to train",
            "lower it, or use more workers",
        );
    }
}
