//! What the cache of [`children`](super::children) keeps of pods, services and other objects.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::plan::ChildKind;
use crate::plan::observed::{ObjectRecord, Observed, Phase, PodRecord, ServiceRecord};

use super::super::clock::Clock;
use super::partial_child;

/// A type of child.
pub(crate) trait Child: Clone + Debug + Send + Sync + 'static {
    /// What is decoded of it beside its metadata.
    type Body: Clone + Debug + Send + Sync;
    /// Whether an object that was just made says nothing beside its metadata.
    const STARTS_WITHOUT_BODY: bool;
    /// Decodes an object.
    fn decode<'de, D: Deserializer<'de>>(object: D) -> Result<(ObjectMeta, Self::Body), D::Error>;
    /// The record of a child with this metadata and body.
    fn record(meta: &ObjectMeta, body: &Self::Body) -> Self;
    fn name(&self) -> &str;
    fn uid(&self) -> &str;
    fn deleting(&mut self) -> &mut bool;
    /// The map of `observed` for this kind, which is one of this type.
    fn map(observed: &mut Observed, kind: ChildKind) -> &mut BTreeMap<String, Arc<Self>>;
    /// Whether it holds no room on a node any more.
    fn has_ended(&self) -> bool {
        false
    }
    /// Copies from the record of the child's state before, if there is one, what the object itself does not say.
    fn inherit_from(&mut self, _before: Option<&Self>, _clock: &dyn Clock) {}
    /// The child is gone; `ours` says whether this controller deleted it.
    fn on_removed(&self, _observed: &mut Observed, _ours: bool) {}
}

impl Child for PodRecord {
    type Body = Option<PodStatus>;
    const STARTS_WITHOUT_BODY: bool = true;

    fn decode<'de, D: Deserializer<'de>>(object: D) -> Result<(ObjectMeta, Self::Body), D::Error> {
        partial_child::decode(object, "Pod")
    }

    fn record(meta: &ObjectMeta, status: &Self::Body) -> Self {
        Self::of(meta, status.as_ref())
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

    fn has_ended(&self) -> bool {
        self.is_terminal()
    }

    fn inherit_from(&mut self, before: Option<&Self>, clock: &dyn Clock) {
        let Some(before) = before.filter(|_| self.is_terminal()) else {
            return;
        };
        self.seen_to_end = if before.is_terminal() {
            before.seen_to_end
        } else {
            Some(clock.now())
        };
    }

    fn on_removed(&self, observed: &mut Observed, ours: bool) {
        // Its success must not be lost with it.
        if self.phase == Phase::Succeeded && !ours {
            observed.completed.insert(self.name.clone(), self.attempt);
        }
    }
}

impl Child for ServiceRecord {
    type Body = Option<IgnoredAny>;
    const STARTS_WITHOUT_BODY: bool = true;

    fn decode<'de, D: Deserializer<'de>>(object: D) -> Result<(ObjectMeta, Self::Body), D::Error> {
        partial_child::decode(object, "Service")
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

    fn map(observed: &mut Observed, kind: ChildKind) -> &mut BTreeMap<String, Arc<Self>> {
        observed.objects.entry(kind.object_kind()).or_default()
    }
}
