//! The driver: it creates jobs, plays the kubelets of their pods, and notes when a user would see what.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::api::{Api, PostParams};
use kube_follow::{Event, Watch};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep, timeout};
use training_job::api::{ConditionType, labels};
use training_job_mxnet::MXJob;
use training_job_testing::cluster::{ControlPlane, Kubelet};

/// Longer than any operator should need.
const PATIENCE: Duration = Duration::from_secs(900);

/// Calls of the driver under way at once.
const CALLS: usize = 32;

/// What is to be done.
pub(crate) struct Work {
    pub(crate) jobs: usize,
    pub(crate) workers: usize,
    pub(crate) train: Duration,
}

impl Work {
    /// The pods of one job.
    pub(crate) fn pods(&self) -> usize {
        self.workers + 2
    }

    fn job(&self, name: &str) -> MXJob {
        let role = |replicas: usize| {
            json!({"replicas": replicas, "restartPolicy": "Never",
                   "template": {"spec": {"containers": [{"name": "mxnet", "image": "example.com/i"}]}}})
        };
        let job = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name},
            "spec": {"jobMode": "MXTrain", "runPolicy": {"cleanPodPolicy": "None"},
                     "mxReplicaSpecs": {"Scheduler": role(1), "Server": role(1), "Worker": role(self.workers)}},
        });
        serde_json::from_value(job).unwrap()
    }
}

/// When what was seen of one job.
#[derive(Default)]
struct Life {
    created: Option<Instant>,
    pods: BTreeMap<String, Instant>,
    running_pods: usize,
    last_pod_ended: Option<Instant>,
    running: Option<Instant>,
    succeeded: Option<Instant>,
}

/// What was seen of all.
pub(crate) struct Seen {
    begun: Instant,
    lives: BTreeMap<String, Life>,
}

enum News {
    Created(String, Instant),
    Pod {
        job: String,
        pod: String,
    },
    Runs {
        job: String,
    },
    Ended {
        job: String,
        at: Instant,
    },
    Job {
        job: String,
        running: bool,
        succeeded: bool,
    },
}

/// Creates the jobs, and returns when all have succeeded.
pub(crate) async fn drive(plane: &ControlPlane, namespace: &str, work: &Work) -> Seen {
    let (send, mut news) = mpsc::unbounded_channel();
    let watches = [
        tokio::spawn(watch_pods(plane.client(), namespace.to_owned(), send.clone())),
        tokio::spawn(watch_jobs(plane.client(), namespace.to_owned(), send.clone())),
    ];
    let kubelet = plane.kubelet(namespace).await;
    let limit = Arc::new(Semaphore::new(CALLS));
    let mut seen = Seen {
        begun: Instant::now(),
        lives: BTreeMap::new(),
    };
    let api = Api::<MXJob>::namespaced(plane.client(), namespace);
    let creates = (0..work.jobs).map(|n| {
        let (name, api, send, limit) = (format!("j{n}"), api.clone(), send.clone(), limit.clone());
        let job = work.job(&name);
        tokio::spawn(async move {
            let _permit = limit.acquire().await.unwrap();
            let at = Instant::now();
            api.create(&PostParams::default(), &job).await.unwrap();
            let _ = send.send(News::Created(name, at));
        })
    });
    let creates: Vec<_> = creates.collect();
    let all = async {
        while seen.lives.len() < work.jobs || seen.lives.values().any(|life| life.succeeded.is_none()) {
            let news = news.recv().await.unwrap();
            seen.note(news, work, &kubelet, &limit, &send);
        }
    };
    let done = timeout(PATIENCE, all).await;
    watches.into_iter().chain(creates).for_each(|task| task.abort());
    done.unwrap_or_else(|_| panic!("not all jobs have ended after {PATIENCE:?}"));
    seen
}

impl Seen {
    fn note(
        &mut self,
        news: News,
        work: &Work,
        kubelet: &Kubelet,
        limit: &Arc<Semaphore>,
        send: &mpsc::UnboundedSender<News>,
    ) {
        let now = Instant::now();
        match news {
            News::Created(job, at) => self.lives.entry(job).or_default().created = Some(at),
            News::Pod { job, pod } => {
                let life = self.lives.entry(job.clone()).or_default();
                if life.pods.contains_key(&pod) {
                    return;
                }
                life.pods.insert(pod.clone(), now);
                let (kubelet, limit, send) = (kubelet.clone(), limit.clone(), send.clone());
                tokio::spawn(async move {
                    let _permit = limit.acquire().await.unwrap();
                    kubelet.patch(&pod, &status("Running")).await;
                    let _ = send.send(News::Runs { job });
                });
            }
            News::Runs { job } => {
                let life = self.lives.entry(job.clone()).or_default();
                life.running_pods += 1;
                if life.running_pods < work.pods() {
                    return;
                }
                let pods: Vec<String> = life.pods.keys().cloned().collect();
                let (kubelet, limit, send, train) =
                    (kubelet.clone(), limit.clone(), send.clone(), work.train);
                tokio::spawn(async move {
                    sleep(train).await;
                    join_all(pods.iter().map(|pod| async {
                        let _permit = limit.acquire().await.unwrap();
                        kubelet.patch(pod, &status("Succeeded")).await;
                    }))
                    .await;
                    let at = Instant::now();
                    let _ = send.send(News::Ended { job, at });
                });
            }
            News::Ended { job, at } => self.lives.entry(job).or_default().last_pod_ended = Some(at),
            News::Job {
                job,
                running,
                succeeded,
            } => {
                let life = self.lives.entry(job).or_default();
                if running {
                    life.running.get_or_insert(now);
                }
                if succeeded {
                    life.succeeded.get_or_insert(now);
                }
            }
        }
    }
}

/// The status of a pod whose container runs, or has ended with 0.
fn status(phase: &str) -> PodStatus {
    let state = match phase {
        "Running" => json!({"running": {}}),
        _ => json!({"terminated": {"exitCode": 0}}),
    };
    let container = json!({"name": "mxnet", "image": "", "imageID": "", "ready": phase == "Running",
                           "restartCount": 0, "state": state});
    serde_json::from_value(json!({"phase": phase, "containerStatuses": [container]})).unwrap()
}

async fn watch_pods(client: kube::Client, namespace: String, send: mpsc::UnboundedSender<News>) {
    let watch = Watch::new(Api::<Pod>::namespaced(client, &namespace));
    watch
        .run(|event| {
            let (Event::Listed(pod) | Event::Applied(pod)) = event else {
                return;
            };
            let job = pod
                .metadata
                .labels
                .as_ref()
                .and_then(|all| all.get(labels::JOB_NAME));
            if let (Some(job), Some(name)) = (job, &pod.metadata.name) {
                let (job, pod) = (job.clone(), name.clone());
                let _ = send.send(News::Pod { job, pod });
            }
        })
        .await;
}

async fn watch_jobs(client: kube::Client, namespace: String, send: mpsc::UnboundedSender<News>) {
    let watch = Watch::new(Api::<MXJob>::namespaced(client, &namespace));
    watch
        .run(|event| {
            let (Event::Listed(job) | Event::Applied(job)) = event else {
                return;
            };
            let is = |type_| job.status.as_ref().is_some_and(|status| status.is(type_));
            let news = News::Job {
                job: job.metadata.name.clone().unwrap_or_default(),
                running: is(ConditionType::Running),
                succeeded: is(ConditionType::Succeeded),
            };
            let _ = send.send(news);
        })
        .await;
}

impl Display for Seen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let lives = || self.lives.values();
        let made = lives().flat_map(|life| life.pods.values().map(|at| *at - life.created.unwrap()));
        let shown = lives().filter_map(|life| Some(life.running? - life.created.unwrap()));
        let ends =
            lives().filter_map(|life| Some(life.succeeded?.saturating_duration_since(life.last_pod_ended?)));
        let last = |time: fn(&Life) -> Option<Instant>| {
            let last = lives().filter_map(time).max();
            (last.unwrap_or(self.begun) - self.begun).as_secs_f64()
        };
        writeln!(f, "pods made           {}", Spread::of(made))?;
        writeln!(f, "Running shown       {}", Spread::of(shown))?;
        writeln!(f, "end told            {}", Spread::of(ends))?;
        writeln!(
            f,
            "all pods made after {:.1} s",
            last(|life| life.pods.values().max().copied())
        )?;
        writeln!(f, "all jobs done after {:.1} s", last(|life| life.succeeded))
    }
}

/// Times of many, in seconds.
struct Spread(Vec<f64>);

impl Spread {
    fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut times: Vec<f64> = times.map(|time| time.as_secs_f64()).collect();
        times.sort_by(f64::total_cmp);
        Self(times)
    }

    fn at(&self, percent: usize) -> f64 {
        let place = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(place).copied().unwrap_or_default()
    }
}

impl Display for Spread {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (half, most) = (self.at(50), self.at(99));
        write!(f, "p50 {half:.2} s, p99 {most:.2} s, of {}", self.0.len())
    }
}
