//! Converts the entries of the list of replica specs, for both kinds.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerPort, PodTemplateSpec};
use training_job::api::{ReplicaSpec, RestartPolicy};
use training_job::{Replica, ReplicaNames, RoleDefinition};

/// Returns an entry as a replica spec of the library.
///
/// The old operators ran a batch Job for each replica. The restart policy of the template decided what followed a
/// failure. With `Never` the job failed. With other policies exit codes of 128 or more restarted the replica, and
/// lower ones failed the job. The policy is removed from the template, because the operator restarts the replica, not
/// the kubelet.
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

/// Returns the replicas' names, `<job>-<type in lower case>-<runtime id>-<index>`.
pub(crate) fn names(job: Option<&str>, role: &RoleDefinition, runtime_id: &str) -> ReplicaNames {
    let job = job.unwrap_or_default();
    ReplicaNames::Indexed(format!("{job}-{}-{runtime_id}", role.slug()))
}

/// Returns the labels that the old operators set on a replica. `group` marks their own pods, `job_label` contains the
/// job's name.
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

/// Returns true if a replica that ended this way is restarted: for exit codes of 128 or more, which signals cause. A
/// replica that was killed for its memory is not restarted, because it would be killed again.
pub(crate) fn is_retryable(exit_code: i32, reason: &str) -> bool {
    exit_code >= 128 && reason != "OOMKilled"
}
