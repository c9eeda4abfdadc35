//! Jobs of several kinds under random disturbances, at times that are derived from a seed. In the end each job must
//! succeed.

use std::env;
use std::time::Duration;

use futures::StreamExt;
use futures::future::ready;
use futures::stream::{self, BoxStream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};
use training_job_simulation::random::Random;
use training_job_testbed::cluster::WAIT_TIMEOUT;

use crate::jobs::{Kind, with_grace};
use crate::stage::{Stage, is, of, runs};

/// One disturbance of a storm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    /// Another job is created, unless there are enough.
    Make,
    /// A pod is deleted.
    DeletePod,
    EvictPod,
    /// The processes of a pod are killed.
    KillPod,
    /// A pod ends with exit code 0 before the others.
    EndPod,
    Suspend,
    Resume,
    /// The number of a job's workers is changed.
    Scale,
    /// A job is deleted, and another job of its name is created.
    MakeAgain,
    /// The operator is killed, and another one starts.
    KillOperator,
    /// Nodes stop or resume starting pods.
    HoldImages,
    /// A node is removed with its pods, and another one is added.
    LoseNode,
    /// An object of this group, version and kind is deleted, whatever its owner.
    Delete([&'static str; 3]),
    /// The queue of all jobs evicts the running jobs, or accepts jobs again.
    StopQueue,
}

/// The configuration of a storm.
pub(crate) struct Weather {
    pub(crate) kinds: &'static [Kind],
    /// The disturbances in addition to the common ones.
    pub(crate) acts: &'static [Act],
    /// Adapts a job to this storm.
    pub(crate) dress: fn(&Stage<'_>, &mut Random, &mut Value),
    pub(crate) most_workers: u64,
}

struct Job {
    name: String,
    kind: Kind,
}

struct Storm<'s, 'a> {
    stage: &'s mut Stage<'a>,
    random: Random,
    weather: &'s Weather,
    jobs: Vec<Job>,
    images_come: bool,
    queue_is_open: bool,
    begun: Instant,
}

/// The disturbances in every storm, with any scheduler.
const ALWAYS: [Act; 8] = [
    Act::Make,
    Act::Make,
    Act::Make,
    Act::DeletePod,
    Act::EvictPod,
    Act::KillPod,
    Act::KillPod,
    Act::KillOperator,
];

/// The maximum number of jobs.
const JOBS: usize = 12;

/// The number of disturbances.
const ACTS: usize = 60;

/// Returns the seeds: `STORM=7` for one, `STORM=7-20` for several.
pub(crate) fn seeds() -> Vec<u64> {
    let text = env::var("STORM").unwrap_or_else(|_| "1-2".to_owned());
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    (first.parse().unwrap()..=last.parse().unwrap()).collect()
}

/// Runs the storm of a seed on a stage, then waits until all jobs have succeeded.
pub(crate) async fn blows(stage: &mut Stage<'_>, seed: u64, weather: &Weather) {
    let mut storm = Storm {
        stage,
        random: Random::new(seed),
        weather,
        jobs: Vec::new(),
        images_come: true,
        queue_is_open: true,
        begun: Instant::now(),
    };
    eprintln!("storm {seed}");
    for _ in 0..3 {
        storm.act(Act::Make).await;
    }
    let acts = [&ALWAYS, weather.acts].concat();
    for _ in 0..ACTS {
        // The times are random as well.
        let pause = *storm.random.pick(&[0, 20, 100, 400, 1_500]);
        sleep(Duration::from_millis(storm.random.below(pause + 1))).await;
        let act = *storm.random.pick(&acts);
        storm.act(act).await;
    }
    storm.calms_down().await;
}

impl Storm<'_, '_> {
    fn tell(&self, what: &str) {
        eprintln!("{:8.3} {what}", self.begun.elapsed().as_secs_f64());
    }

    async fn act(&mut self, act: Act) {
        match act {
            Act::Make if self.jobs.len() < JOBS => {
                let job = Job {
                    name: format!("job-{}", self.jobs.len()),
                    kind: *self.random.pick(self.weather.kinds),
                };
                self.make(&job).await;
                self.jobs.push(job);
            }
            Act::Make => {}
            Act::DeletePod | Act::EvictPod | Act::KillPod | Act::EndPod => self.hit_pod(act).await,
            Act::Suspend => self.suspend(true).await,
            Act::Resume => self.suspend(false).await,
            Act::Scale => {
                let workers = self.random.between(1, self.weather.most_workers);
                if let Some(job) = self.a_job() {
                    self.tell(&format!("{} is to have {workers} workers", job.name));
                    self.edit(&job, job.kind.workers(workers.try_into().unwrap()))
                        .await;
                }
            }
            Act::MakeAgain => {
                if let Some(job) = self.a_job() {
                    self.tell(&format!("{} is deleted", job.name));
                    let _ = self
                        .jobs_of(&job.kind)
                        .delete(&job.name, &DeleteParams::default())
                        .await;
                    self.make(&job).await;
                }
            }
            Act::KillOperator => {
                self.tell("the operator is killed");
                self.stage.turn();
            }
            Act::HoldImages => {
                self.images_come = !self.images_come;
                self.tell(&format!("images come: {}", self.images_come));
                self.stage.nodes.start_pods(self.images_come);
            }
            Act::LoseNode => self.lose_node().await,
            Act::Delete([group, version, kind]) => {
                let api = self.stage.api(group, version, kind);
                let all = api.list(&ListParams::default()).await.unwrap().items;
                if !all.is_empty() {
                    let name = self.random.pick(&all).name_any();
                    self.tell(&format!("{kind} {name} is deleted"));
                    let _ = api.delete(&name, &DeleteParams::default()).await;
                }
            }
            Act::StopQueue => {
                self.queue_is_open = !self.queue_is_open;
                self.open_queue(self.queue_is_open).await;
            }
        }
    }

    async fn make(&mut self, job: &Job) {
        let workers = self.random.between(1, self.weather.most_workers);
        let grace = *self.random.pick(&[0, 1, 4]);
        let mut object = with_grace(job.kind.job(&job.name), &job.kind, grace);
        object["spec"][job.kind.specs]["Worker"]["replicas"] = workers.into();
        let policy = &mut object["spec"]["runPolicy"];
        policy["backoffLimit"] = 1_000.into();
        policy["cleanPodPolicy"] = "Running".into();
        if self.random.chance(500) {
            policy["restartScope"] = (*self.random.pick(&["Replica", "Job"])).into();
        }
        let scope = policy["restartScope"].clone();
        (self.weather.dress)(self.stage, &mut self.random, &mut object);
        self.tell(&format!(
            "{} {} is made: {workers} workers, {scope}, {grace} s of grace",
            job.kind.name, job.name
        ));
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        self.jobs_of(&job.kind)
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    fn jobs_of(&self, kind: &Kind) -> Api<DynamicObject> {
        self.stage.api("kubeflow.org", "v1", kind.name)
    }

    fn a_job(&mut self) -> Option<Job> {
        let job = (!self.jobs.is_empty()).then(|| self.random.pick(&self.jobs))?;
        Some(Job {
            name: job.name.clone(),
            kind: job.kind,
        })
    }

    async fn edit(&self, job: &Job, patch: Value) {
        let patch = Patch::Merge(patch);
        let done = self
            .jobs_of(&job.kind)
            .patch(&job.name, &PatchParams::default(), &patch)
            .await;
        done.unwrap_or_else(|e| panic!("{}: {e}", job.name));
    }

    async fn suspend(&mut self, suspend: bool) {
        if let Some(job) = self.a_job() {
            self.tell(&format!("{}: suspend is {suspend}", job.name));
            self.edit(&job, json!({"spec": {"runPolicy": {"suspend": suspend}}}))
                .await;
        }
    }

    async fn hit_pod(&mut self, act: Act) {
        let pods = self
            .stage
            .pods()
            .list(&ListParams::default())
            .await
            .unwrap()
            .items;
        let lives = |pod: &Pod| matches!(phase(pod), Some("Pending" | "Running"));
        // Only running pods have processes that can end.
        let may = |pod: &&Pod| match act {
            Act::KillPod | Act::EndPod => runs(pod),
            _ => lives(pod),
        };
        let pods: Vec<_> = pods.iter().filter(may).collect();
        if pods.is_empty() {
            return;
        }
        let pod = (*self.random.pick(&pods)).clone();
        let name = pod.name_any();
        self.tell(&format!("{act:?} {name}"));
        match act {
            Act::KillPod => self.stage.kubelet.kills(pod).await,
            Act::EndPod => self.stage.kubelet.ends_well(pod).await,
            Act::EvictPod => _ = self.stage.pods().evict(&name, &EvictParams::default()).await,
            _ => _ = self.stage.pods().delete(&name, &DeleteParams::default()).await,
        }
    }

    async fn lose_node(&mut self) {
        let nodes: Api<Node> = Api::all(self.stage.plane.client());
        let all = nodes.list(&ListParams::default()).await.unwrap().items;
        let lost = self.random.pick(&all);
        let name = lost.name_any();
        let cpus = lost
            .status
            .as_ref()
            .and_then(|s| s.capacity.as_ref()?.get("cpu").cloned());
        let cpus = cpus.unwrap().0.parse().unwrap();
        self.tell(&format!("{name} is lost"));
        nodes.delete(&name, &DeleteParams::default()).await.unwrap();
        let on_it = ListParams::default().fields(&format!("spec.nodeName={name}"));
        let now = DeleteParams::default().grace_period(0);
        self.stage.pods().delete_collection(&now, &on_it).await.unwrap();
        sleep(Duration::from_millis(self.random.below(3_000))).await;
        self.tell("another node comes");
        self.stage.add_node(cpus).await;
    }

    async fn open_queue(&self, is_open: bool) {
        self.tell(&format!("the queue is open: {is_open}"));
        let policy = if is_open { "None" } else { "HoldAndDrain" };
        let patch = Patch::Merge(json!({"spec": {"stopPolicy": policy}}));
        let queues = self.stage.cluster_queues();
        let name = &self.stage.namespace;
        queues.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Stops the disturbances. From now on only pods end, those of a job once all of them run.
    async fn calms_down(&mut self) {
        self.tell("calm");
        self.stage.nodes.start_pods(true);
        if !self.queue_is_open {
            self.open_queue(true).await;
        }
        if self.weather.acts.contains(&Act::Suspend) {
            for job in &self.jobs {
                self.edit(job, json!({"spec": {"runPolicy": {"suspend": false}}}))
                    .await;
            }
        }
        let mut changed = self.changed_jobs();
        let mut left: Vec<_> = self.jobs.iter().collect();
        let mut deadline = Instant::now() + WAIT_TIMEOUT;
        while !left.is_empty() {
            let Ok(name) = timeout_at(deadline, changed.next()).await else {
                let names: Vec<_> = left.iter().map(|job| &job.name).collect();
                panic!("these get no further: {names:?}\n{}", self.state().await);
            };
            let name = name.unwrap();
            let Some(job) = left.iter().find(|job| job.name == name) else {
                continue;
            };
            if self.is_over(job).await {
                self.tell(&format!("{name} has succeeded"));
                left.retain(|other| other.name != name);
                deadline = Instant::now() + WAIT_TIMEOUT;
            }
        }
        self.tell("over");
    }

    /// Returns a stream of the names of jobs that have changed or whose pods have changed.
    fn changed_jobs(&self) -> BoxStream<'static, String> {
        let of_kind = |kind| watcher(self.jobs_of(kind), watcher::Config::default()).default_backoff();
        let jobs = self.weather.kinds.iter().map(of_kind);
        let jobs = jobs.map(|events| {
            events
                .filter_map(|event| ready(applied(event).map(|job| job.name_any())))
                .boxed()
        });
        let pods = watcher(self.stage.pods(), watcher::Config::default()).default_backoff();
        let of_pod = |pod: Pod| pod.labels().get("training.kubeflow.org/job-name").cloned();
        let pods = pods.filter_map(move |event| ready(applied(event).and_then(of_pod)));
        stream::select_all(jobs.chain([pods.boxed()])).boxed()
    }

    /// Returns true if a job has succeeded. If all of its replicas run or have ended, ends the running ones now.
    async fn is_over(&self, job: &Job) -> bool {
        let stored = self.jobs_of(&job.kind).get(&job.name).await.unwrap();
        assert!(!is(&stored, "Failed", "True"), "{stored:#?}");
        if is(&stored, "Succeeded", "True") {
            return true;
        }
        let of_job = ListParams::default().labels(&of(&job.name));
        let pods = self.stage.pods().list(&of_job).await.unwrap().items;
        let succeeded = |pod: &&Pod| phase(pod) == Some("Succeeded");
        let seen = pods.iter().filter(succeeded).count() as i64;
        // Succeeded pods may have been deleted.
        let ended = seen.max(sum(&stored.data["status"]["replicaStatuses"], "succeeded", 0));
        let mut running: Vec<_> = pods.into_iter().filter(runs).collect();
        let wanted = sum(&stored.data["spec"][job.kind.specs], "replicas", 1);
        if running.len() as i64 + ended >= wanted && is(&stored, "Running", "True") {
            self.tell(&format!("{} ends", job.name));
            running.sort_by_key(|pod| decides(&pod.name_any()));
            for pod in running {
                self.stage.kubelet.ends_well(pod).await;
            }
        }
        false
    }

    /// Returns the state of the namespace for the message of a failed test.
    async fn state(&self) -> String {
        let (plane, namespace) = (self.stage.plane, &self.stage.namespace);
        let everything = [
            "get",
            "training,pods,podgroups,events",
            "--namespace",
            namespace,
            "-o",
            "wide",
            "--ignore-not-found",
        ];
        let state = plane.kubectl(&everything).await;
        format!("{state:#?}\n{}", self.stage.operator().0.text())
    }
}

/// Returns the object of a watch event.
fn applied<K>(event: watcher::Result<Event<K>>) -> Option<K> {
    match event {
        Ok(Event::Apply(object) | Event::InitApply(object)) => Some(object),
        _ => None,
    }
}

/// Returns the sum of a number over all roles. `absent` is the value of a role without it.
fn sum(roles: &Value, number: &str, absent: i64) -> i64 {
    let roles = roles.as_object().into_iter().flat_map(|roles| roles.values());
    roles.map(|role| role[number].as_i64().unwrap_or(absent)).sum()
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// Returns the rank of a pod in the order in which pods end. The pods that decide the job end last, because a
/// finished job frees the capacity of the others.
fn decides(pod: &str) -> u32 {
    let is_of = |role: &str| pod.contains(&format!("-{role}-")) || pod.ends_with(&format!("-{role}"));
    match () {
        () if ["scheduler", "master", "launcher"].into_iter().any(is_of) => 2,
        () if pod.ends_with("-worker-0") => 1,
        () => 0,
    }
}
