//! Ways to install the operator.

use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, Program};
use training_operator_testing::manifests;

pub(crate) const NAMESPACE: &str = "kubeflow";
/// Selects the operator's pods.
pub(crate) const SELECTOR: &str = "control-plane=kubeflow-training-operator";

/// Installs the operator for all namespaces and kinds, in a namespace that enforces the standard `restricted`.
pub(crate) async fn operator(plane: &ControlPlane) {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    });
    let apply = ["apply", "--server-side", "-f", "-"];
    plane
        .kubectl_with_input(&apply, &namespace.to_string())
        .await
        .success();
    match std::env::var("INSTALL").as_deref() {
        Ok("helm") => helm(plane).await,
        _ => kustomize(plane).await,
    }
    rollout(plane).await;
}

/// Waits until the pods of the operator are those of its Deployment, and ready.
pub(crate) async fn rollout(plane: &ControlPlane) {
    let rollout = [
        "rollout",
        "status",
        "deployment/training-operator",
        "--namespace",
        NAMESPACE,
        "--timeout=120s",
    ];
    plane.kubectl(&rollout).await.success();
}

/// Installs the manifests as docs/users/install.md says, with MPIJobs, the operator as their remote shell, and the right to read logs.
async fn kustomize(plane: &ControlPlane) {
    let directory = manifests::kustomization(plane, "standalone", &["mpi", "mpi-ssh", "logs"], NAMESPACE);
    let file = directory.join("kustomization.yaml");
    let mut kustomization: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let flag = json!([{
        "op": "add", "path": "/spec/template/spec/containers/0/args/-",
        "value": format!("--mpi-remote-shell-image={}", image(plane).await),
    }]);
    kustomization["patches"] = json!([{
        "target": {"kind": "Deployment", "name": "training-operator"}, "patch": flag.to_string(),
    }]);
    std::fs::write(&file, kustomization.to_string()).unwrap();
    for folder in ["crds/mpi", directory.to_str().unwrap()] {
        let apply = ["apply", "--server-side", "--force-conflicts", "-k", folder];
        plane.kubectl(&apply).await.success();
    }
}

/// Installs the chart, with the same settings.
async fn helm(plane: &ControlPlane) {
    let program = Program::new("target/helm/helm4").args([
        "upgrade",
        "--install",
        "training-operator",
        "manifests/helm/training-operator",
        "--namespace",
        NAMESPACE,
        "--set=kinds.MPIJob=true,mpi.remoteShell=true,mpi.ssh=true,readJobOutput=true",
    ]);
    let process = plane.spawn(program);
    let code = process.exit_code().await;
    assert_eq!(code, 0, "{}", process.text());
}

/// Returns the image that the manifests name.
async fn image(plane: &ControlPlane) -> String {
    let objects = manifests::build(plane, "standalone", &[], NAMESPACE).await;
    let deployment = manifests::find(&objects, "Deployment", "training-operator");
    let containers = &deployment["spec"]["template"]["spec"]["containers"];
    containers[0]["image"].as_str().unwrap().to_owned()
}
