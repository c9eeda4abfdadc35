//! What all kinds of job share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::{Api, Client, Resource};
use tokio::sync::Semaphore;

use crate::job::Settings;
use kube_follow::CallTimeout;
use kube_follow::{Event, Parse, Watch};

use super::children::Children;
use super::clock::Clock;
use super::events::Recorder;
use super::metrics::Metrics;
use super::queue::Queue;

/// What all kinds share.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) timeout: CallTimeout,
    pub(super) watch_timeout: Duration,
    pub(super) namespace: Option<String>,
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) queue: Queue,
    pub(super) children: Mutex<Children>,
    pub(super) limit: Semaphore,
    pub(super) recorder: Recorder,
    pub(super) metrics: Metrics,
}

impl Shared {
    /// Lists and watches the objects of a kind for ever, and counts what becomes of the watch.
    pub(super) async fn watch<K>(
        &self,
        labels: Option<String>,
        parse: Parse<K>,
        mut handle: impl FnMut(Event<K>),
    ) where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let resource = K::plural(&());
        let watch = Watch {
            labels,
            call_timeout: self.timeout,
            silence_timeout: self.watch_timeout,
            parse,
            ..Watch::new(self.api::<K>())
        };
        watch
            .run(|event| {
                match event {
                    Event::Failed => self.metrics.watch_failed(&resource),
                    Event::ListDone => self.metrics.listed(&resource),
                    _ => {}
                }
                if !matches!(event, Event::Failed | Event::ListStarted) {
                    self.metrics.heard(&resource, self.clock.now());
                }
                handle(event);
            })
            .await;
    }

    pub(super) fn children(&self) -> MutexGuard<'_, Children> {
        // No code that holds the lock can leave the cache half-changed.
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }
}
