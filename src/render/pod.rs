//! A replica's pod.

use k8s_openapi::api::core::v1::{Container, ContainerPort, EnvVar, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::{RestartPolicy, labels};
use crate::job::{Replica, Topology, TrainingJob};
use crate::validate::{ValidJob, framework_port};

use super::accelerators::additions;
use super::gang;

/// The pod of `replica` in its given attempt (0 for the first).
///
/// The template is taken as it is but for: the restart policy, which the replica spec says; the
/// framework's port, which is added if the container has none of that name; what the operator's settings have for devices that
/// the framework's container asks for, where the template says nothing else; and the framework's
/// environment, which goes to every container that gets it (never to init containers) behind the
/// user's variables, in place of any of the same name. A pod of a compact job has its name as its host name, in the domain of
/// the job's service, which is searched for the others' names; and it takes from a ConfigMap what is the same in all
/// environments.
pub fn pod<J: TrainingJob>(job: &ValidJob<'_, J>, replica: &Replica<'_>, attempt: u32) -> Pod {
    let framework = J::FRAMEWORK;
    let template = replica.role.template();
    let from_template = template.metadata.clone().unwrap_or_default();

    let mut all_labels = from_template.labels.unwrap_or_default();
    all_labels.extend(super::replica_labels(job, replica));
    if job.job.is_master(&job.topology, replica) {
        all_labels.insert(labels::JOB_ROLE.to_owned(), "master".to_owned());
    }
    let mut annotations = from_template.annotations.unwrap_or_default();
    annotations.remove(labels::RESTART_ATTEMPT);
    if attempt > 0 {
        annotations.insert(labels::RESTART_ATTEMPT.to_owned(), attempt.to_string());
    }

    let mut spec = template.spec.clone().unwrap_or_default();
    let by_rules = !job.policy.failure.rules.is_empty();
    spec.restart_policy = Some(kubelet_policy(&replica.role.restart_policy, by_rules).to_owned());
    let main = framework.container_of(&spec.containers);
    if let Some(container) = main.and_then(|n| spec.containers.get_mut(n)) {
        add_port(container, framework.port_name, framework.port);
    }
    let accelerators = &job.topology.settings.accelerators;
    additions(&spec, main, accelerators).add_to(&mut spec);
    let environment = job.job.env(&job.topology, replica);
    for (n, container) in spec.containers.iter_mut().enumerate() {
        if !framework.env_in_its_container_only || Some(n) == main {
            add_environment(container, &environment);
        }
    }
    if let Some(service) = &job.topology.common_service {
        enter_domain(&mut spec, replica.host(), service, &job.topology);
    }
    job.job.customize(&job.topology, replica, &mut spec);
    if let Some(shared) = &job.shared {
        let containers = spec.containers.iter_mut();
        containers.for_each(|container| shared.take_from(container));
    }

    if let Some(scheduler) = &job.topology.settings.gang_scheduler {
        let marks = [&mut all_labels, &mut annotations];
        gang::join(scheduler, job.topology.job, replica.role, &mut spec, marks);
    }

    Pod {
        metadata: ObjectMeta {
            name: Some(replica.host()),
            namespace: Some(job.topology.namespace.to_owned()),
            labels: Some(all_labels),
            annotations: Some(annotations).filter(|a| !a.is_empty()),
            finalizers: from_template.finalizers.filter(|f| !f.is_empty()),
            owner_references: Some(vec![super::owner(job)]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

/// `ExitCode` and the rules of a failure policy are the operator's to carry out: the kubelet must leave the pod as it ended.
fn kubelet_policy(policy: &RestartPolicy, by_rules: bool) -> &str {
    match policy {
        RestartPolicy::ExitCode => RestartPolicy::Never.as_str(),
        _ if by_rules => RestartPolicy::Never.as_str(),
        policy => policy.as_str(),
    }
}

fn add_port(container: &mut Container, name: &str, number: i32) {
    if !name.is_empty() && framework_port(container, name).is_none() {
        let port = ContainerPort {
            name: Some(name.to_owned()),
            container_port: number,
            ..ContainerPort::default()
        };
        container.ports.get_or_insert_default().push(port);
    }
}

/// Gives a pod the name under which the others look for it, and lets it look for them by their short names: what it
/// searches itself comes behind, and what the kubelet has it search goes before.
fn enter_domain(spec: &mut PodSpec, host: String, service: &str, topology: &Topology<'_>) {
    spec.hostname = Some(host);
    spec.subdomain = Some(service.to_owned());
    let domain = format!("{}.{}", topology.domain(), topology.settings.cluster_domain);
    let searches = spec
        .dns_config
        .get_or_insert_default()
        .searches
        .get_or_insert_default();
    searches.retain(|own| *own != domain);
    searches.insert(0, domain);
}

fn add_environment(container: &mut Container, environment: &[EnvVar]) {
    if environment.is_empty() {
        return;
    }
    let variables = container.env.get_or_insert_default();
    variables.retain(|v| !environment.iter().any(|ours| ours.name == v.name));
    variables.extend_from_slice(environment);
}
