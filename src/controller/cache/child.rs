//! What pods and services have in common for the cache of [`children`](super::children).

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Pod, PodStatus, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::plan::observed::{Observed, Phase, PodRecord, ServiceRecord};

use super::super::clock::Clock;

/// A type of child.
pub(crate) trait Child: Clone + Debug + Send + Sync + 'static {
    /// The object that is created.
    type Object: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + Sync;
    /// Its status, as far as it is decoded.
    type Status: Clone + Debug + DeserializeOwned + Send + Sync;
    /// The record of a child with this metadata and status.
    fn record(meta: &ObjectMeta, status: Option<&Self::Status>) -> Self;
    fn name(&self) -> &str;
    fn uid(&self) -> &str;
    fn deleting(&mut self) -> &mut bool;
    /// The map of `observed` for this type.
    fn map(observed: &mut Observed) -> &mut BTreeMap<String, Arc<Self>>;
    /// Copies from the record of the child's state before, if there is one, what the object itself does not say.
    fn inherit_from(&mut self, before: Option<&Self>, clock: &dyn Clock);
    /// The child is gone; `ours` says whether this controller deleted it.
    fn on_removed(&self, observed: &mut Observed, ours: bool);
}

impl Child for PodRecord {
    type Object = Pod;
    type Status = PodStatus;

    fn record(meta: &ObjectMeta, status: Option<&PodStatus>) -> Self {
        Self::of(meta, status)
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

    fn map(observed: &mut Observed) -> &mut BTreeMap<String, Arc<Self>> {
        &mut observed.pods
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
    type Object = Service;
    type Status = IgnoredAny;

    fn record(meta: &ObjectMeta, _: Option<&IgnoredAny>) -> Self {
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

    fn map(observed: &mut Observed) -> &mut BTreeMap<String, Arc<Self>> {
        &mut observed.services
    }

    fn inherit_from(&mut self, _: Option<&Self>, _: &dyn Clock) {}

    fn on_removed(&self, _: &mut Observed, _: bool) {}
}
