//! The driver creates jobs, plays the kubelets of their pods, and records the times at which a user would see
//! changes.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use http::header::ACCEPT;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, PartialObjectMeta};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use training_job::api::labels;

use crate::follow::{Is, Told, follow};
use crate::test_cluster::TestCluster;
use crate::timelines::{JobTimeline, Timelines};
use crate::work::{Jobs, Kind};

/// Longer than any operator should need.
pub(crate) const EVENT_TIMEOUT: Duration = Duration::from_secs(900);

/// The maximum number of the driver's calls in flight.
pub(crate) const MAX_CALLS_IN_FLIGHT: usize = 32;

/// Requests only the metadata of an object.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// An event that the driver has received.
enum News {
    Created {
        job: String,
    },
    Pod {
        job: String,
        pod: String,
        uid: String,
    },
    Gone {
        job: String,
        pod: String,
        uid: String,
    },
    Runs {
        job: String,
        pod: String,
        uid: String,
    },
    Ended {
        job: String,
    },
    Job {
        job: String,
        running: bool,
        succeeded: bool,
    },
}

/// The users and kubelets of one namespace.
pub(crate) struct Driver {
    pub(crate) timelines: Timelines,
    clients: Clients,
    news: mpsc::UnboundedReceiver<(Instant, News)>,
    watches: [JoinHandle<()>; 2],
}

/// The clients of concurrent actions.
#[derive(Clone)]
struct Clients {
    users: kube::Client,
    kubelets: kube::Client,
    namespace: String,
    kind: Kind,
    limit: Arc<Semaphore>,
    send: mpsc::UnboundedSender<(Instant, News)>,
    /// The channel to the plain writer, if it is the contender.
    tell: Option<mpsc::UnboundedSender<Value>>,
}

impl Driver {
    pub(crate) async fn start(cluster: &TestCluster, kind: Kind) -> Self {
        let (send, news) = mpsc::unbounded_channel();
        let users = cluster.plane.client();
        let clients = Clients {
            users: users.clone(),
            kubelets: cluster.plane.kubelet(&cluster.namespace).await.client(),
            namespace: cluster.namespace.clone(),
            kind,
            limit: Arc::new(Semaphore::new(MAX_CALLS_IN_FLIGHT)),
            send: send.clone(),
            tell: cluster.tell.clone(),
        };
        let pods = Api::<PartialObjectMeta<Pod>>::namespaced(users.clone(), &cluster.namespace);
        let jobs = Api::<Told>::namespaced_with(users, &cluster.namespace, &kind.resource());
        let (of_pods, of_jobs) = (send.clone(), send);
        let watches = [
            tokio::spawn(follow(pods, move |pod, is| tell_pod(&pod, is, &of_pods))),
            tokio::spawn(follow(jobs, move |job, _| tell_job(&job, &of_jobs))),
        ];
        Self {
            timelines: Timelines::new(),
            clients,
            news,
            watches,
        }
    }

    /// Creates jobs of these names. `until` follows them.
    pub(crate) fn submit(&mut self, jobs: Jobs, names: impl IntoIterator<Item = String>) {
        for name in names {
            self.timelines.jobs.insert(name.clone(), JobTimeline::new(jobs));
            let clients = self.clients.clone();
            tokio::spawn(async move {
                let resource = jobs.kind.resource();
                let api = Api::<DynamicObject>::namespaced_with(
                    clients.users.clone(),
                    &clients.namespace,
                    &resource,
                );
                let made = {
                    let _permit = clients.limit.acquire().await.unwrap();
                    clients.news(News::Created { job: name.clone() });
                    api.create(&PostParams::default(), &jobs.job(&name))
                        .await
                        .unwrap()
                };
                clients.tell(json!({ "job": made }));
            });
        }
    }

    /// Processes events until the condition is met.
    pub(crate) async fn until(&mut self, what: &str, awaited: impl Fn(&Timelines) -> bool) {
        let all = async {
            while !awaited(&self.timelines) {
                let (at, news) = self.news.recv().await.unwrap();
                note(&mut self.timelines, at, news, &self.clients);
            }
        };
        let done = timeout(EVENT_TIMEOUT, all).await;
        done.unwrap_or_else(|_| panic!("awaited {what} for {EVENT_TIMEOUT:?}"));
    }

    /// Processes events for this time.
    pub(crate) async fn play(&mut self, time: Duration) {
        let all = async {
            loop {
                let (at, news) = self.news.recv().await.unwrap();
                note(&mut self.timelines, at, news, &self.clients);
            }
        };
        let _: Result<(), _> = timeout(time, all).await;
    }

    /// Creates running pods that belong to no job.
    pub(crate) async fn foreign(&self, count: usize) {
        let all = (0..count).map(|n| {
            let clients = self.clients.clone();
            tokio::spawn(async move {
                let name = format!("nobodys-{n}");
                let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
                let pod: Pod = serde_json::from_value(pod).unwrap();
                let api = Api::<Pod>::namespaced(clients.users.clone(), &clients.namespace);
                {
                    let _permit = clients.limit.acquire().await.unwrap();
                    api.create(&PostParams::default(), &pod).await.unwrap();
                }
                clients.set(&name, "Running", 0).await;
            })
        });
        for done in join_all(all).await {
            done.unwrap();
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

impl Clients {
    fn news(&self, news: News) {
        let _ = self.send.send((Instant::now(), news));
    }

    fn tell(&self, words: Value) {
        if let Some(tell) = &self.tell {
            let _ = tell.send(words);
        }
    }

    /// Writes the status that a kubelet writes when a pod's container runs or has ended. A missing pod is skipped.
    async fn set(&self, pod: &str, phase: &str, code: i32) {
        let _permit = self.limit.acquire().await.unwrap();
        let state = match phase {
            "Running" => json!({"running": {}}),
            _ => json!({"terminated": {"exitCode": code}}),
        };
        let container = json!({"name": self.kind.container(), "image": "", "imageID": "", "ready": phase == "Running",
                               "restartCount": 0, "state": state});
        let status = json!({"phase": phase, "containerStatuses": [container]});
        let pods = kube::core::Request::new(format!("/api/v1/namespaces/{}/pods", self.namespace));
        let patch = Patch::Merge(json!({ "status": status }));
        let mut request = pods
            .patch_subresource("status", pod, &PatchParams::default(), &patch)
            .unwrap();
        request
            .headers_mut()
            .insert(ACCEPT, METADATA_ONLY.parse().unwrap());
        match self.kubelets.request_text(request).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => panic!("status of pod {pod}: {error}"),
        }
    }
}

/// Records an event and acts as a kubelet would.
fn note(timelines: &mut Timelines, at: Instant, news: News, clients: &Clients) {
    let clients = clients.clone();
    match news {
        News::Created { job } => timelines.timeline(&job).created = Some(at),
        News::Pod { job, pod, uid } => {
            if timelines.timeline(&job).has(&pod, &uid, at) {
                return;
            }
            tokio::spawn(async move {
                clients.set(&pod, "Running", 0).await;
                clients.news(News::Runs { job, pod, uid });
            });
        }
        News::Gone { job, pod, uid } => {
            if timelines.timeline(&job).pod(&pod, &uid).is_some() {
                timelines.timeline(&job).pods.remove(&pod);
            }
        }
        News::Runs { job, pod, uid } => {
            let timeline = timelines.timeline(&job);
            if let Some(pod) = timeline.pod(&pod, &uid) {
                pod.runs = true;
            }
            if timeline.runs() && !timeline.is_ending {
                all_run(timeline, &job, at, clients);
            }
        }
        News::Ended { job } => timelines.timeline(&job).last_pod_ended = Some(at),
        News::Job {
            job,
            running,
            succeeded,
        } => {
            let timeline = timelines.timeline(&job);
            if running {
                timeline.running.get_or_insert(at);
            }
            if succeeded {
                timeline.succeeded.get_or_insert(at);
            }
        }
    }
}

/// Continues when all pods of a job run: a worker is killed, or the pods end after a time, or they run forever.
fn all_run(timeline: &mut JobTimeline, job: &str, at: Instant, clients: Clients) {
    timeline.all_run.get_or_insert(at);
    clients.tell(json!({ "runs": job }));
    let job = job.to_owned();
    if timeline.jobs.churn && timeline.killed.is_none() {
        timeline.killed = Some(at);
        let victim = timeline
            .pods
            .iter_mut()
            .find(|(pod, _)| pod.ends_with("-worker-0"));
        let (pod, known) = victim.expect("a job has a worker");
        known.runs = false;
        let pod = pod.clone();
        tokio::spawn(async move {
            clients.set(&pod, "Failed", 137).await;
            clients.tell(json!({"failed": [job, pod]}));
        });
    } else if let Some(train) = timeline.jobs.train {
        timeline.is_ending = true;
        // The pod that decides the job ends after all others.
        let kind = timeline.jobs.kind;
        let (last, first): (Vec<String>, Vec<String>) = timeline
            .pods
            .keys()
            .cloned()
            .partition(|pod| kind.is_decided_by(pod));
        tokio::spawn(async move {
            sleep(train).await;
            join_all(first.iter().map(|pod| clients.set(pod, "Succeeded", 0))).await;
            join_all(last.iter().map(|pod| clients.set(pod, "Succeeded", 0))).await;
            clients.news(News::Ended { job: job.clone() });
            clients.tell(json!({ "ended": job }));
        });
    }
}

fn tell_pod(pod: &PartialObjectMeta<Pod>, is: Is, send: &mpsc::UnboundedSender<(Instant, News)>) {
    let meta = pod.metadata.clone();
    let job = meta
        .labels
        .as_ref()
        .and_then(|all| all.get(&labels::Keys::DEFAULT.job_name()))
        .cloned();
    if let (Some(job), Some(pod), Some(uid)) = (job, meta.name, meta.uid) {
        let news = match is {
            Is::There => News::Pod { job, pod, uid },
            Is::Gone => News::Gone { job, pod, uid },
        };
        let _ = send.send((Instant::now(), news));
    }
}

fn tell_job(job: &Told, send: &mpsc::UnboundedSender<(Instant, News)>) {
    let is = |type_| job.status.as_ref().is_some_and(|status| status.is(type_));
    let news = News::Job {
        job: job.metadata.name.clone().unwrap_or_default(),
        running: is("Running"),
        succeeded: is("Succeeded"),
    };
    let _ = send.send((Instant::now(), news));
}
