//! The fields of pods, services and other objects that the cache of [`children`](super::children) keeps.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use training_job::job::JobObject;
use training_job::plan::ChildKind;
use training_job::plan::observed::{ObjectRecord, Observed, Phase, PodRecord, SIDECAR_POLICY, ServiceRecord};

use super::super::clock::Clock;
use super::partial_child::{self, Child, Lenient};

/// The decoded part of a pod other than its metadata.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodBody {
    spec: PartialPodSpec,
    status: Option<PodStatus>,
}

/// The decoded part of a pod's spec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartialPodSpec {
    #[serde(default)]
    node_name: Lenient<String>,
    #[serde(default)]
    init_containers: Lenient<Vec<Lenient<InitContainer>>>,
}

/// The decoded part of an init container.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitContainer {
    name: String,
    restart_policy: Option<String>,
}

impl PartialPodSpec {
    /// Returns the names of the init containers that are sidecars.
    fn sidecars(&self) -> Vec<&str> {
        let containers = self.init_containers.get().into_iter().flatten();
        let containers = containers.filter_map(Lenient::get);
        let sidecars = containers.filter(|c| c.restart_policy.as_deref() == Some(SIDECAR_POLICY));
        sidecars.map(|container| container.name.as_str()).collect()
    }
}

impl Child for PodRecord {
    type Body = PodBody;
    const STARTS_WITHOUT_BODY: bool = true;

    fn decode<'de, D: Deserializer<'de>>(object: D) -> Result<(ObjectMeta, Self::Body), D::Error> {
        let (meta, spec, status) = partial_child::decode(object, "Pod")?;
        let spec = spec.unwrap_or_default();
        Ok((meta, PodBody { spec, status }))
    }

    fn record(meta: &ObjectMeta, body: &Self::Body) -> Self {
        let node = body.spec.node_name.get().map(String::as_str);
        Self::of(meta, node, &body.spec.sidecars(), body.status.as_ref())
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn deleting(&mut self) -> &mut bool {
        &mut self.deleting
    }

    fn map(observed: &mut Observed, _: ChildKind) -> &mut BTreeMap<String, Arc<Self>> {
        &mut observed.pods
    }

    fn has(&self, wanted: &JobObject) -> bool {
        self.is_labeled_as(wanted)
    }

    fn has_ended(&self) -> bool {
        self.is_terminal()
    }

    fn inherit_from(&mut self, before: Option<&Self>, clock: &dyn Clock) {
        let Some(before) = before else {
            return;
        };
        let has_ended = |pod: &Self, name: &str| pod.container(name).is_some_and(|c| c.ended.is_some());
        let mut containers = self.containers.iter();
        let ends = self.is_terminal() && !before.is_terminal()
            || containers.any(|c| has_ended(self, &c.name) && !has_ended(before, &c.name));
        self.seen_to_end = match ends {
            true => Some(clock.now()),
            false => before.seen_to_end,
        };
        let ended_first = before.ended_first || before.is_terminal() && !before.is_going();
        self.ended_first = ended_first && self.is_terminal();
    }

    fn on_removed(&self, observed: &mut Observed, ours: bool) {
        // The success must be kept after the pod is gone.
        if self.phase == Phase::Succeeded && !ours && !self.was_taken_away(self.ended_at()) {
            observed.completed.insert(self.name.clone(), self.attempt);
        }
    }
}

impl Child for ServiceRecord {
    type Body = Option<IgnoredAny>;
    const STARTS_WITHOUT_BODY: bool = true;

    fn decode<'de, D: Deserializer<'de>>(object: D) -> Result<(ObjectMeta, Self::Body), D::Error> {
        let (meta, _, status) = partial_child::decode::<_, IgnoredAny, _>(object, "Service")?;
        Ok((meta, status))
    }

    fn record(meta: &ObjectMeta, _: &Self::Body) -> Self {
        Self::of(meta)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn deleting(&mut self) -> &mut bool {
        &mut self.deleting
    }

    fn map(observed: &mut Observed, _: ChildKind) -> &mut BTreeMap<String, Arc<Self>> {
        &mut observed.services
    }
}

impl Child for ObjectRecord {
    type Body = Value;
    const STARTS_WITHOUT_BODY: bool = false;

    fn decode<'de, D: Deserializer<'de>>(object: D) -> Result<(ObjectMeta, Value), D::Error> {
        let object = DynamicObject::deserialize(object)?;
        Ok((object.metadata, object.data))
    }

    fn record(meta: &ObjectMeta, content: &Value) -> Self {
        Self::of(meta, content)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn deleting(&mut self) -> &mut bool {
        &mut self.deleting
    }

    fn has(&self, wanted: &JobObject) -> bool {
        self.satisfies(wanted)
    }

    fn map(observed: &mut Observed, kind: ChildKind) -> &mut BTreeMap<String, Arc<Self>> {
        observed.objects.entry(kind.object_kind()).or_default()
    }
}
