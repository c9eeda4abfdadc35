//! The ports of a replica's service (#39): in the container's order, with their protocols, and always
//! such as the API server takes.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use training_job::{Settings, render, validate};
use training_job_mxnet::MXJob;

/// The service's ports for these ports of the container, as `name number/protocol`.
fn service_ports(ports: &str) -> Vec<String> {
    let job: MXJob = serde_saphyr::from_str(&format!(
        "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {{name: job}}\nspec:\n  jobMode: MXTrain\n  \
         mxReplicaSpecs: {{Worker: {{template: {{spec: {{containers: [{{name: mxnet, image: a, ports: {ports}}}]}}}}}}}}\n"
    ))
    .unwrap();
    let valid = validate(&job, &Settings::default()).unwrap();
    let services = render::all(&valid).services;
    let ports = services[0].spec.clone().unwrap().ports.unwrap_or_default();
    let text = |p: &k8s_openapi::api::core::v1::ServicePort| {
        format!(
            "{} {}/{}",
            p.name.as_deref().unwrap_or("-"),
            p.port,
            p.protocol.as_deref().unwrap_or("TCP")
        )
    };
    ports.iter().map(text).collect()
}

#[test]
fn ports_keep_their_order_and_protocol_and_have_names() {
    for (container, service) in [
        ("[]", &["mxjob-port 9091/TCP"][..]),
        (
            "[{name: mxjob-port, containerPort: 7000}]",
            &["mxjob-port 7000/TCP"],
        ),
        (
            "[{name: zeta, containerPort: 1}, {name: alpha, containerPort: 2}]",
            &["zeta 1/TCP", "alpha 2/TCP", "mxjob-port 9091/TCP"],
        ),
        (
            "[{name: gossip, containerPort: 7946, protocol: UDP}]",
            &["gossip 7946/UDP", "mxjob-port 9091/TCP"],
        ),
        // A name is needed when there are several.
        (
            "[{containerPort: 80}]",
            &["port-80 80/TCP", "mxjob-port 9091/TCP"],
        ),
        // One number under two names is exposed once, under the first.
        ("[{name: own, containerPort: 9091}]", &["own 9091/TCP"]),
        (
            "[{containerPort: 53}, {containerPort: 53, protocol: UDP}]",
            &["port-53 53/TCP", "port-53-udp 53/UDP", "mxjob-port 9091/TCP"],
        ),
        (
            "[{containerPort: 65535, protocol: SCTP}]",
            &["port-65535-sctp 65535/SCTP", "mxjob-port 9091/TCP"],
        ),
    ] {
        assert_eq!(service_ports(container), service, "{container}");
    }
}
