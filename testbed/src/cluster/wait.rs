//! Waits for states of objects in the API server.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::pin::pin;

use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use kube::api::Api;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use super::WAIT_TIMEOUT;
use super::control_plane::ControlPlane;

impl ControlPlane {
    /// Watches an object until it meets a condition, which gets `None` while the object does not exist. Retries
    /// during outages of the API server.
    pub async fn wait<K>(
        &self,
        namespace: &str,
        name: &str,
        condition: impl FnMut(Option<&K>) -> bool,
    ) -> Option<K>
    where
        K: Resource<Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Send
            + DeserializeOwned
            + Serialize
            + 'static,
        K::DynamicType: Default,
    {
        wait(Api::namespaced(self.client(), namespace), name, condition).await
    }
}

/// Waits until an object meets a condition, which gets `None` while the object does not exist.
pub async fn wait<K>(api: Api<K>, name: &str, mut condition: impl FnMut(Option<&K>) -> bool) -> Option<K>
where
    K: Resource + Clone + Debug + Send + DeserializeOwned + Serialize + 'static,
{
    let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let found = watch_until(api, only, name, |all: &BTreeMap<String, K>| {
        condition(all.values().next()).then(|| all.values().next().cloned())
    });
    found.await
}

/// Waits until all objects with these labels (`a=b,c=d`, or empty for all objects) meet a condition together.
pub async fn wait_for_all<K>(api: Api<K>, labels: &str, mut condition: impl FnMut(&[K]) -> bool) -> Vec<K>
where
    K: Resource + Clone + Debug + Send + DeserializeOwned + Serialize + 'static,
{
    let only = watcher::Config::default().labels(labels);
    let found = watch_until(api, only, labels, |all: &BTreeMap<String, K>| {
        let all: Vec<K> = all.values().cloned().collect();
        condition(&all).then_some(all)
    });
    found.await
}

/// Watches objects until `look` returns a value.
async fn watch_until<K, T>(
    api: Api<K>,
    only: watcher::Config,
    what: &str,
    mut look: impl FnMut(&BTreeMap<String, K>) -> Option<T>,
) -> T
where
    K: Resource + Clone + Debug + Send + DeserializeOwned + Serialize + 'static,
{
    let deadline = Instant::now() + WAIT_TIMEOUT;
    let path = api.resource_url().to_owned();
    let mut events = pin!(watch(api, only).default_backoff());
    let (mut all, mut listing) = (BTreeMap::new(), BTreeMap::new());
    let mut error = None;
    let key = |object: &K| format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
    while let Ok(Some(event)) = timeout_at(deadline, events.next()).await {
        match event {
            // The set of objects is unknown before the list is complete.
            Ok(Event::Init) => {
                listing.clear();
                continue;
            }
            Ok(Event::InitApply(object)) => {
                listing.insert(key(&object), object);
                continue;
            }
            Ok(Event::InitDone) => {
                all = std::mem::take(&mut listing);
            }
            Ok(Event::Apply(object)) => {
                all.insert(key(&object), object);
            }
            Ok(Event::Delete(object)) => {
                all.remove(&key(&object));
            }
            Err(e) => {
                error = Some(e.to_string());
                continue;
            }
        }
        error = None;
        if let Some(found) = look(&all) {
            return found;
        }
    }
    panic!(
        "{path} {what}: not as awaited in {WAIT_TIMEOUT:?}{}",
        last_state(&all, error)
    )
}

/// Returns the last state for the message of a failed test.
fn last_state<K: Serialize>(all: &BTreeMap<String, K>, error: Option<impl Display>) -> String {
    let mut text = error.map_or_else(String::new, |e| format!("\nthe watch fails: {e}"));
    for object in all.values() {
        let yaml = serde_saphyr::to_string(object).unwrap_or_else(|e| e.to_string());
        text += &format!("\n---\n{yaml}");
    }
    if all.is_empty() {
        text + "\nthere is none"
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn a_timeout_reports_the_last_state() {
        let object: ConfigMap =
            serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}})).unwrap();
        let all = BTreeMap::from([("n/a".to_owned(), object)]);
        let text = last_state(&all, None::<&str>);
        assert_eq!(
            text,
            "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
        );
        let text = last_state::<ConfigMap>(&BTreeMap::new(), Some("refused"));
        assert_eq!(text, "\nthe watch fails: refused\nthere is none");
    }
}
