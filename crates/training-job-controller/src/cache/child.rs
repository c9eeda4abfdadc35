//! The fields of pods, services and other objects that the cache of [`children`](super::children) keeps.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use training_job::job::JobObject;
use training_job::plan::ChildKind;
use training_job::plan::observed::{
    ContainerRestart, ObjectRecord, Observed, ObservedSpec, PodRecord, ServiceRecord,
};

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
    restart_policy: Lenient<String>,
    #[serde(default, deserialize_with = "containers")]
    init_containers: Vec<ContainerRestart>,
    #[serde(default, deserialize_with = "containers")]
    containers: Vec<ContainerRestart>,
}

/// Decodes the containers of a list that have a restart policy of their own.
fn containers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ContainerRestart>, D::Error> {
    Ok(Containers::deserialize(deserializer)?.0)
}

/// The containers of a list, or the container that a value is. Any other value has none. Other fields of a container,
/// such as its environment, are skipped while they are read, because they may be large.
struct Containers(Vec<ContainerRestart>);

impl<'de> Deserialize<'de> for Containers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContainersVisitor)
    }
}

struct ContainersVisitor;

impl<'de> Visitor<'de> for ContainersVisitor {
    type Value = Containers;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a list of containers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Containers, A::Error> {
        let mut all = Vec::new();
        while let Some(Containers(found)) = list.next_element()? {
            all.extend(found);
        }
        Ok(Containers(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Containers, A::Error> {
        let found = ContainerRestart::deserialize(MapAccessDeserializer::new(fields))?;
        let has_policy = found.restart_policy.is_some();
        Ok(Containers(has_policy.then_some(found).into_iter().collect()))
    }

    fn visit_unit<E>(self) -> Result<Containers, E> {
        Ok(Containers(Vec::new()))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Containers, E> {
        self.visit_unit()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Containers, E> {
        self.visit_unit()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Containers, E> {
        self.visit_unit()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Containers, E> {
        self.visit_unit()
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Containers, E> {
        self.visit_unit()
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

    fn record(_: ChildKind, meta: &ObjectMeta, body: &Self::Body) -> Self {
        let spec = ObservedSpec {
            node: body.spec.node_name.get().map(String::as_str),
            restart_policy: body.spec.restart_policy.get().map(String::as_str),
            containers: body
                .spec
                .init_containers
                .iter()
                .chain(&body.spec.containers)
                .collect(),
        };
        Self::of(meta, &spec, body.status.as_ref())
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
        self.follow(before, clock.now());
    }

    fn on_removed(&self, observed: &mut Observed, ours: bool) {
        // The result must be kept after the pod is gone.
        if !ours && self.has_own_end() {
            observed.removed.insert(self.name.clone(), Arc::new(self.clone()));
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

    fn record(_: ChildKind, meta: &ObjectMeta, _: &Self::Body) -> Self {
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

    fn record(kind: ChildKind, meta: &ObjectMeta, content: &Value) -> Self {
        Self::of(kind.object_kind(), meta, content)
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
