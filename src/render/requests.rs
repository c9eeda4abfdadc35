//! The resource requests of a pod, as schedulers count them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource;
use kube_schema::quantity::Quantity;

/// Amounts by the name of the resource.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// Returns the requests of a pod. For each resource it is the larger of its containers' sum and the highest request
/// during the start, plus the overhead of the pod.
///
/// Sidecars count as containers. During the start, an init container counts with the sidecars that were started
/// before it. A limit is the request of a resource that has no request. Resources of the pod as a whole replace the
/// requests of its containers.
pub(super) fn of_pod(spec: &PodSpec) -> Amounts {
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let requests = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sidecars, &requests);
        } else {
            let mut beside = sidecars.clone();
            add(&mut beside, &requests);
            raise(&mut starting, beside);
        }
    }
    let mut all = sidecars;
    for container in &spec.containers {
        add(&mut all, &of_container(container));
    }
    raise(&mut all, starting);
    all.extend(of_resources(spec.resources.as_ref()));
    add(&mut all, &amounts(spec.overhead.as_ref()));
    all
}

fn of_container(container: &Container) -> Amounts {
    of_resources(container.resources.as_ref())
}

fn of_resources(resources: Option<&ResourceRequirements>) -> Amounts {
    let mut all = amounts(resources.and_then(|r| r.limits.as_ref()));
    all.extend(amounts(resources.and_then(|r| r.requests.as_ref())));
    all
}

fn amounts(named: Option<&BTreeMap<String, resource::Quantity>>) -> Amounts {
    let named = named.into_iter().flatten();
    // Invalid quantities are ignored, because API servers reject pods that have any.
    named
        .filter_map(|(name, quantity)| Some((name.clone(), Quantity::parse(&quantity.0)?)))
        .collect()
}

/// Adds `more` to `to`.
pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.entry(name.clone()).or_default();
        *sum = *sum + *amount;
    }
}

fn raise(to: &mut Amounts, at_least: Amounts) {
    for (name, amount) in at_least {
        let highest = to.entry(name).or_default();
        *highest = highest.max(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn requests(spec: Value) -> BTreeMap<String, String> {
        let spec: PodSpec = serde_json::from_value(spec).unwrap();
        let all = of_pod(&spec).into_iter();
        all.map(|(name, amount)| (name, amount.to_string())).collect()
    }

    fn is(found: BTreeMap<String, String>, wanted: Value) {
        assert_eq!(serde_json::to_value(found).unwrap(), wanted);
    }

    #[test]
    fn limits_are_requests_where_there_are_none() {
        let main = json!({"name": "a", "resources": {
            "requests": {"cpu": "500m"}, "limits": {"cpu": "1", "nvidia.com/gpu": 2}}});
        let side = json!({"name": "b", "resources": {"requests": {"cpu": "100m"}}});
        let bare = json!({"name": "c"});
        is(
            requests(json!({"containers": [main, side, bare]})),
            json!({"cpu": "600m", "nvidia.com/gpu": "2"}),
        );
        is(requests(json!({"containers": [bare]})), json!({}));
    }

    #[test]
    fn init_containers_run_one_by_one_beside_the_sidecars_before_them() {
        let asks = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let init = |cpu: &str| json!({"name": "i", "resources": asks(cpu)});
        let mut sidecar = init("2");
        sidecar["restartPolicy"] = json!("Always");
        let pod = |inits: &[Value]| json!({"initContainers": inits, "containers": [init("3")]});
        is(requests(pod(&[init("4")])), json!({"cpu": "4"}));
        is(requests(pod(&[init("1"), init("2")])), json!({"cpu": "3"}));
        is(requests(pod(std::slice::from_ref(&sidecar))), json!({"cpu": "5"}));
        is(requests(pod(&[init("4"), sidecar.clone()])), json!({"cpu": "5"}));
        is(requests(pod(&[sidecar, init("4")])), json!({"cpu": "6"}));
    }

    #[test]
    fn the_pods_own_requests_and_overhead_count() {
        let container = json!({"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}});
        let mut pod = json!({"containers": [container], "overhead": {"cpu": "250m", "memory": "64Mi"}});
        is(requests(pod.clone()), json!({"cpu": "1250m", "memory": "1088Mi"}));
        pod["resources"] = json!({"limits": {"cpu": "4"}});
        is(requests(pod), json!({"cpu": "4250m", "memory": "1088Mi"}));
    }
}
