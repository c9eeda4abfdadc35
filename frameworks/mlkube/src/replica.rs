//! What both kinds make of an entry of their list of replica specs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerPort, PodTemplateSpec};
use training_job::api::{ReplicaSpec, RestartPolicy};
use training_job::{Replica, ReplicaNames, RoleDefinition};

/// An entry as the library has it.
///
/// The old operators ran a batch Job for each replica. The template's restart policy says what becomes of a failed one:
/// with `Never` the job fails; else an exit code from 128 on restarts and a lower one fails the job. So
/// the policy is taken out of the template: the operator restarts, not the kubelet.
pub(crate) fn spec(
    replicas: Option<i32>,
    template: Option<&PodTemplateSpec>,
    container: &str,
    (port_name, port): (&str, Option<i32>),
) -> ReplicaSpec {
    let mut template = template.cloned().unwrap_or_default();
    let policy = template.spec.as_mut().and_then(|pod| pod.restart_policy.take());
    let containers = template.spec.iter_mut().flat_map(|pod| &mut pod.containers);
    if let (Some(port), Some(container)) = (port, containers.into_iter().find(|c| c.name == container)) {
        let ports = container.ports.get_or_insert_default();
        if ports.iter().all(|port| port.name.as_deref() != Some(port_name)) {
            ports.push(ContainerPort {
                name: Some(port_name.to_owned()),
                container_port: port,
                ..ContainerPort::default()
            });
        }
    }
    ReplicaSpec {
        replicas,
        template,
        restart_policy: Some(match policy.as_deref() {
            Some("Never") => RestartPolicy::Never,
            _ => RestartPolicy::ExitCode,
        }),
    }
}

/// `<job>-<type in lower case>-<runtime id>-<index>`.
pub(crate) fn names(job: Option<&str>, role: &RoleDefinition, runtime_id: &str) -> ReplicaNames {
    let job = job.unwrap_or_default();
    ReplicaNames::Indexed(format!("{job}-{}-{runtime_id}", role.slug()))
}

/// The labels that the old operators gave a replica: `group` marks their own, `job_label` has the job's name.
pub(crate) fn labels(
    group: &str,
    job_label: &str,
    job: &str,
    runtime_id: &str,
    replica: &Replica<'_>,
) -> BTreeMap<String, String> {
    [
        (group, String::new()),
        ("job_type", replica.role.name().to_owned()),
        ("runtime_id", runtime_id.to_owned()),
        (job_label, job.to_owned()),
        ("task_index", replica.index.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// Whether a replica that ended so is restarted: from 128 on, which is what a signal leaves, but never what was killed
/// for its memory, which would be again.
pub(crate) fn is_retryable(exit_code: i32, reason: &str) -> bool {
    exit_code >= 128 && reason != "OOMKilled"
}
