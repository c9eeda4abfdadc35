//! Programs of users on `local cluster`: client-go, the Python SDKs, kube-rs, and more of kubectl.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use futures::{AsyncReadExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    Api, ApiResource, AttachParams, DeleteParams, DynamicObject, GroupVersionKind, LogParams, Patch,
    PatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Config};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use training_job_testbed::cluster::{Program, repository};

use super::local_cluster::Local;
use super::sdk::python;

impl Local {
    /// Runs a program until it ends, which must print a line for each part.
    async fn runs(&self, program: Program, word: &str, parts: &[&str]) {
        let program = self.real.spawn(
            program
                .args([&self.namespace])
                .env("KUBECONFIG", &self.kubeconfig),
        );
        for part in parts {
            program.wait_for_line(&format!("{word}: {part}")).await;
        }
        assert_eq!(program.exit_code().await, 0, "{}", program.text());
    }
}

/// Builds the programs in Go, unless they are there.
fn build_programs() {
    let made = Command::new(repository().join("tests/clients/build.sh"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[tokio::test]
async fn the_typed_clients_of_the_training_operator_work() {
    build_programs();
    let local = Local::start("local-typed").await;
    let program = Program::new(repository().join("target/clients/typed"));
    let parts = ["create", "watch", "update", "list", "delete"];
    local.runs(program, "worked", &parts).await;
    local.stop().await;
}

#[tokio::test]
async fn a_program_in_go_works_with_informers_and_protobuf() {
    build_programs();
    let local = Local::start("local-go").await;
    let program = Program::new(repository().join("target/clients/client-go"));
    let parts = [
        "protobuf",
        "leader election",
        "informers",
        "scale",
        "events",
        "delete",
    ];
    local.runs(program, "worked", &parts).await;
    local.stop().await;
}

#[tokio::test]
async fn a_controller_with_controller_runtime_works() {
    build_programs();
    let local = Local::start("local-controller").await;
    let program = Program::new(repository().join("target/clients/controller"));
    let parts = ["reconcile", "patch", "evict", "delete"];
    local.runs(program, "worked", &parts).await;
    local.stop().await;
}

#[tokio::test]
async fn jobs_run_through_the_python_sdks() {
    let common = ["TFJob", "XGBoostJob", "PyTorchJob", "PaddleJob", "MPIJob"];
    let kinds = [&common[..], &["MXJob", "JAXJob"]].concat();
    let flags: Vec<&OsStr> = kinds
        .iter()
        .flat_map(|kind| ["--kind".as_ref(), OsStr::new(kind)])
        .collect();
    let local = Local::start_with("local-sdk", &flags).await;
    for (environment, own) in [("sdk", "MXJob"), ("sdk-1.9", "JAXJob")] {
        let script = ["-B", "-E", "-s", "operator/tests/cluster/clients/local_sdk.py"];
        let script = python(environment).args(script);
        local.runs(script, "lived", &[&common[..], &[own]].concat()).await;
    }
    local.stop().await;
}

#[tokio::test]
async fn a_program_with_kube_rs_applies_watches_reads_and_runs_commands() {
    let local = Local::start("local-kube-rs").await;
    let kubeconfig = Kubeconfig::read_from(&local.kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = Client::try_from(config.unwrap()).unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("kubeflow.org", "v1", "XGBoostJob"));
    let jobs: Api<DynamicObject> = Api::namespaced_with(client.clone(), &local.namespace, &kind);
    let pods: Api<Pod> = Api::namespaced(client, &local.namespace);

    let command = ["sh", "-c", "echo begun; sleep 1000"];
    let template = json!({"spec": {"terminationGracePeriodSeconds": 0, "containers": [
        {"name": "xgboost", "image": "none", "command": command},
    ]}});
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "XGBoostJob", "metadata": {"name": "from-rust"},
        "spec": {"xgbReplicaSpecs": {"Master": {"replicas": 1, "template": template}}},
    });
    let parameters = PatchParams::apply("from-rust");
    for _ in 0..2 {
        jobs.patch("from-rust", &parameters, &Patch::Apply(&job))
            .await
            .unwrap();
    }
    let runs = |pod: &Pod| {
        let status = pod.status.as_ref();
        status.and_then(|status| status.phase.as_deref()) == Some("Running")
    };
    let settings = watcher::Config::default().streaming_lists();
    let mut seen = Box::pin(
        watcher(pods.clone(), settings)
            .default_backoff()
            .applied_objects(),
    );
    let pod = loop {
        let pod = seen.next().await.unwrap().unwrap();
        if runs(&pod) {
            break pod.metadata.name.unwrap();
        }
    };
    assert_eq!(pod, "from-rust-master-0");

    let follow = LogParams {
        follow: true,
        ..LogParams::default()
    };
    let mut log = Box::pin(pods.log_stream(&pod, &follow).await.unwrap());
    let mut line = [0; 6];
    log.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"begun\n");
    let mut ran = pods
        .exec(&pod, ["echo", "there"], &AttachParams::default().stderr(false))
        .await
        .unwrap();
    let mut text = String::new();
    ran.stdout().unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "there\n");
    jobs.delete("from-rust", &DeleteParams::foreground())
        .await
        .unwrap();
    local.stop().await;
}

/// A kustomization with a job and a generated configuration.
const KUSTOMIZATION: &str =
    "resources: [job.yaml]\nnamePrefix: of-\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\n";

const JOB: &str = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: job, labels: {app: x}}\nspec: {pytorchReplicaSpecs: {Worker: {replicas: 1, template: {spec: \
     {terminationGracePeriodSeconds: 0, containers: [{name: pytorch, image: none, command: [sleep, \"1000\"]}]}}}}}\n";

#[tokio::test]
async fn kubectl_scales_prunes_and_compares() {
    let local = Local::start("local-verbs").await;
    let folder = local.real.directory().join("of-local-verbs");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("kustomization.yaml"), KUSTOMIZATION).unwrap();
    std::fs::write(folder.join("job.yaml"), JOB).unwrap();
    let applied = local.run(&["apply", "-k", folder.to_str().unwrap()]).await;
    assert!(
        applied.ends_with("pytorchjob.kubeflow.org/of-job created\n"),
        "{applied}"
    );

    let scaled = local.run(&["scale", "pytorchjob/of-job", "--replicas=2"]).await;
    assert_eq!(scaled, "pytorchjob.kubeflow.org/of-job scaled\n");
    local
        .run(&["wait", "pod/of-job-worker-1", "--for=create", "--timeout=60s"])
        .await;

    // Changes of a manifest, and objects that are no longer in it.
    assert_eq!(
        local
            .kubectl(&["apply", "-l", "app=x", "-f", "-"], JOB)
            .await
            .success(),
        "pytorchjob.kubeflow.org/job created\n"
    );
    let changed = JOB.replace("replicas: 1", "replicas: 3");
    for more in [&[][..], &["--server-side", "--force-conflicts"]] {
        let compared = [&["diff", "-f", "-"], more].concat();
        let compared = local.kubectl(&compared, &changed).await;
        assert_eq!(compared.code, 1, "{}", compared.stderr);
        assert!(
            compared.stdout.contains("+      replicas: 3"),
            "{}",
            compared.stdout
        );
    }
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, labels: {app: x}}\n";
    let both = format!(
        "{}---\n{}",
        map.replace("NAME", "kept"),
        map.replace("NAME", "pruned")
    );
    local.kubectl(&["apply", "-f", "-"], &both).await.success();
    let prune = ["apply", "--prune", "-l", "app=x", "-f", "-"];
    let pruned = local
        .kubectl(&prune, &map.replace("NAME", "kept"))
        .await
        .success();
    assert_eq!(pruned, "configmap/kept unchanged\nconfigmap/pruned pruned\n");

    // A kind without a controller is stored, and says so.
    let stored = local
        .kubectl(&["create", "deployment", "idle", "--image=x"], "")
        .await;
    assert_eq!(stored.code, 0, "{}", stored.stderr);
    assert!(
        stored
            .stderr
            .contains("no controller of this cluster acts on a Deployment"),
        "{}",
        stored.stderr
    );
    let usage = local.kubectl(&["top", "pods"], "").await;
    assert_eq!(usage.stderr, "error: Metrics API not available\n");
    local
        .run(&["delete", "pytorchjob/job", "--cascade=foreground"])
        .await;
    local.stop().await;
}
