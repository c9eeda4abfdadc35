//! Renders a replica's service, whose name is the host name by which other replicas find it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::job::{Replica, Role};
use crate::validate::{ValidJob, framework_port};

/// Returns the service of `replica`, with the ports of its framework's container. For jobs with a service per
/// replica.
///
/// Ports keep their order and protocol. A port number is exposed once per protocol, under its first name. If there
/// are several ports, a port without a name gets one, because the API server would reject the service otherwise.
/// Unready pods are published as well, because a replica may not become ready before it has found the others.
///
/// The service is headless unless other replicas dial this one and the job has stable addresses. Then it gets a
/// cluster IP, which stays the same while pods are replaced. A service with a cluster IP needs a port.
pub fn service(job: &ValidJob<'_>, replica: &Replica<'_>) -> Service {
    let has_cluster_ip = has_cluster_ip(job, replica);
    let ports = named(ports_of(job, replica.role));
    // Labels of the kind may differ between versions of the spec, and a pod keeps the labels that it was created
    // with.
    let selector = super::own_labels(job, replica);
    Service {
        metadata: ObjectMeta {
            name: Some(replica.host()),
            namespace: Some(job.topology.namespace.to_owned()),
            labels: Some(super::replica_labels(job, replica)),
            owner_references: Some(vec![super::owner(job)]),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            cluster_ip: (!has_cluster_ip).then(|| "None".to_owned()),
            publish_not_ready_addresses: Some(true),
            selector: Some(selector),
            ports: Some(ports).filter(|ports| !ports.is_empty()),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Returns the names of the job's services that have no cluster IP.
pub(crate) fn headless(job: &ValidJob<'_>) -> BTreeSet<String> {
    if let Some(name) = &job.topology.common_service {
        return [name.clone()].into();
    }
    let replicas = job
        .topology
        .all()
        .filter(|replica| replica.role.definition.has_service);
    let headless = replicas.filter(|replica| !has_cluster_ip(job, replica));
    headless.map(|replica| replica.host()).collect()
}

/// Returns true if the service of a replica has a cluster IP. A cluster has a limited number of them.
fn has_cluster_ip(job: &ValidJob<'_>, replica: &Replica<'_>) -> bool {
    job.policy.stable_address
        && !ports_of(job, replica.role).is_empty()
        && job.job.is_dialed(&job.topology, replica)
}

/// Returns the one headless service of a compact job, with the ports of all its roles.
///
/// Unready pods are published as well, because a replica may not become ready before it has found the others.
pub(super) fn common(job: &ValidJob<'_>, name: &str) -> Service {
    let roles = job.topology.roles.iter().filter(|role| role.replicas > 0);
    let ports = named(roles.flat_map(|role| ports_of(job, role)));
    let labels: BTreeMap<_, _> = super::job_labels(job).into();
    Service {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(job.topology.namespace.to_owned()),
            labels: Some(labels.clone()),
            owner_references: Some(vec![super::owner(job)]),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            publish_not_ready_addresses: Some(true),
            selector: Some(labels),
            ports: Some(ports).filter(|ports| !ports.is_empty()),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// A port of a container: name, number and protocol.
type Port<'a> = (Option<&'a str>, i32, Option<&'a str>);

/// Returns the ports of the framework's container in a role's pods.
fn ports_of<'a>(job: &ValidJob<'_>, role: &'a Role<'_>) -> Vec<Port<'a>> {
    let framework = job.job.framework();
    let Some(main) = role.main_container() else {
        return Vec::new();
    };
    let own = main
        .ports
        .iter()
        .flatten()
        .map(|p| (p.name.as_deref(), p.container_port, p.protocol.as_deref()));
    let added = framework.ports_of(role.definition).into_iter();
    let added = added.filter(|(name, _)| framework_port(main, name).is_none());
    own.chain(added.map(|(name, number)| (Some(name), number, None)))
        .collect()
}

/// Returns the ports of a service: each number once per protocol, under unique names.
fn named<'a>(ports: impl IntoIterator<Item = Port<'a>>) -> Vec<ServicePort> {
    let mut seen = BTreeSet::new();
    let kept: Vec<_> = ports
        .into_iter()
        .filter(|(_, n, p)| seen.insert((*n, p.unwrap_or("TCP"))))
        .collect();
    let several = kept.len() > 1;
    let mut names = BTreeSet::new();
    kept.into_iter()
        .map(|(name, number, protocol)| {
            let own = name.filter(|name| !name.is_empty() && names.insert(*name));
            ServicePort {
                name: match (own, protocol.unwrap_or("TCP")) {
                    (Some(name), _) => Some(name.to_owned()),
                    (None, _) if !several => None,
                    (None, "TCP") => Some(format!("port-{number}")),
                    // Two protocols may share a number, but not a name.
                    (None, protocol) => Some(format!("port-{number}-{}", protocol.to_lowercase())),
                },
                port: number,
                protocol: protocol.map(str::to_owned),
                ..ServicePort::default()
            }
        })
        .collect()
}
