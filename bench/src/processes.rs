//! Jobs whose pods run as processes of this machine: on `local cluster`, and on a real API server with the operator and
//! `local node` beside it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures::{StreamExt, stream};
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::DynamicObject;
use kube::{Client, Config};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use training_job_testbed::cluster::{Background, ControlPlane, Options, Program};
use training_operator_testing::usage::{Usage, find};
use training_operator_testing::{operators, program};

use crate::driver::{EVENT_TIMEOUT, MAX_CALLS_IN_FLIGHT};
use crate::follow::{Told, follow};
use crate::timelines::Figures;
use crate::work::{Contender, Jobs};

/// Returns the program with the commands `local`, which that of the image does not have: `LOCAL_OPERATOR`, or else the
/// operator under test.
fn program_with_local() -> PathBuf {
    let named = std::env::var_os("LOCAL_OPERATOR").map(|path| program::root().join(path));
    named.unwrap_or_else(program::path)
}

/// The programs that run jobs as processes.
enum Cluster {
    Local {
        program: Child,
        kubeconfig: PathBuf,
    },
    Real {
        plane: Box<ControlPlane>,
        namespace: String,
        operator: Background,
        node: Background,
    },
}

/// Creates all jobs at once and waits until they have succeeded. Their pods run `true`.
pub(crate) async fn run(contender: Contender, jobs: Jobs) -> Figures {
    let begun = Instant::now();
    let cluster = match contender {
        Contender::LocalCluster => Cluster::local().await,
        _ => Cluster::real(jobs).await,
    };
    let ready = begun.elapsed();
    let client = cluster.client().await;
    let resource = jobs.kind.resource();
    let (send, mut received) = mpsc::unbounded_channel();
    let told = Api::<Told>::namespaced_with(client.clone(), cluster.namespace(), &resource);
    let following = tokio::spawn(follow(told, move |job: Told, _| {
        if job.status.is_some_and(|status| status.is("Succeeded")) {
            // The receiver is gone at the end of the run.
            let _ = send.send(job.metadata.name);
        }
    }));
    let cpu = cluster.usage().cpu;
    let start = Instant::now();
    let api = Api::<DynamicObject>::namespaced_with(client, cluster.namespace(), &resource);
    let created = stream::iter(0..jobs.count).map(|n| {
        let api = api.clone();
        async move {
            api.create(&PostParams::default(), &job(jobs, &format!("j{n}")))
                .await
                .unwrap()
        }
    });
    created
        .buffer_unordered(MAX_CALLS_IN_FLIGHT)
        .for_each(async |_| {})
        .await;
    let created = start.elapsed();
    let mut succeeded = BTreeSet::new();
    let all = async {
        while succeeded.len() < jobs.count {
            succeeded.extend(received.recv().await.unwrap());
        }
    };
    timeout(EVENT_TIMEOUT, all).await.expect("all jobs must succeed");
    let done = start.elapsed();
    following.abort();
    let usage = cluster.usage();
    let seconds = |time: Duration| time.as_secs_f64();
    let figures = [
        ("ready", seconds(ready)),
        ("created", seconds(created)),
        ("done", seconds(done)),
        ("all_cpu", usage.cpu - cpu),
        ("all_rss", usage.peak_rss),
    ];
    figures.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Returns a job whose containers run `true`.
fn job(jobs: Jobs, name: &str) -> DynamicObject {
    let mut job = jobs.job(name);
    for role in job.data["spec"].as_object_mut().unwrap().values_mut() {
        let replicas = role
            .as_object_mut()
            .into_iter()
            .flat_map(|roles| roles.values_mut());
        for container in replicas.filter_map(|role| role.pointer_mut("/template/spec/containers/0")) {
            container["command"] = json!(["true"]);
        }
    }
    job
}

impl Cluster {
    async fn local() -> Self {
        let kubeconfig = program::temporary().join(format!("bench-{}.kubeconfig", std::process::id()));
        std::fs::create_dir_all(program::temporary()).unwrap();
        let mut program = Command::new(program_with_local())
            .args(["local", "cluster", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
        while !lines
            .next_line()
            .await
            .unwrap()
            .expect("it ended")
            .contains("cluster ready")
        {}
        // The pipe must not become full.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self::Local { program, kubeconfig }
    }

    async fn real(jobs: Jobs) -> Self {
        let plane = ControlPlane::start(Options::default()).await;
        plane.install_crds().await;
        let namespace = plane.namespace("load").await;
        let scheme = format!("--enable-scheme={}", jobs.kind.name());
        let operator = operators::ours(&plane, &plane.kubeconfig(), &namespace, &[&scheme]).await;
        let node = Program::new(program_with_local())
            .args(["local", "node", "--namespace", &namespace])
            .args([Path::new("--kubeconfig"), &plane.kubeconfig()]);
        let node = plane.spawn(node);
        node.wait_for_line("images are not pulled").await;
        Self::Real {
            plane: Box::new(plane),
            namespace,
            operator,
            node,
        }
    }

    async fn client(&self) -> Client {
        match self {
            Self::Local { kubeconfig, .. } => {
                let file = Kubeconfig::read_from(kubeconfig).unwrap();
                let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
                Client::try_from(config.unwrap()).unwrap()
            }
            Self::Real { plane, .. } => plane.client(),
        }
    }

    fn namespace(&self) -> &str {
        match self {
            Self::Local { .. } => "default",
            Self::Real { namespace, .. } => namespace,
        }
    }

    /// Returns the sums over all programs, without the processes of pods.
    fn usage(&self) -> Usage {
        let pids = match self {
            Self::Local { program, .. } => vec![program.id().unwrap() as i32],
            Self::Real {
                plane,
                operator,
                node,
                ..
            } => {
                let servers = ["kube-apiserver", "etcd"].map(|name| find(name, plane.directory()).unwrap());
                let programs = [operator, node].map(|program| program.pid().as_raw_nonzero().get());
                [servers, programs].concat()
            }
        };
        pids.into_iter()
            .map(Usage::of)
            .fold(Usage::default(), |sum, usage| Usage {
                cpu: sum.cpu + usage.cpu,
                peak_rss: sum.peak_rss + usage.peak_rss,
                rss: sum.rss + usage.rss,
            })
    }
}
