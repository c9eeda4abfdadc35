//! `top` on a cluster that serves metrics.

use serde_json::{Value, json};
use training_job_testbed::cluster::ControlPlane;

use super::run_as;

/// A definition in the place of the metrics server's aggregated API. Its group is protected, so it needs an approval.
const METRICS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pods.metrics.k8s.io
  annotations: {api-approved.kubernetes.io: https://github.com/kubernetes-sigs/metrics-server}
spec:
  group: metrics.k8s.io
  scope: Namespaced
  names: {plural: pods, kind: PodMetrics}
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

const JOB: &str = "
apiVersion: kubeflow.org/v1
kind: MXJob
metadata: {name: train}
spec:
  jobMode: MXTrain
  mxReplicaSpecs:
    Scheduler: {template: {spec: {containers: [{name: mxnet, image: i}]}}}
    Worker: {template: {spec: {containers: [{name: mxnet, image: i}]}}}
";

/// Returns a pod of the job, and its metrics: two containers that use half of what it requests.
fn pod_and_metrics(role: &str, owner: &str) -> [Value; 2] {
    let metadata = json!({"name": format!("train-{role}-0"), "labels": {
        "training.kubeflow.org/operator-name": "mxjob-controller", "training.kubeflow.org/job-name": "train",
        "training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": "0",
    }});
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"containers": [{"name": "mxnet", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "4Gi"}}}]},
    });
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "train", "uid": owner, "controller": true,
    }]);
    let used = |name: &str| json!({"name": name, "usage": {"cpu": "250000000n", "memory": "1048576Ki"}});
    let metrics = json!({
        "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": metadata,
        "timestamp": "2026-01-01T00:00:00Z", "window": "15s", "containers": [used("mxnet"), used("proxy")],
    });
    [pod, metrics]
}

#[tokio::test]
async fn usage_is_beside_the_requests() {
    let cluster = &ControlPlane::start(Default::default()).await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("plugin-usage").await;
    let create = async |text: &str| {
        let arguments = ["create", "-n", &namespace, "-f", "-"];
        cluster.kubectl_with_input(&arguments, text).await.success()
    };
    create(METRICS).await;
    cluster.served("pods.metrics.k8s.io").await;
    create(JOB).await;
    let uid = [
        "get",
        "mxjob",
        "train",
        "-n",
        &namespace,
        "-o",
        "jsonpath={.metadata.uid}",
    ];
    let uid = cluster.kubectl(&uid).await.success();
    let items: Vec<Value> = ["scheduler", "worker"]
        .iter()
        .flat_map(|role| pod_and_metrics(role, &uid))
        .collect();
    create(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).await;
    let top = run_as(cluster, &cluster.kubeconfig_in(&namespace), &["top", "train"]).await;
    assert_eq!(top.stderr, "");
    assert_eq!(
        top.success(),
        "\
REPLICA      CPU    CPU USED  MEMORY  MEMORY USED
scheduler-0  1000m  500m      4Gi     2Gi
worker-0     1000m  500m      4Gi     2Gi
all          2000m  1000m     8Gi     4Gi
"
    );
}
