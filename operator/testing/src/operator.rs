//! The operator under test: the built program, or the library where times must be shorter than is reasonable in a
//! cluster.

use std::path::Path;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use training_job_controller::{Metrics, Options};
use training_job_mxnet::MXJob;
use training_job_testbed::cluster::{Background, ControlPlane, Program, WAIT_TIMEOUT, repository};

use crate::program;

/// `training-operator run` as a process.
pub struct Operator(pub Background);

/// Returns the command of an operator for the manifests' kinds that logs JSON and serves its pages at ports of its
/// own.
pub fn command(kubeconfig: &Path, flags: &[&str]) -> Program {
    of_all_kinds(kubeconfig).args(kinds(flags)).args(flags)
}

/// The flag for every kind, also those that run only if they are named.
pub const EVERY_KIND: &str =
    "--enable-scheme=MXJob,TFJob,XGBoostJob,PyTorchJob,JAXJob,PaddleJob,MPIJob,TfJob,MxJob";

/// Returns the command of such an operator for the kinds that run without a flag.
pub fn of_all_kinds(kubeconfig: &Path) -> Program {
    Program::new(program::path())
        .args(["run", "--zap-encoder=json"])
        .args([
            "--metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0",
        ])
        .env("KUBECONFIG", kubeconfig)
}

/// Returns the flag for the kinds that the manifests enable, because most tests use their Role. Returns none if a
/// test sets the flag.
fn kinds(flags: &[&str]) -> Option<String> {
    let is_kinds = |flag: &str| flag.starts_with("--enable-scheme");
    if flags.iter().any(|flag| is_kinds(flag)) {
        return None;
    }
    let deployment = std::fs::read_to_string(repository().join("manifests/base/deployment.yaml")).unwrap();
    let mut items = deployment
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "));
    items.find(|item| is_kinds(item)).map(str::to_owned)
}

/// The flags of an operator that serves no pages.
pub const NO_PAGES: [&str; 2] = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];

/// Starts an operator without pages as the administrator, and waits until it runs jobs.
pub async fn start(cluster: &ControlPlane, flags: &[&str]) -> Background {
    let program = Program::new(program::path()).args(["run"]);
    let operator = cluster.spawn(program.args(NO_PAGES).args(flags));
    operator.wait_for_line("running jobs").await;
    operator
}

impl Operator {
    /// Starts an operator with the credentials of the kubeconfig.
    pub fn start(cluster: &ControlPlane, kubeconfig: &Path, flags: &[&str]) -> Self {
        Self(cluster.spawn(command(kubeconfig, flags)))
    }

    /// Returns the status and the text of a page. `server` is `health` or `metrics`.
    pub async fn page(&self, server: &str, path: &str) -> (u16, String) {
        let line = self.0.wait_for_line(&format!("serving {server}")).await;
        let line: Value = serde_json::from_str(&line).unwrap();
        get(line["address"].as_str().unwrap(), path).await
    }

    /// Returns the value of a metric with its labels, or none if it was never counted.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        value(&self.page("metrics", "/metrics").await.1, name)
    }

    /// Waits until a metric has at least this value.
    pub async fn wait_for_metric(&self, name: &str, least: f64) {
        self.wait_until_metric(name, |value| value >= least).await;
    }

    /// Polls until the value of a metric has the property, because metrics send no events.
    pub async fn wait_until_metric(&self, name: &str, is: impl Fn(f64) -> bool) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let page = self.page("metrics", "/metrics").await.1;
            if value(&page, name).is_some_and(&is) {
                return;
            }
            assert!(Instant::now() < deadline, "{name} has another value in\n{page}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the operator reports that it is ready.
    pub async fn ready(&self) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let (code, text) = self.page("health", "/readyz").await;
            if code == 200 {
                return;
            }
            assert!(Instant::now() < deadline, "{code} {text}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns all its log lines so far.
    pub fn log(&self) -> Vec<Value> {
        let text = self.0.text();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("no JSON ({e}): {line}")));
        lines.collect()
    }

    /// Returns the log lines of the failed reconciles of a job.
    pub fn failed_passes(&self, job: &str) -> Vec<Value> {
        let failed = |line: &Value| line["message"] == "failed to reconcile" && line["job"] == job;
        self.log().into_iter().filter(failed).collect()
    }

    /// Checks that the operator runs and has not panicked.
    pub fn expect_well(&self) {
        assert_eq!(self.0.ended(), None, "{}", self.0.text());
        assert!(!self.0.text().contains("panicked"), "{}", self.0.text());
    }
}

/// An operator of MXJobs in this process.
pub struct InProcess {
    registry: Registry,
    task: JoinHandle<()>,
}

impl InProcess {
    pub async fn start(kubeconfig: &Path, mut options: Options) -> Self {
        let metrics = Metrics::default();
        let mut registry = Registry::with_prefix("training_operator");
        metrics.register(&mut registry);
        options.metrics = metrics;
        let operator =
            training_job_controller::Operator::new(client(kubeconfig).await, options).manage::<MXJob>();
        let task = tokio::spawn(operator.run());
        Self { registry, task }
    }

    /// Returns the value of a metric with its labels.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        value(&text, name)
    }

    pub fn expect_well(&self) {
        assert!(!self.task.is_finished(), "the operator has ended");
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns a client like the operator's, which does not retry by itself.
async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

fn value(page: &str, name: &str) -> Option<f64> {
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Some(line?.parse().unwrap())
}

/// Requests a page over HTTP. Returns its status and text.
async fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    (code, body.to_owned())
}
