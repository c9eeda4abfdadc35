//! Compact and plain jobs on a real API server: the stored objects give the processes of both the same environment.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, wait_for_all};
use training_job_testbed::{config_maps, environment};
use training_operator_testing::operator::start;

const MADE: &str = "training.kubeflow.org/operator-name";

/// Returns a job of the kind with this many workers.
fn job(kind: &str, field: &str, container: &str, workers: u32, layout: &str) -> Value {
    let role = |replicas: u32| {
        let env = json!([{"name": "OWN", "value": "$(RANK) $(DMLC_ROLE) $$(OTHER)"}]);
        let containers = json!([{"name": container, "image": "none", "env": env}]);
        json!({"replicas": replicas, "restartPolicy": "Never", "template": {"spec": {"containers": containers}}})
    };
    let first = match kind {
        "MXJob" => "Scheduler",
        "TFJob" => "Chief",
        _ => "Master",
    };
    let mut job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": "job"},
        "spec": {"runPolicy": {"layout": layout}, field: {first: role(1), "Worker": role(workers)}},
    });
    if kind == "MXJob" {
        job["spec"]["jobMode"] = json!("MXTrain");
    }
    job
}

/// Returns the environment of each pod's process, and the numbers of services and ConfigMaps.
async fn environments(
    cluster: &ControlPlane,
    job: &Value,
    pods: usize,
) -> (BTreeMap<String, BTreeMap<String, String>>, usize, usize) {
    let namespace = cluster.namespace("compact").await;
    let _operator = start(cluster, &["--namespace", &namespace]).await;
    cluster.create(&namespace, job).await;
    let api: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    let pods = wait_for_all(api, MADE, |all| all.len() == pods).await;
    let there = |count: usize| count > 0;
    let services: Api<Service> = Api::namespaced(cluster.client(), &namespace);
    let services = wait_for_all(services, MADE, |all| there(all.len())).await;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
    let maps = wait_for_all(maps, MADE, |_| true).await;
    // The objects of a list lack their kind.
    let values = maps.iter().map(|map| {
        let mut value = serde_json::to_value(map).unwrap();
        value["kind"] = json!("ConfigMap");
        value
    });
    let entries = config_maps(&values.collect::<Vec<_>>());
    let of = |pod: &Pod| {
        let container = &pod.spec.as_ref().unwrap().containers[0];
        let environment: BTreeMap<_, _> = environment(container, &entries)
            .into_iter()
            .map(|(name, value)| (name, value.replace(&namespace, "NAMESPACE")))
            .collect();
        (pod.name_any(), environment)
    };
    (pods.iter().map(of).collect(), services.len(), maps.len())
}

#[tokio::test]
async fn processes_of_compact_and_plain_jobs_get_the_same_environment() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    const WORKERS: u32 = 100;
    let pods = WORKERS as usize + 1;
    for (kind, field, container) in [
        ("MXJob", "mxReplicaSpecs", "mxnet"),
        ("XGBoostJob", "xgbReplicaSpecs", "xgboost"),
        ("TFJob", "tfReplicaSpecs", "tensorflow"),
    ] {
        let of = async |layout: &str| {
            let job = job(kind, field, container, WORKERS, layout);
            environments(cluster, &job, pods).await
        };
        let (plain, services, maps) = of("Plain").await;
        assert_eq!((services, maps), (pods, 0), "{kind}");
        let (mut compact, services, maps) = of("Compact").await;
        assert_eq!((services, maps), (1, 1), "{kind}");
        // These are the only names with dots. They resolve through the service of all pods.
        for value in compact.values_mut().flat_map(BTreeMap::values_mut) {
            assert_eq!(
                value.contains(".job-hosts."),
                kind == "TFJob" && value.contains("svc:"),
                "{value}"
            );
            *value = value.replace(".job-hosts.NAMESPACE.svc:", ".NAMESPACE.svc:");
        }
        assert_eq!(compact.len(), pods);
        assert!(
            plain == compact,
            "{kind}: {:?}\n{:?}",
            plain["job-worker-0"],
            compact["job-worker-0"]
        );
    }
}
