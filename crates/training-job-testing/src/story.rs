//! Runs a job's life on the in-memory API step by step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube_memory::{Action, Cluster, Description};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

use crate::pod_script::PodScript;
use training_job::admission;
use training_job::api::{ConditionStatus, JobStatus};
use training_job::job::{Kind, Settings, TrainingJob};
use training_job::validate::validate;
use training_job_controller::{Clock, Operator, Options};

use super::jobs;

/// The seconds without a write after which the operator is at rest. They are longer than the delay of counts and the
/// grace period of a success.
const IDLE_SECONDS: u32 = 15;

/// The maximum number of seconds until the operator is at rest.
const MAX_SECONDS_TO_REST: u32 = 600;

/// A job's life on the in-memory API. The [`Operator`](training_job_controller::Operator) reconciles the job, and the methods of the
/// story change its pods as a kubelet would. No process runs, and a test takes no time: the clock is simulated, and
/// jumps ahead when everything waits.
///
/// After each step the operator works until it has written nothing for 15 simulated seconds, so a test needs no waits.
///
/// ```
/// # use k8s_openapi::api::core::v1::EnvVar;
/// # use kube::CustomResource;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # use training_job::api::{JobStatus, ReplicaSpecs, RestartPolicy, RunPolicy};
/// # use training_job::{Framework, Replica, RoleDefinition, RoleSpecs, Topology, TrainingJob};
/// # #[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
/// # #[kube(group = "example.com", version = "v1", kind = "ToyJob", namespaced, status = "JobStatus")]
/// # #[serde(rename_all = "camelCase")]
/// # struct ToyJobSpec { #[serde(default)] replica_specs: ReplicaSpecs }
/// # impl TrainingJob for ToyJob {
/// #     const FRAMEWORK: Framework = Framework::new("toy", "toyjob-controller")
/// #         .restart_policy(&RestartPolicy::ExitCode)
/// #         .roles("replicaSpecs", &[RoleDefinition::new("Worker")]);
/// #     fn replica_specs(&self) -> RoleSpecs<'_> { RoleSpecs::map(&self.spec.replica_specs) }
/// #     fn run_policy(&self) -> RunPolicy { RunPolicy::default() }
/// #     fn status(&self) -> Option<&JobStatus> { self.status.as_ref() }
/// #     fn env(&self, _: &Topology<'_>, _: &Replica<'_>) -> Vec<EnvVar> { Vec::new() }
/// # }
/// use training_job_testing::Story;
///
/// let mut story = Story::<ToyJob>::new("
/// apiVersion: example.com/v1
/// kind: ToyJob
/// metadata: {name: blocks}
/// spec: {replicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: toy, image: i}]}}}}}
/// ");
/// story.all_run();
/// assert_eq!(story.conditions(), ["Created", "Running"]);
/// story.exits("blocks-worker-1", 137);
/// assert_eq!(story.restarted(), ["blocks-worker-1"]);
/// story.all_run().exits("blocks-worker-0", 0).exits("blocks-worker-1", 0);
/// assert_eq!(story.conditions(), ["Created", "Succeeded"]);
/// ```
///
/// Limits: pods are bound to no node, so a deleted pod is gone immediately. The rules of the definition are not
/// evaluated ([`check_definition`](super::check_definition) does that), so the operator's validation rejects an invalid
/// job.
pub struct Story<J> {
    runtime: Runtime,
    clock: SimulatedClock,
    cluster: Cluster,
    client: kube::Client,
    namespace: String,
    name: String,
    kind: std::marker::PhantomData<J>,
}

/// The paused clock of Tokio as the time of day.
#[derive(Clone, Copy)]
struct SimulatedClock(Instant);

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        // 2030-01-01, a round day.
        Timestamp::UNIX_EPOCH + Duration::from_secs(1_893_456_000) + self.0.elapsed()
    }
}

impl<J: TrainingJob> Story<J> {
    /// Creates a cluster with the kind's definition, an operator, and the first job of kind `J` in a manifest, which is
    /// YAML or JSON.
    ///
    /// # Panics
    /// If the manifest cannot be read or has no such job; if the API rejects the definition or the job; in an
    /// asynchronous test, because the story has a runtime of its own.
    pub fn new(manifest: &str) -> Self {
        Self::with_options(manifest, Options::default())
    }

    /// Like [`new`](Self::new), with these options of the operator, such as settings of the kind. Their clock is
    /// replaced.
    ///
    /// # Panics
    /// As in [`new`](Self::new).
    pub fn with_options(manifest: &str, mut options: Options) -> Self {
        let of = Kind::of::<J>();
        let kind = of.name();
        let found = jobs::of_kind(&of, manifest).unwrap_or_else(|error| panic!("the manifest:{error}"));
        let Some(job) = found.into_iter().next() else {
            panic!("the manifest has no {kind} of {}", of.resource.api_version);
        };
        let text = |field: &str, or: &str| job["metadata"][field].as_str().unwrap_or(or).to_owned();
        let (namespace, name) = (text("namespace", "default"), text("name", ""));
        let definition = admission::definition_of(&of).unwrap_or_else(|error| panic!("{error}"));
        let job: DynamicObject =
            serde_json::from_value(job).unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build();
        let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
        let (clock, cluster, client) = runtime.block_on(async {
            let clock = SimulatedClock(Instant::now());
            let cluster = Cluster::builder()
                .auto_namespaces()
                .clock(move || clock.now())
                .build();
            for kind in of.framework.all_objects() {
                cluster.install_missing(Description::new(kind.group, kind.version, kind.kind, kind.plural));
            }
            let client = cluster.client(&namespace);
            let params = PostParams::default();
            let created = Api::all(client.clone()).create(&params, &definition).await;
            created.unwrap_or_else(|error| panic!("the definition of {kind}: {error}"));
            options.clock = Arc::new(clock);
            let operator = Operator::new(client.clone(), options).manage::<J>();
            tokio::spawn(operator.run());
            let api = Api::<DynamicObject>::default_namespaced_with(client.clone(), &J::api_resource());
            let created = api.create(&params, &job).await;
            created.unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
            (clock, cluster, client)
        });
        let kind = std::marker::PhantomData;
        let mut story = Self {
            runtime,
            clock,
            cluster,
            client,
            namespace,
            name,
            kind,
        };
        story.settle();
        story
    }

    /// Starts all pods that have not started.
    pub fn all_run(&mut self) -> &mut Self {
        let waiting = |pod: &Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            !matches!(phase, Some("Running" | "Succeeded" | "Failed"))
        };
        for pod in self.pods().into_iter().filter(|name| waiting(&self.pod(name))) {
            self.write(&pod, |script| script.runs());
        }
        self.settle()
    }

    /// Starts a pod.
    ///
    /// # Panics
    /// If the pod does not exist.
    pub fn runs(&mut self, pod: &str) -> &mut Self {
        self.write(pod, |script| script.runs());
        self.settle()
    }

    /// Starts a pod that is not ready yet. [`runs`](Self::runs) makes it ready.
    ///
    /// # Panics
    /// If the pod does not exist.
    pub fn starts(&mut self, pod: &str) -> &mut Self {
        self.write(pod, |script| script.starts());
        self.settle()
    }

    /// Ends a pod: the framework's container with this exit code, and all others with 0.
    ///
    /// # Panics
    /// If the pod does not exist.
    pub fn exits(&mut self, pod: &str, code: i32) -> &mut Self {
        self.exits_saying(pod, code, "")
    }

    /// Ends a pod as [`exits`](Self::exits) does. The framework's container has written this termination message.
    ///
    /// # Panics
    /// If the pod does not exist.
    pub fn exits_saying(&mut self, pod: &str, code: i32, message: &str) -> &mut Self {
        let main = self.main_container(pod);
        self.write(pod, |script| {
            let is_main = |name: &str| main.as_deref() == Some(name);
            let mut status = match code {
                0 => script.succeeds(),
                _ => script.fails(|name| if is_main(name) { code } else { 0 }),
            };
            let containers = status.container_statuses.iter_mut().flatten();
            for container in containers.filter(|container| is_main(&container.name)) {
                let end = container
                    .state
                    .as_mut()
                    .and_then(|state| state.terminated.as_mut());
                if let Some(end) = end.filter(|_| !message.is_empty()) {
                    end.message = Some(message.to_owned());
                }
            }
            status
        });
        self.settle()
    }

    /// Returns the name of the framework's container in a replica's pod.
    fn main_container(&self, pod: &str) -> Option<String> {
        let job = self.job()?;
        let valid = validate(&job, &Settings::default()).ok()?;
        let replica = valid.topology.all().find(|replica| replica.pod_name() == pod)?;
        replica.role.main_container().map(|main| main.name.clone())
    }

    /// Evicts a pod, as a node without free memory does.
    ///
    /// # Panics
    /// If the pod does not exist.
    pub fn evicted(&mut self, pod: &str) -> &mut Self {
        self.write(pod, |script| script.evicted());
        self.settle()
    }

    /// Deletes a pod, as a user would.
    ///
    /// # Panics
    /// If the pod does not exist.
    pub fn deleted(&mut self, pod: &str) -> &mut Self {
        let api = Api::<Pod>::default_namespaced(self.client.clone());
        let deleted = self.runtime.block_on(api.delete(pod, &DeleteParams::default()));
        deleted.unwrap_or_else(|error| panic!("pod {pod}: {error}"));
        self.settle()
    }

    /// Changes the job with a merge patch, such as `{"spec": {"runPolicy": {"suspend": true}}}`.
    ///
    /// # Panics
    /// If the API rejects the patch.
    pub fn patch(&mut self, patch: &Value) -> &mut Self {
        let api = Api::<DynamicObject>::default_namespaced_with(self.client.clone(), &J::api_resource());
        let params = PatchParams::default();
        let patched = self
            .runtime
            .block_on(api.patch(&self.name, &params, &Patch::Merge(patch)));
        patched.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        self.settle()
    }

    /// Advances the clock by this time, and then until the operator is at rest.
    pub fn after(&mut self, time: Duration) -> &mut Self {
        self.runtime.block_on(async { sleep(time).await });
        self.settle()
    }

    /// Makes other calls to the API, such as an edit of one of the job's objects:
    /// `story.by_hand(async |client| { ... })`.
    pub fn by_hand(&mut self, calls: impl AsyncFnOnce(kube::Client)) -> &mut Self {
        self.runtime.block_on(calls(self.client.clone()));
        self.settle()
    }

    /// Returns the stored object with this name in the job's namespace, if it exists. `plural` is the plural of its
    /// kind, such as `configmaps`.
    pub fn object(&self, plural: &str, name: &str) -> Option<Value> {
        let stored = self.cluster.get(plural, &self.namespace, name)?;
        Some(stored.value().clone())
    }

    /// Returns the job, unless it is deleted.
    ///
    /// # Panics
    /// If the stored object cannot be decoded as `J`.
    pub fn job(&self) -> Option<J> {
        let stored = self.cluster.get(&resource::<J>(), &self.namespace, &self.name)?;
        let job = serde_json::from_value(stored.value().clone());
        Some(job.unwrap_or_else(|error| panic!("{}: {error}", self.name)))
    }

    /// Returns the job's status; empty if the job or its status does not exist.
    pub fn status(&self) -> JobStatus {
        let job = self.job();
        job.and_then(|job| job.status().cloned()).unwrap_or_default()
    }

    /// Returns the types of the conditions that are true, in the order of the status.
    pub fn conditions(&self) -> Vec<String> {
        let conditions = self.status().conditions.into_iter();
        let holding = conditions.filter(|condition| condition.status == ConditionStatus::True);
        holding.map(|condition| condition.type_.to_string()).collect()
    }

    /// Returns the names of the existing pods in alphabetical order.
    pub fn pods(&self) -> Vec<String> {
        let pods = self.cluster.list("pods", Some(&self.namespace));
        let names = pods
            .iter()
            .filter_map(|pod| pod.value()["metadata"]["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// Returns a pod.
    ///
    /// # Panics
    /// If the pod does not exist. The message has the names of the existing pods and the operator's last failure.
    pub fn pod(&self, name: &str) -> Pod {
        let Some(pod) = self.cluster.get("pods", &self.namespace, name) else {
            let others = match self.pods()[..] {
                [] => "none".to_owned(),
                ref names => names.join(", "),
            };
            let mut events = self.events().into_iter();
            let is_failure = |event: &String| {
                let reason = event.split(':').next().unwrap_or_default();
                reason.contains("Failed") || reason.contains("Panicked")
            };
            let failed = events.rfind(is_failure);
            let failed = failed.map_or_else(String::new, |event| format!("; {event}"));
            panic!("no pod {name} (has {others}){failed}");
        };
        serde_json::from_value(pod.value().clone()).unwrap_or_else(|error| panic!("pod {name}: {error}"))
    }

    /// Returns the names of the pods that replace an earlier pod of the same name, in alphabetical order.
    pub fn restarted(&self) -> Vec<String> {
        let mut made = BTreeMap::<String, u32>::new();
        for change in self.cluster.changes(0) {
            if change.plural() == "pods" && change.action() == Action::Added {
                *made.entry(change.name().to_owned()).or_default() += 1;
            }
        }
        let pods = self.pods().into_iter();
        pods.filter(|pod| made.get(pod).is_some_and(|times| *times > 1))
            .collect()
    }

    /// Returns the events as `Reason: message`, in the order of their creation.
    pub fn events(&self) -> Vec<String> {
        let changes = self.cluster.changes(0);
        let events = changes
            .iter()
            .filter(|change| change.plural() == "events" && change.action() == Action::Added);
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let events = events.map(|change| change.object().value().clone());
        let texts = events.map(|e| {
            format!(
                "{}: {}{}",
                text(&e, "reason"),
                text(&e, "message"),
                text(&e, "note")
            )
        });
        texts.collect()
    }

    /// Replaces the status of a pod by that of its script.
    fn write(&self, name: &str, status: impl FnOnce(PodScript<'_>) -> PodStatus) {
        let pod = self.pod(name);
        let now = self.runtime.block_on(async { self.clock.now() });
        let mut status = json!(status(PodScript::new(&pod, now)));
        // A merge would keep the containers of a status without any.
        if status["containerStatuses"].is_null() {
            status["containerStatuses"] = Value::Null;
        }
        let api = Api::<Pod>::default_namespaced(self.client.clone());
        let patch = Patch::Merge(json!({"status": status}));
        let written = self
            .runtime
            .block_on(api.patch_status(name, &PatchParams::default(), &patch));
        written.unwrap_or_else(|error| panic!("pod {name}: {error}"));
    }

    /// Lets the operator work until it is at rest.
    fn settle(&mut self) -> &mut Self {
        let cluster = &self.cluster;
        let rests = self.runtime.block_on(async {
            let (mut seen, mut quiet) = (cluster.resource_version(), 0);
            for _ in 0..MAX_SECONDS_TO_REST {
                sleep(Duration::from_secs(1)).await;
                let now = cluster.resource_version();
                quiet = if now == seen { quiet + 1 } else { 0 };
                seen = now;
                if quiet == IDLE_SECONDS {
                    return true;
                }
            }
            false
        });
        assert!(
            rests,
            "the operator still writes after {MAX_SECONDS_TO_REST} seconds"
        );
        self
    }
}

/// Returns `plural.group` of a kind.
fn resource<J: TrainingJob>() -> String {
    format!("{}.{}", J::plural(&()), J::group(&()))
}
