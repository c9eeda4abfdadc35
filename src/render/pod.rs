//! Renders a replica's pod.

use k8s_openapi::api::core::v1::{Container, ContainerPort, EnvVar, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::{RestartPolicy, labels};
use crate::job::{Replica, Role, Topology};
use crate::validate::{ValidJob, framework_port};

use super::accelerators::additions;
use super::confine;
use super::gang;
use super::mounts;

/// Returns the pod of `replica` in the given attempt (0 for the first).
///
/// The template is used as it is, with these changes:
///
/// * The restart policy follows from the replica spec.
/// * Service links are off, unless the template sets them: replicas find each other by name, and each service of the
///   namespace would add seven variables to every container.
/// * The framework's ports are added if the container has no ports of these names.
/// * The termination message of the framework's container is the end of its log, unless the template sets it.
/// * Additions of the operator's settings for devices that the framework's container requests are added, where the
///   template sets nothing else.
/// * The framework's environment is added to every container that gets it (never to init containers). It follows the
///   user's variables, and replaces those of the same name.
/// * Objects of the job that its kind declares as mounted are mounted.
/// * A pod of a compact job has its name as host name, in the domain of the job's service. It searches this domain for
///   the names of the others. The common part of all environments comes from a ConfigMap.
/// * Containers that the kind adds fit the pod security standard `restricted` where the template's own do.
pub fn pod(job: &ValidJob<'_>, replica: &Replica<'_>, attempt: u32) -> Pod {
    let framework = job.job.framework();
    let template = replica.role.template();
    let from_template = template.metadata.clone().unwrap_or_default();

    let mut all_labels = from_template.labels.unwrap_or_default();
    all_labels.extend(super::replica_labels(job, replica));
    let owner = super::owner(job);
    if job.job.is_master(&job.topology, replica) {
        all_labels.insert(framework.keys().job_role(), "master".to_owned());
    }
    let mut annotations = from_template.annotations.unwrap_or_default();
    annotations.remove(labels::RESTART_ATTEMPT);
    if attempt > 0 {
        annotations.insert(labels::RESTART_ATTEMPT.to_owned(), attempt.to_string());
    }

    let mut spec = template.spec.clone().unwrap_or_default();
    let by_rules = framework.answers_failures || !job.policy.failure.rules.is_empty();
    spec.restart_policy = Some(kubelet_policy(replica.role, by_rules).to_owned());
    spec.enable_service_links.get_or_insert(false);
    let main = replica.role.container;
    if let Some(container) = main.and_then(|n| spec.containers.get_mut(n)) {
        for (name, number) in framework.ports_of(replica.role.definition) {
            add_port(container, name, number);
        }
        use_log_as_message(container);
    }
    let accelerators = &job.topology.settings.accelerators;
    additions(&spec, main, accelerators).add_to(&mut spec);
    let environment = job.job.env(&job.topology, replica);
    for (n, container) in spec.containers.iter_mut().enumerate() {
        if !framework.env_main_container_only || Some(n) == main {
            add_environment(container, &environment);
        }
    }
    if let Some(service) = &job.topology.common_service {
        set_dns_domain(&mut spec, replica.host(), service, &job.topology);
    }
    mounts::add(job, replica.role, &mut spec);
    job.job.customize(&job.topology, replica, &mut spec);
    confine::added_containers(&mut spec, template.spec.as_ref(), main);
    if let Some(shared) = &job.shared {
        let containers = spec.containers.iter_mut();
        containers.for_each(|container| shared.replace_in(container));
    }

    if let Some(scheduler) = &job.topology.settings.gang_scheduler {
        let marks = [&mut all_labels, &mut annotations];
        gang::join(scheduler, job.topology.job, replica.role, &mut spec, marks);
    }

    Pod {
        metadata: ObjectMeta {
            name: Some(replica.pod_name()),
            namespace: Some(job.topology.namespace.to_owned()),
            labels: Some(all_labels),
            annotations: Some(annotations).filter(|a| !a.is_empty()),
            finalizers: from_template.finalizers.filter(|f| !f.is_empty()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

/// Returns the restart policy of a pod. The operator carries out `ExitCode` and the rules of a failure policy, so the
/// kubelet must leave such a pod as it ended.
fn kubelet_policy<'r>(role: &'r Role<'_>, by_rules: bool) -> &'r str {
    if role.definition.always_replaced {
        return RestartPolicy::Never.as_str();
    }
    let policy = &role.restart_policy;
    match policy {
        RestartPolicy::ExitCode => RestartPolicy::Never.as_str(),
        _ if by_rules => RestartPolicy::Never.as_str(),
        policy => policy.as_str(),
    }
}

fn add_port(container: &mut Container, name: &str, number: i32) {
    if framework_port(container, name).is_none() {
        let port = ContainerPort {
            name: Some(name.to_owned()),
            container_port: number,
            ..ContainerPort::default()
        };
        container.ports.get_or_insert_default().push(port);
    }
}

/// Makes the kubelet use the end of the log as the termination message of a container that fails, so that
/// `status.failure` shows the error. A container with its own settings for the message keeps them.
fn use_log_as_message(container: &mut Container) {
    if container.termination_message_path.is_none() {
        let policy = &mut container.termination_message_policy;
        policy.get_or_insert_with(|| "FallbackToLogsOnError".to_owned());
    }
}

/// Sets the host name by which the other pods look up this pod, and adds their domain to its searches, so that it
/// finds them by their short names. The domain comes before the searches of the template, and after those of the
/// kubelet.
fn set_dns_domain(spec: &mut PodSpec, host: String, service: &str, topology: &Topology<'_>) {
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
