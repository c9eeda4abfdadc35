//! A user who may create MPIJobs gains no permissions by them, except those on the jobs' own workers.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::manifests::build;

use super::life::{create, start};
use super::permissions::cluster;

fn job(kind: &str, name: &str) -> Value {
    let (field, first, container) = match kind {
        "MPIJob" => ("mpiReplicaSpecs", Some("Launcher"), "mpi"),
        _ => ("pytorchReplicaSpecs", None, "pytorch"),
    };
    let template = json!({"spec": {"containers": [{"name": container, "image": "none"}]}});
    let mut roles = json!({"Worker": {"replicas": 2, "template": template}});
    if let Some(first) = first {
        roles[first] = json!({"replicas": 1, "template": template});
    }
    json!({"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name}, "spec": {field: roles}})
}

struct Tenant<'a> {
    cluster: &'a ControlPlane,
    namespace: String,
    kubeconfig: String,
}

impl Tenant<'_> {
    /// Creates an account that may only create MPIJobs.
    async fn new(cluster: &ControlPlane, namespace: String) -> Tenant<'_> {
        let rules = json!([{"apiGroups": ["kubeflow.org"], "resources": ["mpijobs"], "verbs": ["create"]}]);
        let objects = [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "tenant"},
                "rules": rules,
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "tenant"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
                "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}],
            }),
        ];
        create(cluster, &namespace, &objects).await;
        let kubeconfig = cluster
            .kubeconfig_once_allowed(&namespace, "tenant", "create", "mpijobs.kubeflow.org")
            .await;
        Tenant {
            cluster,
            namespace,
            kubeconfig: kubeconfig.to_str().unwrap().to_owned(),
        }
    }

    async fn creates(&self, name: &str) {
        let create = ["create", "--kubeconfig", &self.kubeconfig, "-f", "-"];
        let job = job("MPIJob", name).to_string();
        self.cluster.kubectl_with_input(&create, &job).await.success();
    }

    /// Returns true if the launcher's account of this job may start processes in this pod.
    async fn reaches(&self, job: &str, pod: &str) -> bool {
        let account = format!("--as=system:serviceaccount:{}:{job}-launcher", self.namespace);
        let pod = format!("pods/{pod}");
        let ask = ["auth", "can-i", "create", &pod, "--subresource=exec", &account];
        let all = [&["--namespace", &self.namespace], &ask[..]].concat();
        self.cluster.kubectl(&all).await.code == 0
    }

    async fn binding(&self, job: &str) -> Option<RoleBinding> {
        let api: Api<RoleBinding> = Api::namespaced(self.cluster.client(), &self.namespace);
        api.get_opt(&format!("{job}-launcher")).await.unwrap()
    }

    async fn pods(&self, job: &str) -> usize {
        let api: Api<Pod> = Api::namespaced(self.cluster.client(), &self.namespace);
        let label = format!("mpi-job-name={job}");
        api.list(&ListParams::default().labels(&label))
            .await
            .unwrap()
            .items
            .len()
    }

    async fn delete(&self, resource: &str, name: &str) {
        let delete = ["delete", resource, name, "--namespace", &self.namespace];
        self.cluster.kubectl(&delete).await.success();
    }

    /// Waits until a waiting job has its binding.
    async fn is_bound(&self, job: &str) {
        let name = format!("{job}-launcher");
        let is_there = |binding: Option<&RoleBinding>| binding.is_some();
        self.cluster.wait(&self.namespace, &name, is_there).await;
    }
}

#[tokio::test]
async fn the_right_to_create_mpijobs_grants_no_other_rights() {
    let cluster = &cluster().await;
    let namespace = cluster.namespace("rights").await;
    let objects = build(cluster, "namespaced", &["mpi"], &namespace).await;
    create(cluster, &namespace, &objects).await;
    // An administrator's objects, with permissions that the operator has as well, and another user's training.
    let exec = json!([{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}]);
    let foreign = [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "role-launcher"},
            "rules": exec,
        }),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "account-launcher"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "files-config"}}),
        job("PyTorchJob", "twin"),
    ];
    create(cluster, &namespace, &foreign).await;
    let operator = start(cluster, &objects, &namespace).await;
    let there = |pod: Option<&Pod>| pod.is_some();
    cluster.wait(&namespace, "twin-worker-1", there).await;

    let tenant = Tenant::new(cluster, namespace.clone()).await;
    for job in ["role", "account", "files", "twin", "plain"] {
        tenant.creates(job).await;
    }
    for (job, object) in [
        ("role", "Role role-launcher"),
        ("account", "ServiceAccount account-launcher"),
        ("files", "ConfigMap files-config"),
        ("twin", "pods twin-worker-0, twin-worker-1"),
    ] {
        operator
            .wait_for_line(&format!("{object}: the name is taken"))
            .await;
        assert_eq!(tenant.pods(job).await, 0, "{job}");
    }
    for job in ["role", "account"] {
        assert!(tenant.binding(job).await.is_none(), "{job}");
    }

    // The job whose names are all free has its objects.
    tenant.is_bound("plain").await;
    let names_worker = |role: Option<&Role>| {
        let rules = role.and_then(|role| role.rules.as_ref()).into_iter().flatten();
        let mut names = rules.filter_map(|rule| rule.resource_names.as_ref()).flatten();
        names.any(|name| name == "plain-worker-1")
    };
    cluster.wait(&namespace, "plain-launcher", names_worker).await;
    // The API server applies the Role some milliseconds later. There is no event to wait for.
    while !tenant.reaches("plain", "plain-worker-1").await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for (job, pod) in [
        ("plain", "twin-worker-0"),
        ("twin", "twin-worker-0"),
        ("twin", "twin-worker-1"),
        ("role", "twin-worker-0"),
        ("role", "plain-worker-0"),
        ("account", "plain-worker-0"),
    ] {
        assert!(!tenant.reaches(job, pod).await, "{job} reaches {pod}");
    }

    // Each job continues once the name is free.
    tenant.delete("role", "role-launcher").await;
    tenant.delete("serviceaccount", "account-launcher").await;
    for job in ["role", "account"] {
        tenant.is_bound(job).await;
    }
}
