//! The ports of a replica's service (#39). They have the container's order and protocols, and are always valid for
//! the API server.

use crate::harness::PlanHarness;

/// Returns the service's ports for these ports of the container, as `name number/protocol`.
fn service_ports(ports: &str) -> Vec<String> {
    let mut w = PlanHarness::from_yaml(&format!(
        "metadata: {{name: job}}\nspec: {{replicaSpecs: {{Worker: {{template: {{spec: {{containers: \
         [{{name: toy, image: a, ports: {ports}}}]}}}}}}}}}}"
    ));
    w.reconcile();
    let service = w.services["job-worker-0"].spec.clone().unwrap();
    let text = |p: &k8s_openapi::api::core::v1::ServicePort| {
        let or = |word: &Option<String>, default: &str| word.clone().unwrap_or_else(|| default.to_owned());
        format!("{} {}/{}", or(&p.name, "-"), p.port, or(&p.protocol, "TCP"))
    };
    service.ports.iter().flatten().map(text).collect()
}

#[test]
fn ports_keep_their_order_and_protocol_and_have_names() {
    for (container, service) in [
        ("[]", &["toy-port 4000/TCP"][..]),
        ("[{name: toy-port, containerPort: 7000}]", &["toy-port 7000/TCP"]),
        (
            "[{name: zeta, containerPort: 1}, {name: alpha, containerPort: 2}]",
            &["zeta 1/TCP", "alpha 2/TCP", "toy-port 4000/TCP"],
        ),
        (
            "[{name: gossip, containerPort: 7946, protocol: UDP}]",
            &["gossip 7946/UDP", "toy-port 4000/TCP"],
        ),
        // A name is required if there are several ports.
        ("[{containerPort: 80}]", &["port-80 80/TCP", "toy-port 4000/TCP"]),
        // A number with two names is exposed once, under the first name.
        ("[{name: own, containerPort: 4000}]", &["own 4000/TCP"]),
        (
            "[{containerPort: 53}, {containerPort: 53, protocol: UDP}]",
            &["port-53 53/TCP", "port-53-udp 53/UDP", "toy-port 4000/TCP"],
        ),
        (
            "[{containerPort: 65535, protocol: SCTP}]",
            &["port-65535-sctp 65535/SCTP", "toy-port 4000/TCP"],
        ),
    ] {
        assert_eq!(service_ports(container), service, "{container}");
    }
}
