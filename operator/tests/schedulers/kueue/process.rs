//! Kueue as a process of the test, with its webhooks on this machine.

use std::fs;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};
use training_job_testbed::cluster::{Background, ControlPlane, Options, WAIT_TIMEOUT, free_port};

use super::queue::{QUEUE, is_suspended};
use crate::built;
use crate::gangs::process::{Scheduler, launch as launch_gangs};
use crate::jobs::{PYTORCH, labelled};

/// A control plane with kube-scheduler or a gang scheduler, and Kueue. Each test has its own quota.
pub(crate) struct Queues {
    pub(crate) plane: ControlPlane,
    pub(crate) gangs: Option<Scheduler>,
    _kueue: Background,
    _scheduler: Background,
}

/// The settings that differ between tests.
#[derive(Default)]
pub(crate) struct Setup {
    /// The scheduler instead of kube-scheduler.
    pub(crate) gangs: Option<Scheduler>,
    /// `waitForPodsReady` of Kueue's configuration.
    pub(crate) wait_for_pods_ready: Value,
    /// Queues pods of all kinds that have the label of a queue.
    pub(crate) plain_pods: bool,
}

/// The kinds that this version of Kueue supports.
const FRAMEWORKS: [&str; 6] = [
    "jaxjob",
    "mpijob",
    "paddlejob",
    "pytorchjob",
    "tfjob",
    "xgboostjob",
];

impl Queues {
    /// Returns the control plane that most tests share.
    pub(crate) async fn shared() -> &'static Self {
        static SHARED: OnceCell<Queues> = OnceCell::const_new();
        SHARED.get_or_init(|| Self::start(Setup::default())).await
    }

    /// Starts a control plane for one test.
    pub(crate) async fn start(setup: Setup) -> Self {
        let plane = ControlPlane::start_at_once(Options::default()).await;
        // Kueue creates webhooks only for kinds that exist when it starts.
        plane.install_crds().await;
        built::install_definitions(&plane, "kueue").await;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}});
        built::apply(&plane, &[namespace]).await;
        let scheduler = match setup.gangs {
            Some(scheduler) => launch_gangs(&plane, scheduler).await,
            None => built::kube_scheduler(&plane),
        };
        let port = free_port();
        let kueue = launch(&plane, port, &setup);
        let webhooks = webhooks(&plane, port, setup.plain_pods);
        for path in paths(&webhooks) {
            let line = format!(r#""Registering webhook","path":"{path}""#);
            kueue.wait_for_line(&line).await;
        }
        kueue.wait_for_line("Serving webhook server").await;
        built::apply(&plane, &webhooks).await;
        in_effect(&plane).await;
        Self {
            plane,
            gangs: setup.gangs,
            _kueue: kueue,
            _scheduler: scheduler,
        }
    }
}

/// Waits until the API server calls the webhooks. There is no event for this.
async fn in_effect(plane: &ControlPlane) {
    let namespace = plane.namespace("in-effect").await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("kubeflow.org", "v1", PYTORCH.name));
    let jobs: Api<DynamicObject> = Api::namespaced_with(plane.client(), &namespace, &resource);
    let job = labelled(PYTORCH.job("job"), QUEUE, "queue");
    let job: DynamicObject = serde_json::from_value(job).unwrap();
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !is_suspended(&jobs.create(&dry, &job).await.unwrap()) {
        assert!(Instant::now() < deadline, "the webhooks are not asked");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the API server's own certificate. It is valid for this address, and its file contains the CA as well.
fn certificate(plane: &ControlPlane) -> std::path::PathBuf {
    plane.directory().join("certificates/apiserver.crt")
}

fn launch(plane: &ControlPlane, port: u16, setup: &Setup) -> Background {
    let folder = plane.directory().join("kueue");
    fs::create_dir(&folder).unwrap();
    fs::copy(certificate(plane), folder.join("tls.crt")).unwrap();
    fs::copy(certificate(plane).with_extension("key"), folder.join("tls.key")).unwrap();
    let frameworks = FRAMEWORKS.map(|kind| format!("kubeflow.org/{kind}"));
    let pods = setup.plain_pods.then(|| "pod".to_owned());
    let frameworks: Vec<_> = frameworks.into_iter().chain(pods).collect();
    let mut configuration = json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": "127.0.0.1:0"},
        "metrics": {"bindAddress": "127.0.0.1:0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": folder},
        "leaderElection": {"leaderElect": false},
        "internalCertManagement": {"enable": false},
        "clientConnection": {"qps": 200, "burst": 400},
        "integrations": {"frameworks": frameworks},
    });
    if setup.wait_for_pods_ready.is_object() {
        configuration["waitForPodsReady"] = setup.wait_for_pods_ready.clone();
    }
    let file = folder.join("configuration.yaml");
    fs::write(&file, configuration.to_string()).unwrap();
    // Visibility is a separate API server that needs a service account.
    let flags = [
        format!("--config={}", file.display()),
        "--feature-gates=VisibilityOnDemand=false".to_owned(),
    ];
    plane.spawn(built::program("kueue").args(flags))
}

/// Returns the webhook configurations for Kueue's own kinds and those of jobs, at this port of this machine.
fn webhooks(plane: &ControlPlane, port: u16, plain_pods: bool) -> Vec<Value> {
    let authority = STANDARD.encode(fs::read(certificate(plane)).unwrap());
    let mut configurations = built::manifest("kueue", "manifests.yaml");
    for configuration in &mut configurations {
        let all = configuration["webhooks"].as_array_mut().unwrap();
        all.retain(|webhook| is_wanted(webhook, plain_pods));
        for webhook in all {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
            let url = format!("https://127.0.0.1:{port}{path}");
            webhook["clientConfig"] = json!({"url": url, "caBundle": authority});
        }
    }
    configurations
}

/// Returns true for the wanted webhooks. Kueue supports one version of MPIJob, which is not that of the other kinds.
fn is_wanted(webhook: &Value, plain_pods: bool) -> bool {
    let rule = &webhook["rules"][0];
    let group = rule["apiGroups"][0].as_str().unwrap();
    plain_pods && group.is_empty() && rule["resources"] == json!(["pods"])
        || group == "kueue.x-k8s.io"
        || (group == "kubeflow.org" && [json!(["v1"]), json!(["v2beta1"])].contains(&rule["apiVersions"]))
}

fn paths(configurations: &[Value]) -> Vec<String> {
    let webhooks = configurations
        .iter()
        .flat_map(|configuration| configuration["webhooks"].as_array().unwrap());
    let urls = webhooks.map(|webhook| webhook["clientConfig"]["url"].as_str().unwrap());
    let path = |url: &str| url.splitn(4, '/').last().map(|path| format!("/{path}"));
    urls.filter_map(path).collect()
}
