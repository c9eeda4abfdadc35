//! A replica's service: the host name by which the others find it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::job::{Replica, Role, TrainingJob};
use crate::validate::{ValidJob, framework_port};

/// The headless service of `replica`, with the ports of its framework's container: in a job that has a service for each.
///
/// Ports keep their order and protocol. A port number is exposed once per protocol, under its first
/// name, and a port without a name gets one if there are several: the API server would refuse the
/// service otherwise.
pub fn service<J: TrainingJob>(job: &ValidJob<'_, J>, replica: &Replica<'_>) -> Service {
    // What the kind adds may differ from one version of the spec to the next, and a pod keeps what it was made with.
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
            cluster_ip: Some("None".to_owned()),
            selector: Some(selector),
            ports: Some(named(ports_of::<J>(replica.role))).filter(|p| !p.is_empty()),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// The one headless service of a compact job, with the ports of all its roles.
///
/// Its names lead to pods that are not ready as well: a replica may not be ready before it has found the others.
pub(super) fn common<J: TrainingJob>(job: &ValidJob<'_, J>, name: &str) -> Service {
    let roles = job.topology.roles.iter().filter(|role| role.replicas > 0);
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
            ports: Some(named(roles.flat_map(ports_of::<J>))).filter(|p| !p.is_empty()),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// A port as a container names it: its name, number and protocol.
type Port<'a> = (Option<&'a str>, i32, Option<&'a str>);

/// The ports of the framework's container in a role's pods.
fn ports_of<'a, J: TrainingJob>(role: &'a Role<'_>) -> Vec<Port<'a>> {
    let framework = J::FRAMEWORK;
    let spec = role.template().spec.as_ref();
    let main = spec.and_then(|s| s.containers.get(framework.container_of(&s.containers)?));
    let Some(main) = main else {
        return Vec::new();
    };
    let own = main
        .ports
        .iter()
        .flatten()
        .map(|p| (p.name.as_deref(), p.container_port, p.protocol.as_deref()));
    let is_missing = !framework.port_name.is_empty() && framework_port(main, framework.port_name).is_none();
    let added = is_missing.then_some((Some(framework.port_name), framework.port, None));
    own.chain(added).collect()
}

/// Ports as a service has them: each number once per protocol, under names of which none is there twice.
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
                    // Two protocols may share a number, and must not share a name.
                    (None, protocol) => Some(format!("port-{number}-{}", protocol.to_lowercase())),
                },
                port: number,
                protocol: protocol.map(str::to_owned),
                ..ServicePort::default()
            }
        })
        .collect()
}
