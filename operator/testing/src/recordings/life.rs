//! Records a job of each kind at each stage of its life, as the API server stores it.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use futures::future::{join, join_all};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Map, Value, json};
use training_job_testbed::cluster::{ControlPlane, Kubelet, repository, wait, wait_for_all};

use super::kinds::{KINDS, Kind};
use crate::operator::{EVERY_KIND, start};

/// A stage of a job's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The job is stored, and no operator has observed it.
    New,
    /// The pods exist, and none runs.
    Created,
    /// One worker runs, which does not decide the job's end.
    Waiting,
    Running,
    /// A worker was killed, and its replacement does not run yet.
    Restarting,
    /// All replicas run after the restart.
    Restarted,
    Suspended,
    /// All replicas run after the suspension.
    Resumed,
    /// All replicas run under this operator, and the status was written by another operator.
    TakenOver,
    /// The deciding replicas have succeeded while the others ran.
    Succeeded,
    /// A worker has ended with an exit code that is final.
    Failed,
    /// The job has succeeded within a second.
    Quick,
    /// All pods of a job exist and none runs, because the KAI scheduler waits for all of them.
    Gang,
}

impl Stage {
    pub fn is_success(self) -> bool {
        matches!(self, Self::Succeeded | Self::Quick)
    }

    /// Returns true if all replicas run.
    pub fn is_running(self) -> bool {
        matches!(
            self,
            Self::Running | Self::Restarted | Self::Resumed | Self::TakenOver
        )
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format!("{self:?}").to_lowercase())
    }
}

/// A job at a stage.
pub struct Recording {
    pub kind: &'static Kind,
    pub stage: Stage,
    pub job: Value,
    /// The pods that exist.
    pub pods: Vec<Value>,
    /// True if `Running` was true before, in any observed version of the job.
    pub ran: bool,
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name, self.stage)
    }
}

impl Recording {
    /// Returns the file with the job.
    pub fn file(&self) -> PathBuf {
        let group = self.kind.version.split('/').next().unwrap_or_default();
        let folder = repository().join("target/consumers/jobs").join(group);
        folder.join(format!("{}-{}.json", self.kind.name, self.stage))
    }

    fn write(&self) {
        let file = self.file();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, self.job.to_string()).unwrap();
    }
}

struct Life<'a> {
    kind: &'static Kind,
    jobs: Api<DynamicObject>,
    pods: Api<Pod>,
    kubelet: &'a Kubelet,
    recordings: Vec<Recording>,
}

/// Runs jobs of all kinds in a namespace and returns the recordings. The jobs are also written to files.
pub async fn play(cluster: &ControlPlane) -> Vec<Recording> {
    cluster.install_crds().await;
    let namespace = cluster.namespace("consumers").await;
    let kubelet = cluster.kubelet(&namespace).await;
    let mut lives: Vec<_> = KINDS
        .iter()
        .map(|kind| Life::new(kind, cluster, &namespace, &kubelet))
        .collect();
    join_all(lives.iter_mut().map(Life::create)).await;
    let flags = ["--namespace", &namespace, EVERY_KIND];
    let operator = start(cluster, &flags).await;
    join_all(lives.iter_mut().map(Life::grow_up)).await;
    drop(operator);
    join_all(lives.iter_mut().map(Life::change_hands)).await;
    let operator = start(cluster, &flags).await;
    join_all(lives.iter_mut().map(Life::end)).await;
    assert_eq!(operator.ended(), None, "{}", operator.text());
    let recordings: Vec<_> = lives.into_iter().flat_map(|life| life.recordings).collect();
    recordings.iter().for_each(Recording::write);
    recordings
}

impl<'a> Life<'a> {
    fn new(kind: &'static Kind, cluster: &ControlPlane, namespace: &str, kubelet: &'a Kubelet) -> Self {
        let (group, version) = kind.version.split_once('/').unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind.name));
        Self {
            kind,
            jobs: Api::namespaced_with(cluster.client(), namespace, &resource),
            pods: Api::namespaced(cluster.client(), namespace),
            kubelet,
            recordings: Vec::new(),
        }
    }

    /// Returns the name of a job: the one that passes through most stages, or one that only ends.
    fn name(&self, what: &str) -> String {
        let group = if self.kind.is_kubeflow() { "" } else { "-2017" };
        format!("{}{group}-{what}", self.kind.name.to_lowercase())
    }

    async fn create(&mut self) {
        let job = self.submit("long").await;
        self.record(Stage::New, &self.name("long"), (job, false)).await;
    }

    async fn submit(&self, what: &str) -> DynamicObject {
        let scheduler = if what == "gang" {
            "kai-scheduler"
        } else {
            "default-scheduler"
        };
        let job = self.kind.manifest(&self.name(what), scheduler);
        let job: DynamicObject = serde_json::from_value(job).unwrap();
        self.jobs.create(&PostParams::default(), &job).await.unwrap()
    }

    async fn grow_up(&mut self) {
        let name = self.name("long");
        let first = self.kind.first_pods();
        let pods = self.pods_of(&name, |pods| pods.len() == first).await;
        self.until(Stage::Created, &name, |job| is(job, "Created")).await;
        if self.kind.first_pods() > self.kind.deciding_pods() && !self.kind.decides("Worker") {
            let worker = pods.iter().find(|pod| is_worker(pod)).unwrap();
            self.kubelet.runs(&worker.name_any()).await;
            self.until(Stage::Waiting, &name, |job| active(job) == 1).await;
        }
        self.run(Stage::Running, &name).await;
        if !self.kind.is_kubeflow() {
            return;
        }
        self.exit(&name, 137).await;
        self.until(Stage::Restarting, &name, |job| is(job, "Restarting"))
            .await;
        self.run(Stage::Restarted, &name).await;
        self.suspend(&name, true).await;
        self.pods_of(&name, <[Pod]>::is_empty).await;
        self.until(Stage::Suspended, &name, |job| {
            is(job, "Suspended") && active(job) == 0
        })
        .await;
        self.suspend(&name, false).await;
        self.run(Stage::Resumed, &name).await;
    }

    /// Removes the fields that only this operator writes from the status, and the counts, which the successor writes
    /// anew.
    async fn change_hands(&mut self) {
        if !self.kind.is_kubeflow() {
            return;
        }
        let gone = ["recovery", "restartCount", "failure", "replicaStatuses"];
        let gone: Map<_, _> = gone
            .iter()
            .map(|field| ((*field).to_owned(), Value::Null))
            .collect();
        let patch = Patch::Merge(json!({ "status": gone }));
        let name = self.name("long");
        let parameters = PatchParams::default();
        self.jobs.patch_status(&name, &parameters, &patch).await.unwrap();
    }

    async fn end(&mut self) {
        let name = self.name("long");
        if self.kind.is_kubeflow() {
            let all = self.kind.pods();
            self.until(Stage::TakenOver, &name, |job| active(job) == all)
                .await;
        }
        self.succeed(&name).await;
        self.until(Stage::Succeeded, &name, |job| is(job, "Succeeded"))
            .await;

        let name = self.name("bad");
        self.submit("bad").await;
        self.run_all(&name).await;
        self.until_running(&name).await;
        self.exit(&name, 1).await;
        self.until(Stage::Failed, &name, |job| is(job, "Failed")).await;

        let name = self.name("quick");
        let live = async {
            self.submit("quick").await;
            self.run_all(&name).await;
            self.succeed(&name).await;
        };
        let (quick, ()) = join(self.seen(&name, |job| is(job, "Succeeded")), live).await;
        self.record(Stage::Quick, &name, quick).await;

        if self.kind.is_known_to_kai() {
            let (name, all) = (self.name("gang"), self.kind.pods());
            self.submit("gang").await;
            self.pods_of(&name, |pods| pods.len() == all).await;
            self.until(Stage::Gang, &name, |job| is(job, "Created")).await;
        }
    }

    /// Starts pods until all run and the job reports it.
    async fn run(&mut self, stage: Stage, name: &str) {
        self.run_all(name).await;
        let all = self.kind.pods();
        self.until(stage, name, |job| is(job, "Running") && active(job) == all)
            .await;
    }

    async fn run_all(&self, name: &str) {
        let waits = |pod: &Pod| phase(pod) == "Pending";
        let all = self.kind.pods();
        loop {
            let is_next = |pods: &[Pod]| pods.iter().any(waits) || pods.len() == all;
            let pods = self.pods_of(name, is_next).await;
            for pod in pods.iter().filter(|pod| waits(pod)) {
                self.kubelet.runs(&pod.name_any()).await;
            }
            if pods.len() == all && pods.iter().all(|pod| waits(pod) || phase(pod) == "Running") {
                return;
            }
        }
    }

    async fn until_running(&self, name: &str) {
        wait(self.jobs.clone(), name, |job: Option<&DynamicObject>| {
            job.is_some_and(|job| is(&job.data, "Running"))
        })
        .await;
    }

    async fn suspend(&self, name: &str, suspend: bool) {
        let patch = Patch::Merge(json!({"spec": {"runPolicy": {"suspend": suspend}}}));
        let parameters = PatchParams::default();
        self.jobs.patch(name, &parameters, &patch).await.unwrap();
    }

    /// Ends the first worker with this exit code.
    async fn exit(&self, name: &str, code: i32) {
        let pods = self.pods_of(name, |pods| pods.iter().any(is_worker)).await;
        let worker = pods.iter().find(|pod| is_worker(pod)).unwrap();
        let container = &worker.spec.as_ref().unwrap().containers[0].name;
        self.kubelet.exits(&worker.name_any(), container, code).await;
    }

    async fn succeed(&self, name: &str) {
        for pod in self.pods_of(name, |pods| !pods.is_empty()).await {
            let role = &pod.labels()["training.kubeflow.org/replica-type"];
            if self.kind.decides(role) {
                self.kubelet.succeeds(&pod.name_any()).await;
            }
        }
    }

    /// Waits until a job is at a stage, and records it.
    async fn until(&mut self, stage: Stage, name: &str, at: impl Fn(&Value) -> bool) {
        let seen = self.seen(name, at).await;
        self.record(stage, name, seen).await;
    }

    /// Waits until a job meets a condition. Returns the job, and true if it was running in this version or an earlier
    /// one.
    async fn seen(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> (DynamicObject, bool) {
        let mut ran = false;
        let look = |job: Option<&DynamicObject>| {
            job.is_some_and(|job| {
                ran |= is(&job.data, "Running");
                wanted(&job.data)
            })
        };
        let job = wait(self.jobs.clone(), name, look).await.unwrap();
        (job, ran)
    }

    async fn record(&mut self, stage: Stage, name: &str, (job, ran): (DynamicObject, bool)) {
        let pods = self.pods_of(name, |_| true).await;
        let mut job = serde_json::to_value(job).unwrap();
        job["apiVersion"] = json!(self.kind.version);
        job["kind"] = json!(self.kind.name);
        let pods = pods.iter().map(|pod| serde_json::to_value(pod).unwrap());
        self.recordings.push(Recording {
            kind: self.kind,
            stage,
            job,
            pods: pods.collect(),
            ran,
        });
    }

    /// Waits until the pods that a job controls, sorted by name, meet a condition. Pods that are being deleted do not
    /// count.
    async fn pods_of(&self, name: &str, condition: impl Fn(&[Pod]) -> bool) -> Vec<Pod> {
        let of_job = |all: &[Pod]| {
            let is_its = |pod: &&Pod| {
                let owner = pod.owner_references().first();
                owner.is_some_and(|owner| owner.name == name) && pod.metadata.deletion_timestamp.is_none()
            };
            let mut pods: Vec<_> = all.iter().filter(is_its).cloned().collect();
            pods.sort_by_key(ResourceExt::name_any);
            pods
        };
        let all = wait_for_all(self.pods.clone(), "", |all| condition(&of_job(all)));
        of_job(&all.await)
    }
}

impl Kind {
    fn decides(&self, role: &str) -> bool {
        self.deciding.iter().any(|one| one.eq_ignore_ascii_case(role))
    }

    fn deciding_pods(&self) -> usize {
        let deciding = self.roles.iter().filter(|(role, _)| self.decides(role));
        let late = |role: &str| Some(role) == self.late;
        deciding
            .filter(|(role, _)| !late(role))
            .map(|(_, count)| *count as usize)
            .sum()
    }
}

fn is_worker(pod: &Pod) -> bool {
    pod.labels()["training.kubeflow.org/replica-type"].eq_ignore_ascii_case("worker")
}

fn phase(pod: &Pod) -> &str {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase.unwrap_or_default()
}

/// Returns true if a condition of a job is true.
pub fn is(job: &Value, type_: &str) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    let mut all = conditions.into_iter().flatten();
    all.any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

/// Returns the number of running replicas that a job reports.
fn active(job: &Value) -> usize {
    let roles: Vec<&Value> = match &job["status"]["replicaStatuses"] {
        Value::Object(roles) => roles.values().map(|role| &role["active"]).collect(),
        Value::Array(roles) => roles
            .iter()
            .map(|role| &role["ReplicasStates"]["Running"])
            .collect(),
        _ => Vec::new(),
    };
    let counts = roles.into_iter().filter_map(Value::as_u64);
    usize::try_from(counts.sum::<u64>()).unwrap()
}
