//! Warnings about valid jobs that cannot do what their author wants.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, EnvVar, LifecycleHandler, Pod, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::{COMMON_CONDITIONS, CleanPodPolicy, RestartPolicy};
use crate::job::{Outcome, Replica, ReplicaState, Replicas, Role};

use kube_schema::item;

use crate::job::FieldErrors;
use crate::validate::ValidJob;

use super::accelerators::additions;

/// Returns the warnings for a valid job. Only certain problems are reported.
pub fn warnings(job: &ValidJob<'_>) -> FieldErrors {
    let mut warnings = FieldErrors::default();
    check_policy(job, &mut warnings);
    check_conditions(job, &mut warnings);
    check_limit(job, &mut warnings);
    check_success(job, &mut warnings);
    let mut of_nodes = BTreeMap::new();
    for role in job.topology.roles.iter().filter(|role| role.replicas > 0) {
        let replica = Replica { role, index: 0 };
        let pod = super::pod(job, &replica, 0);
        check_host_network(job, role, &pod, &mut of_nodes, &mut warnings);
        check_ports(role, &pod, &mut warnings);
        check_mounts(role, &pod, &mut warnings);
        check_environment(job, &replica, &mut warnings);
        check_restart_policy(role, &pod, &mut warnings);
        check_accelerators(job, role, &mut warnings);
    }
    job.job.warn(&job.topology, &mut warnings);
    warnings
}

fn check_policy(job: &ValidJob<'_>, warnings: &mut FieldErrors) {
    let policy = &job.policy;
    if policy.active_deadline_seconds == Some(0) {
        warnings.push(
            job.job.run_policy_field("activeDeadlineSeconds"),
            "0 seconds fails the job as soon as the operator sees it",
            "set the seconds that the job may take, or remove it for no limit",
        );
    }
    if let (Some(ttl @ 1..), CleanPodPolicy::All) = (policy.ttl_seconds, &policy.clean_pods) {
        warnings.push(
            job.job.run_policy_field("ttlSecondsAfterFinished"),
            format!(
                "the job is kept for {ttl} s after its end, but cleanPodPolicy All deletes its pods and their logs immediately"
            ),
            "set cleanPodPolicy to Running to keep the logs of finished pods, or to None to keep all pods",
        );
    }
}

/// Warns about rules of the failure policy that match no failure.
fn check_conditions(job: &ValidJob<'_>, warnings: &mut FieldErrors) {
    let path = job.job.run_policy_field("failurePolicy");
    let rules = job.policy.failure.rules.iter().enumerate();
    for (rule, conditions) in rules.filter_map(|(n, rule)| Some((n, rule.on_pod_conditions.as_ref()?))) {
        for (n, condition) in conditions.iter().enumerate() {
            let type_ = condition.type_.as_str();
            if type_.is_empty() || COMMON_CONDITIONS.contains(&type_) {
                warnings.push(
                    format!("{path}.rules[{rule}].onPodConditions[{n}].type"),
                    format!("{type_:?} matches no failure, because only conditions that not every pod has are compared"),
                    "use DisruptionTarget for pods that were taken away, or onExitCodes",
                );
            }
        }
    }
}

fn check_limit(job: &ValidJob<'_>, warnings: &mut FieldErrors) {
    let policy = &job.policy;
    let never = |role: &Role<'_>| role.restart_policy == RestartPolicy::Never;
    if policy.backoff_limit.is_some_and(|limit| limit > 0)
        && policy.failure.rules.is_empty()
        && job.topology.roles.iter().all(never)
    {
        warnings.push(
            job.job.run_policy_field("backoffLimit"),
            "restartPolicy is Never in every role, so the first container that fails ends the job, and only deleted or \
             evicted pods count against this limit",
            "set restartPolicy to OnFailure or ExitCode, or remove backoffLimit",
        );
    }
}

/// Warns about a job that never succeeds. Under `Always` a kubelet restarts a container that ends with 0, so its
/// replica never succeeds.
fn check_success(job: &ValidJob<'_>, warnings: &mut FieldErrors) {
    // A kubelet restarts no container of a kind that answers failures itself.
    if job.job.framework().answers_failures {
        return;
    }
    let always = |role: &Role<'_>| role.restart_policy == RestartPolicy::Always;
    let state = |never_ends: bool| match never_ends {
        true => ReplicaState::Running,
        false => ReplicaState::Succeeded,
    };
    let roles = job.topology.roles.iter();
    for role in roles.filter(|role| role.replicas > 0 && always(role)) {
        let all_but_it = Replicas::new(&job.topology, |other, _| state(other.name() == role.name()));
        if job.outcome(&all_but_it) != Outcome::Succeeded {
            warnings.push(
                format!("{}.restartPolicy", role.field),
                "Always restarts a container that ends with exit code 0, so the job never succeeds",
                "use OnFailure",
            );
        }
    }
}

/// Warns about roles in their node's network whose ports collide: their ports are the node's. Also warns about a DNS
/// policy that does not resolve the job's replicas. `of_nodes` has the ports of the earlier roles, with the roles.
fn check_host_network<'a>(
    job: &ValidJob<'_>,
    role: &'a Role<'_>,
    pod: &Pod,
    of_nodes: &mut BTreeMap<(i32, String), &'a str>,
    warnings: &mut FieldErrors,
) {
    let Some(spec) = pod.spec.as_ref().filter(|spec| spec.host_network == Some(true)) else {
        return;
    };
    let at = format!("{}.spec", role.template_path());
    let dns_policy = spec.dns_policy.as_deref().filter(|policy| !policy.is_empty());
    if job.job.framework().has_services()
        && job.topology.total() > 1
        && matches!(dns_policy, None | Some("ClusterFirst" | "Default"))
    {
        warnings.push(
            format!("{at}.dnsPolicy"),
            "with hostNetwork the pod uses its node's DNS servers, which cannot resolve the job's replicas",
            "set it to ClusterFirstWithHostNet",
        );
    }
    let mut of_pod = BTreeSet::new();
    for (n, container) in spec.containers.iter().enumerate() {
        for port in container.ports.iter().flatten() {
            let number = port.container_port;
            let key = (number, port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()));
            if let Some(other) = of_nodes.get(&key) {
                warnings.push(
                    format!("{}.ports", item(&format!("{at}.containers"), n)),
                    format!(
                        "pods of {other} and {} both use port {number} of their node, so they cannot run on one node",
                        role.name()
                    ),
                    "give the roles different ports, or remove hostNetwork",
                );
            }
            of_pod.insert(key);
        }
    }
    of_nodes.extend(of_pod.into_iter().map(|key| (key, role.name())));
}

/// Warns about probes and hooks that name an unknown port. A name is looked up among the ports of its own container.
fn check_ports(role: &Role<'_>, pod: &Pod, warnings: &mut FieldErrors) {
    let Some(spec) = &pod.spec else { return };
    let inits = spec.init_containers.as_deref().unwrap_or_default();
    for (list, containers) in [("containers", &spec.containers[..]), ("initContainers", inits)] {
        for (n, container) in containers.iter().enumerate() {
            let ports = container.ports.iter().flatten();
            let known: BTreeSet<&str> = ports.filter_map(|p| p.name.as_deref()).collect();
            for (field, port) in references(container) {
                let IntOrString::String(name) = port else { continue };
                if known.contains(name.as_str()) {
                    continue;
                }
                let at = item(&format!("{}.spec.{list}", role.template_path()), n);
                let there_are = known.iter().copied().collect::<Vec<_>>().join(", ");
                warnings.push(
                    format!("{at}.{field}.port"),
                    format!("container {:?} has no port named {name:?}", container.name),
                    match there_are.as_str() {
                        "" => "use the port's number, or name the port in the container's ports".to_owned(),
                        names => format!("use one of {names}, or the port's number"),
                    },
                );
            }
        }
    }
}

/// Warns about mounts of missing volumes. The API server rejects such a pod, unless a webhook has added the volume.
fn check_mounts(role: &Role<'_>, pod: &Pod, warnings: &mut FieldErrors) {
    let Some(spec) = &pod.spec else { return };
    let volumes = spec.volumes.iter().flatten().map(|v| v.name.as_str());
    let volumes: BTreeSet<&str> = volumes.collect();
    let inits = spec.init_containers.as_deref().unwrap_or_default();
    for (list, containers) in [("containers", &spec.containers[..]), ("initContainers", inits)] {
        for (n, container) in containers.iter().enumerate() {
            for (m, mount) in container.volume_mounts.iter().flatten().enumerate() {
                if volumes.contains(mount.name.as_str()) {
                    continue;
                }
                let at = item(&format!("{}.spec.{list}", role.template_path()), n);
                let there_are = volumes.iter().copied().collect::<Vec<_>>().join(", ");
                warnings.push(
                    format!("{}.name", item(&format!("{at}.volumeMounts"), m)),
                    format!("the pod has no volume {:?}", mount.name),
                    match there_are.as_str() {
                        "" => format!("add it to {}.spec.volumes", role.template_path()),
                        names => format!(
                            "use one of {names}, or add it to {}.template.spec.volumes",
                            role.field
                        ),
                    },
                );
            }
        }
    }
}

/// Returns the ports that a container's probes and hooks name, with their fields.
fn references(container: &Container) -> Vec<(String, &IntOrString)> {
    let mut found = Vec::new();
    let probes = [
        ("livenessProbe", &container.liveness_probe),
        ("readinessProbe", &container.readiness_probe),
        ("startupProbe", &container.startup_probe),
    ];
    for (field, probe) in probes {
        let Some(Probe {
            http_get, tcp_socket, ..
        }) = probe
        else {
            continue;
        };
        found.extend(
            http_get
                .iter()
                .map(|http| (format!("{field}.httpGet"), &http.port)),
        );
        found.extend(
            tcp_socket
                .iter()
                .map(|tcp| (format!("{field}.tcpSocket"), &tcp.port)),
        );
    }
    let Some(lifecycle) = &container.lifecycle else {
        return found;
    };
    for (field, handler) in [
        ("postStart", &lifecycle.post_start),
        ("preStop", &lifecycle.pre_stop),
    ] {
        let Some(LifecycleHandler {
            http_get: Some(http), ..
        }) = handler
        else {
            continue;
        };
        found.push((format!("lifecycle.{field}.httpGet"), &http.port));
    }
    found
}

fn check_environment(job: &ValidJob<'_>, replica: &Replica<'_>, warnings: &mut FieldErrors) {
    let ours = job.job.env(&job.topology, replica);
    let spec = replica.role.template().spec.as_ref();
    let only_main = job.job.framework().env_main_container_only;
    let containers = spec.iter().flat_map(|s| &s.containers).enumerate();
    for (n, container) in containers.filter(|(n, _)| !only_main || Some(*n) == replica.role.container) {
        let list = item(&format!("{}.spec.containers", replica.role.template_path()), n);
        for (m, variable) in container.env.iter().flatten().enumerate() {
            let at = item(&format!("{list}.env"), m);
            let value = variable.value.as_deref().unwrap_or_default();
            match ours.iter().find(|v| v.name == variable.name) {
                Some(replaced) if replaced == variable => {}
                Some(_) => warnings.push(
                    at,
                    format!(
                        "{} is set by the operator, which replaces this value",
                        variable.name
                    ),
                    "remove it, or use another name",
                ),
                None => {
                    // A kubelet resolves references to variables that are before the one with the reference.
                    let later = ours.iter().filter(|v| refers_to(value, &v.name));
                    let later = later.min_by_key(|v| value.find(&format!("$({})", v.name)));
                    if let Some(EnvVar { name, .. }) = later {
                        warnings.push(
                            format!("{at}.value"),
                            format!("$({name}) stays as it is, because the operator sets {name} after this variable"),
                            format!("use $({name}) in command or args, where it is replaced"),
                        );
                    }
                }
            }
        }
    }
}

/// True if a value has the reference `$(name)`. `$$(name)` is text.
fn refers_to(value: &str, name: &str) -> bool {
    let reference = format!("$({name})");
    let mut found = value.match_indices(&reference);
    found.any(|(at, _)| value[..at].bytes().rev().take_while(|b| *b == b'$').count() % 2 == 0)
}

fn check_restart_policy(role: &Role<'_>, pod: &Pod, warnings: &mut FieldErrors) {
    let own = role
        .template()
        .spec
        .as_ref()
        .and_then(|s| s.restart_policy.as_deref());
    let made = pod.spec.as_ref().and_then(|s| s.restart_policy.as_deref());
    if let (Some(own), Some(made)) = (own.filter(|own| !own.is_empty()), made)
        && own != made
    {
        warnings.push(
            format!("{}.spec.restartPolicy", role.template_path()),
            format!("{own} has no effect, because the role's restartPolicy makes it {made}"),
            format!("set {}.restartPolicy instead, and remove this", role.field),
        );
    }
    let ends = [RestartPolicy::Never, RestartPolicy::ExitCode];
    if let Some(policy) = role
        .spec
        .restart_policy
        .as_ref()
        .filter(|policy| ends.contains(policy))
        && role.definition.always_replaced
    {
        warnings.push(
            format!("{}.restartPolicy", role.field),
            format!(
                "{} has no effect, because replicas of this role are replaced whenever they end",
                policy.as_str()
            ),
            "remove it; set runPolicy.backoffLimit to bound the restarts",
        );
    }
}

fn check_accelerators(job: &ValidJob<'_>, role: &Role<'_>, warnings: &mut FieldErrors) {
    let Some(spec) = &role.template().spec else {
        return;
    };
    let accelerators = &job.topology.settings.accelerators;
    for kept in additions(spec, role.container, accelerators).kept {
        warnings.push(
            format!("{}.spec.{}", role.template_path(), kept.field),
            kept.problem,
            "remove it, or use another name or path",
        );
    }
}
