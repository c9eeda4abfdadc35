//! A control plane with one contender, and the resource usage of all processes.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, ResourceQuota, Service};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use training_job_testbed::cluster::{Audit, Background, ControlPlane, Options, Program, Relay, Traffic};
use training_operator_testing::operators;
use training_operator_testing::usage::{Usage, find};

use crate::floor;
use crate::timelines::Figures;
use crate::work::{Contender, Kind};

/// The time for writes that follow the last event.
pub(crate) const SETTLE_TIME: Duration = Duration::from_secs(3);

/// The time limit for the machine to become idle. The measurement starts afterwards in any case.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// A control plane for one contender and one line of work, so that no measurement depends on an earlier one.
pub(crate) struct TestCluster {
    pub(crate) plane: ControlPlane,
    pub(crate) namespace: String,
    /// The channel to the plain writer, if it is the contender.
    pub(crate) tell: Option<mpsc::UnboundedSender<Value>>,
    /// The flags that select the operator's kinds of jobs.
    pub(crate) schemes: Vec<String>,
    pub(crate) relay: Relay,
    contender: Contender,
    in_flight: usize,
    operator: Option<Background>,
    /// The connections that were opened before the operator started.
    before: usize,
}

/// The resource usage of all processes at one time.
pub(crate) struct Mark {
    at: Instant,
    /// The CPU time of the operator, the API server, etcd and the driver.
    cpu: [f64; 4],
    traffic: Traffic,
    calls: usize,
}

impl TestCluster {
    pub(crate) async fn start(contender: Contender, kind: Kind, in_flight: usize) -> Self {
        let options = Options {
            audit: Some(Audit::Heads),
            ..Options::default()
        };
        let plane = ControlPlane::start(options).await;
        plane.install_crds().await;
        let mut cluster = Self {
            namespace: plane.namespace("load").await,
            relay: plane.relay(&plane.kubeconfig()).await,
            plane,
            contender,
            in_flight,
            tell: None,
            schemes: vec![format!("--enable-scheme={}", kind.name().to_lowercase())],
            operator: None,
            before: 0,
        };
        cluster.start_operator().await;
        cluster.calm().await;
        cluster
    }

    /// Waits until the API server creates services and is idle. For some seconds after its start it has no addresses
    /// for services, and it rebuilds its descriptions for each installed kind.
    async fn calm(&self) {
        let services = Api::<Service>::namespaced(self.plane.client(), &self.namespace);
        let service = json!({"metadata": {"name": "first"}, "spec": {"ports": [{"port": 80}]}});
        let service: Service = serde_json::from_value(service).unwrap();
        while services.create(&PostParams::default(), &service).await.is_err() {
            sleep(Duration::from_millis(100)).await;
        }
        services.delete("first", &DeleteParams::default()).await.unwrap();
        let (mut calm, deadline) = (0, Instant::now() + IDLE_TIMEOUT);
        while calm < 3 && Instant::now() < deadline {
            let before = self.cpu();
            sleep(Duration::from_millis(500)).await;
            let used: f64 = self.cpu()[..3].iter().sum::<f64>() - before[..3].iter().sum::<f64>();
            calm = if used < 0.05 { calm + 1 } else { 0 };
        }
    }

    /// Starts the contender and waits until it reports that it works.
    pub(crate) async fn start_operator(&mut self) {
        self.before = self.relay.traffic().connections;
        let (plane, kubeconfig, namespace) = (&self.plane, self.relay.kubeconfig(), &self.namespace);
        let mut flags: Vec<&str> = self.schemes.iter().map(String::as_str).collect();
        let operator = match self.contender {
            // Only a lost worker is replaced, as under the Go operator.
            Contender::Ours => {
                flags.push("--default-restart-scope=Replica");
                operators::ours(plane, kubeconfig, namespace, &flags).await
            }
            Contender::GoUnlimited => {
                operators::theirs(plane, kubeconfig, namespace, "unlimited", &flags).await
            }
            Contender::Go => {
                operators::theirs(plane, kubeconfig, namespace, "training-operator.v1", &flags).await
            }
            Contender::LocalCluster => unreachable!("it is a cluster of its own"),
            Contender::Floor => {
                let (address, tell) = floor::listen().await;
                self.tell = Some(tell);
                let program = Program::new(std::env::current_exe().unwrap())
                    .args(["--floor", &address])
                    .args([format!("--in-flight={}", self.in_flight)])
                    .env("KUBECONFIG", kubeconfig);
                let writer = plane.spawn(program);
                writer.wait_for_line("writing").await;
                writer
            }
        };
        self.operator = Some(operator);
    }

    pub(crate) fn kill_operator(&mut self) {
        self.operator = None;
    }

    pub(crate) fn operator(&self) -> &Background {
        self.operator.as_ref().unwrap()
    }

    pub(crate) fn operator_pid(&self) -> i32 {
        self.operator().pid().as_raw_nonzero().get()
    }

    /// Limits the pods that have not ended, and waits until the API server counts them.
    pub(crate) async fn limit_pods(&self, pods: usize) {
        let quotas = Api::<ResourceQuota>::namespaced(self.plane.client(), &self.namespace);
        let quota = json!({"metadata": {"name": "pods"}, "spec": {"hard": {"pods": pods.to_string()}}});
        let quota: ResourceQuota = serde_json::from_value(quota).unwrap();
        quotas.create(&PostParams::default(), &quota).await.unwrap();
        let counted = |quota: Option<&ResourceQuota>| {
            let used = quota.and_then(|quota| quota.status.as_ref()?.used.as_ref());
            used.is_some_and(|used| used.contains_key("pods"))
        };
        self.plane.wait(&self.namespace, "pods", counted).await;
    }

    /// Returns the number of stored events with this reason.
    pub(crate) async fn events(&self, reason: &str) -> usize {
        let events = Api::<Event>::namespaced(self.plane.client(), &self.namespace);
        let list = events.list(&ListParams::default()).await.unwrap();
        list.iter()
            .filter(|event| event.reason.as_deref() == Some(reason))
            .count()
    }

    /// Returns the resident memory of the contender in MiB.
    pub(crate) fn memory(&self) -> f64 {
        Usage::of(self.operator_pid()).rss
    }

    /// Returns the CPU time of the operator, the API server, etcd and the driver.
    fn cpu(&self) -> [f64; 4] {
        let server = |program| find(program, self.plane.directory()).map_or(0.0, |pid| Usage::of(pid).cpu);
        let operator = self
            .operator
            .as_ref()
            .map_or(0.0, |_| Usage::of(self.operator_pid()).cpu);
        [
            operator,
            server("kube-apiserver"),
            server("etcd"),
            Usage::own().cpu,
        ]
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            at: Instant::now(),
            cpu: self.cpu(),
            traffic: self.relay.traffic(),
            calls: self.plane.audit().len(),
        }
    }

    /// Returns the usage since a mark, and the calls per job for this number of jobs.
    pub(crate) fn since(&self, mark: &Mark, jobs: usize) -> (Figures, Figures) {
        assert_eq!(self.operator().ended(), None, "{}", self.operator().text());
        let now = self.mark();
        let usage = Usage::of(self.operator_pid());
        let [operator, server, etcd, driver] = [0, 1, 2, 3].map(|n| now.cpu[n] - mark.cpu[n]);
        let seconds = (now.at - mark.at).as_secs_f64();
        let mebibytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        let calls = self.calls(mark.calls, jobs);
        let of = |is: fn(&str) -> bool| {
            calls
                .iter()
                .filter(|(what, _)| is(what))
                .map(|(_, n)| n)
                .fold(0.0, |sum, n| sum + n)
        };
        let events = of(|what| what.ends_with(" events"));
        let statuses = of(|what| what.ends_with("jobs/status"));
        let figures = [
            ("cpu", operator),
            ("rss", usage.peak_rss),
            ("rss_after", usage.rss),
            (
                "received",
                mebibytes(now.traffic.received - mark.traffic.received),
            ),
            ("sent", mebibytes(now.traffic.sent - mark.traffic.sent)),
            ("connections", (now.traffic.connections - self.before) as f64),
            ("calls", of(|_| true) - events),
            ("events", events),
            ("status_writes", statuses),
            ("server_cpu", server),
            ("etcd_cpu", etcd),
            ("driver_cpu", driver),
            ("seconds", seconds),
        ];
        (
            figures.map(|(name, value)| (name.to_owned(), value)).into(),
            calls,
        )
    }

    /// Returns the contender's calls by verb and resource. A watch is counted when it begins.
    fn calls(&self, before: usize, jobs: usize) -> Figures {
        let mut counts = BTreeMap::<String, f64>::new();
        for call in self.plane.audit().into_iter().skip(before) {
            let stage = if call.verb == "watch" {
                "ResponseStarted"
            } else {
                "ResponseComplete"
            };
            if call.user_agent.starts_with(self.contender.agent()) && call.stage == stage {
                let resource = match (&*call.resource, &*call.subresource) {
                    ("", _) => "discovery".to_owned(),
                    (resource, "") => resource.to_owned(),
                    (resource, subresource) => format!("{resource}/{subresource}"),
                };
                *counts.entry(format!("{} {resource}", call.verb)).or_default() += 1.0 / jobs.max(1) as f64;
            }
        }
        counts
    }
}
