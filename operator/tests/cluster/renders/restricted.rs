//! The operator's additions to a pod are admitted under the pod security standard `restricted`.

use serde_json::{Value, json};
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::program::run_with_input;

/// Returns the security contexts of a pod and of a container that the standard admits. The user is set in the
/// pod's context if `of_pod`, otherwise in the container's.
fn restricted(of_pod: bool) -> (Value, Value) {
    let user = json!({"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}});
    let mut container = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    if of_pod {
        return (user, container);
    }
    for (field, value) in user.as_object().unwrap() {
        container[field] = value.clone();
    }
    (json!({}), container)
}

fn jobs(of_pod: bool) -> Vec<Value> {
    let (pod, container) = restricted(of_pod);
    let template = |name: &str| {
        let containers = json!([{"name": name, "image": "i", "securityContext": container}]);
        json!({"spec": {"securityContext": pod, "containers": containers}})
    };
    let job = |kind: &str, field: &str, roles: [&str; 2], container: &str| {
        let roles: Value = roles
            .map(|role| {
                (
                    role.to_owned(),
                    json!({"replicas": 1, "template": template(container)}),
                )
            })
            .into_iter()
            .collect();
        json!({
            "apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": kind.to_lowercase()},
            "spec": {field: roles},
        })
    };
    vec![
        job("MPIJob", "mpiReplicaSpecs", ["Launcher", "Worker"], "mpi"),
        job(
            "PyTorchJob",
            "pytorchReplicaSpecs",
            ["Master", "Worker"],
            "pytorch",
        ),
    ]
}

#[tokio::test]
async fn added_containers_fit_the_restricted_standard() {
    let cluster = ControlPlane::shared().await;
    let mut added = 0;
    for (n, of_pod) in [true, false].into_iter().enumerate() {
        for (m, shell) in ["", "example.com/training-operator:1"].into_iter().enumerate() {
            let namespace = cluster.namespace(&format!("restricted-{n}-{m}")).await;
            let label = "pod-security.kubernetes.io/enforce=restricted";
            cluster
                .kubectl(&["label", "namespace", &namespace, label])
                .await
                .success();
            let account = [
                "create",
                "serviceaccount",
                "mpijob-launcher",
                "--namespace",
                &namespace,
            ];
            cluster.kubectl(&account).await.success();
            for job in jobs(of_pod) {
                let shell = format!("--mpi-remote-shell-image={shell}");
                let flags = ["--pytorch-init-container-image=alpine:3", &shell];
                let render = [&["render", "-", "--only", "pods", "--output", "json"], &flags[..]].concat();
                let rendered = run_with_input(&render, job.to_string().as_bytes());
                assert_eq!(rendered.code, Some(0), "{}", rendered.stderr);
                let pods: Value = rendered.stdout.parse().unwrap();
                for pod in pods["items"].as_array().unwrap() {
                    let mut pod = pod.clone();
                    pod["metadata"]["namespace"] = json!(namespace);
                    // The job does not exist, and the garbage collector would delete objects that it owns.
                    pod["metadata"]["ownerReferences"] = json!([]);
                    added += pod["spec"]["initContainers"].as_array().map_or(0, Vec::len);
                    let create = ["create", "-f", "-"];
                    cluster
                        .kubectl_with_input(&create, &pod.to_string())
                        .await
                        .success();

                    // Shows that the test detects a violation.
                    if let Some(context) = pod.pointer_mut("/spec/initContainers/0/securityContext") {
                        context.take();
                        pod["metadata"]["name"] = json!("careless");
                        let refused = cluster.kubectl_with_input(&create, &pod.to_string()).await;
                        assert!(refused.stderr.contains("violates PodSecurity"), "{refused:?}");
                    }
                }
            }
        }
    }
    assert_eq!(added, 8, "a launcher and a worker, four times");
}
