//! A namespace with nodes for some pods, and an operator that supports the scheduler.

use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::jiff::SignedDuration;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use training_job_testbed::cluster::{wait, wait_for_all};

use super::process::{Gangs, Scheduler};
use crate::history::History;
use crate::jobs::{Kind, MX};
use crate::node;
use crate::stage::{Operators, Stage, of};

impl<'a> Stage<'a> {
    /// Creates a stage with this number of nodes, each with this number of CPUs.
    pub(crate) async fn with_gangs(
        gangs: &'a Gangs,
        scheduler: Scheduler,
        actors: (Kind, Operators),
        nodes: (u32, u32),
    ) -> Self {
        Self::on_nodes(gangs, actors, nodes, &[&scheduler.flag()]).await
    }

    /// Creates such a stage with an operator that creates no groups.
    pub(crate) async fn without_gangs(
        gangs: &'a Gangs,
        actors: (Kind, Operators),
        nodes: (u32, u32),
    ) -> Self {
        Self::on_nodes(gangs, actors, nodes, &[]).await
    }

    /// Creates a stage for jobs of these kinds. Its operator is killed at each turn.
    pub(crate) async fn in_storm(
        gangs: &'a Gangs,
        scheduler: Scheduler,
        kinds: &[Kind],
        nodes: (u32, u32),
    ) -> Self {
        let kinds = kinds.iter().map(|kind| format!("--enable-scheme={}", kind.name));
        let flags: Vec<_> = kinds.chain([scheduler.flag()]).collect();
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        Self::on_nodes(gangs, (MX, Operators::AreKilled), nodes, &flags).await
    }

    async fn on_nodes(
        gangs: &'a Gangs,
        actors: (Kind, Operators),
        (nodes, cpus): (u32, u32),
        flags: &[&str],
    ) -> Self {
        let plane = &gangs.plane;
        let namespace = plane.namespace("gang").await;
        let history = History::of_bound(Api::namespaced(plane.client(), &namespace)).await;
        let stage = Self::new(plane, namespace, actors, history, flags).await;
        for _ in 0..nodes {
            stage.add_node(cpus).await;
        }
        stage
    }

    pub(crate) async fn add_node(&self, cpus: u32) {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("node-{count}");
        node::create(self.plane, &name, cpus, json!({}), Value::Null).await;
    }

    /// Returns a job of this name that may restart.
    pub(crate) fn gang(&self, name: &str) -> Value {
        let mut job = self.kind.job(name);
        job["spec"]["runPolicy"]["backoffLimit"] = 5.into();
        job
    }

    pub(crate) fn groups(&self, scheduler: Scheduler) -> Api<DynamicObject> {
        let [group, version] = scheduler.pod_group();
        self.api(group, version, "PodGroup")
    }

    /// Waits until a job's PodGroup meets a condition. The condition gets `None` if the group is missing.
    pub(crate) async fn group(
        &self,
        scheduler: Scheduler,
        job: &str,
        look: impl FnMut(Option<&DynamicObject>) -> bool,
    ) -> Option<DynamicObject> {
        wait(self.groups(scheduler), job, look).await
    }

    /// Waits until a job has exactly this number of pods, which are all bound.
    pub(crate) async fn is_bound(&self, job: &str, pods: usize) -> Vec<Pod> {
        let stays = |pod: &Pod| is_bound(pod) && pod.metadata.deletion_timestamp.is_none();
        let look = |all: &[Pod]| all.len() == pods && all.iter().all(stays);
        wait_for_all(self.pods(), &of(job), look).await
    }

    pub(crate) async fn pod_runs(&self, name: &str) {
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        wait(self.pods(), name, |pod: Option<&Pod>| {
            pod.and_then(phase).as_deref() == Some("Running")
        })
        .await;
    }

    /// Waits until a scheduler has found no node for a pod, and sets the time of that to this number of seconds ago.
    pub(crate) async fn has_had_no_node_for(&self, name: &str, seconds: i64) {
        let refused = |pod: &Pod| {
            let conditions = pod.status.as_ref()?.conditions.as_ref()?;
            let refused = conditions
                .iter()
                .find(|c| c.type_ == "PodScheduled" && c.status == "False");
            refused?.last_transition_time.clone()
        };
        let pod = wait(self.pods(), name, |pod: Option<&Pod>| {
            pod.and_then(refused).is_some()
        })
        .await;
        let since = pod.as_ref().and_then(refused).unwrap().0 - SignedDuration::from_secs(seconds);
        let condition = json!({"type": "PodScheduled", "lastTransitionTime": since.to_string()});
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        self.pods()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Waits until a pod is gone or another pod has its name.
    pub(crate) async fn is_gone(&self, before: &[Pod], name: &str) {
        let old = before.iter().find(|pod| pod.name_any() == name).unwrap().uid();
        wait(self.pods(), name, |pod: Option<&Pod>| {
            pod.is_none_or(|pod| pod.uid() != old)
        })
        .await;
    }

    /// Waits for an event about a job, and returns its message.
    pub(crate) async fn event(&self, job: &str, reason: &str) -> String {
        let api: Api<Event> = Api::namespaced(self.plane.client(), &self.namespace);
        let is_it = |event: &&Event| {
            event.involved_object.name.as_deref() == Some(job) && event.reason.as_deref() == Some(reason)
        };
        let all = wait_for_all(api, "", |all| all.iter().any(|event| is_it(&event))).await;
        let found = all.iter().find(is_it).unwrap();
        found.message.clone().unwrap_or_default()
    }
}

/// Returns true if a pod has a node.
pub(crate) fn is_bound(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
}
