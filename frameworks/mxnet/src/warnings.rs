//! Warnings about valid MXJobs that cannot do what their author intends.

use training_job::{FieldErrors, Topology};

use crate::environment::TUNER_SERVER_KEY;
use crate::{JobMode, MXJob};

pub(crate) fn add(job: &MXJob, topology: &Topology<'_>, warnings: &mut FieldErrors) {
    if job.spec.mode() == Some(JobMode::Train) {
        check_roles(topology, warnings);
    }
    for role in topology.roles.iter().filter(|role| role.replicas > 0) {
        if job.spec.label(role.name()).is_none() {
            continue;
        }
        let field = format!("{}.label", role.field);
        if role.name() != "TunerServer" {
            let problem = format!(
                "has no effect on a {}, because only tuner servers have a key",
                role.name()
            );
            warnings.push(field, problem, "remove it, or move it to the TunerServer");
        } else if role.annotation(TUNER_SERVER_KEY).is_some() {
            let problem = format!(
                "has no effect, because the template's annotation {TUNER_SERVER_KEY} takes precedence"
            );
            warnings.push(field, problem, "remove it");
        }
    }
}

/// Warns of roles that cannot form a cluster. The scheduler connects servers and workers: they wait for it, and it
/// waits for the configured number of them. Without a scheduler, its address in their environment is empty.
fn check_roles(topology: &Topology<'_>, warnings: &mut FieldErrors) {
    let role = |name| topology.role(name);
    match (role("Scheduler"), role("Server"), role("Worker")) {
        (None, Some(server), _) => warnings.push(
            server.field.as_str(),
            "servers cannot find workers without a scheduler",
            "add a Scheduler with 1 replica, or remove the servers",
        ),
        (None, None, Some(workers)) if workers.replicas > 1 => warnings.push(
            workers.field.as_str(),
            format!(
                "{} workers cannot find each other without a scheduler, because DMLC_PS_ROOT_URI is empty",
                workers.replicas
            ),
            "add a Scheduler with 1 replica and a Server, or use 1 worker",
        ),
        (Some(scheduler), _, None) => warnings.push(
            scheduler.field.as_str(),
            "a scheduler without workers never starts the training, because DMLC_NUM_WORKER is 0",
            "add a Worker",
        ),
        _ => {}
    }
}
