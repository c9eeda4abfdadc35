//! A replica's service: the host name by which the others find it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::job::Replica;
use crate::job::TrainingJob;
use crate::validate::{ValidJob, framework_port};

/// The headless service of `replica`, with the ports of its framework's container.
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
            ports: Some(ports::<J>(replica)).filter(|p| !p.is_empty()),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

fn ports<J: TrainingJob>(replica: &Replica<'_>) -> Vec<ServicePort> {
    let framework = J::FRAMEWORK;
    let spec = replica.role.template().spec.as_ref();
    let Some(main) = spec.and_then(|s| s.containers.iter().find(|c| c.name == framework.container)) else {
        return Vec::new();
    };
    let own = main
        .ports
        .iter()
        .flatten()
        .map(|p| (p.name.as_deref(), p.container_port, p.protocol.as_deref()));
    let added = framework_port(main, framework.port_name).is_none().then_some((
        Some(framework.port_name),
        framework.port,
        None,
    ));
    let mut seen = BTreeSet::new();
    let kept: Vec<_> = own
        .chain(added)
        .filter(|(_, n, p)| seen.insert((*n, p.unwrap_or("TCP"))))
        .collect();
    let several = kept.len() > 1;
    kept.into_iter()
        .map(|(name, number, protocol)| ServicePort {
            name: match (name.filter(|name| !name.is_empty()), protocol.unwrap_or("TCP")) {
                (Some(name), _) => Some(name.to_owned()),
                (None, _) if !several => None,
                (None, "TCP") => Some(format!("port-{number}")),
                // Two protocols may share a number, and must not share a name.
                (None, protocol) => Some(format!("port-{number}-{}", protocol.to_lowercase())),
            },
            port: number,
            protocol: protocol.map(str::to_owned),
            ..ServicePort::default()
        })
        .collect()
}
