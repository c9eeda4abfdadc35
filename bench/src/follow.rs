//! The driver's watches. They read only the needed fields of an object, so that they are not the bottleneck. They
//! share no code with the measured operator.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use kube::Resource;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::core::{NotUsed, Object};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;

/// A job with only its conditions.
pub(crate) type Told = Object<NotUsed, Conditions>;

/// The conditions of a status.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Conditions {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

impl Conditions {
    pub(crate) fn is(&self, type_: &str) -> bool {
        self.conditions
            .iter()
            .any(|c| c.type_ == type_ && c.status == "True")
    }
}

/// The presence of an object.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Is {
    There,
    Gone,
}

/// Reports each version of each object and its deletion, forever. A watch that ends is resumed immediately.
pub(crate) async fn follow<K>(api: Api<K>, mut tell: impl FnMut(K, Is))
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    loop {
        let Ok(list) = api.list(&ListParams::default()).await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let version = list.metadata.resource_version.unwrap_or_default();
        list.items.into_iter().for_each(|object| tell(object, Is::There));
        watch(&api, version, &mut tell).await;
    }
}

/// Watches from a version until the server has compacted it.
async fn watch<K>(api: &Api<K>, mut version: String, tell: &mut impl FnMut(K, Is))
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    loop {
        let Ok(stream) = api.watch(&WatchParams::default(), &version).await else {
            return sleep(Duration::from_millis(50)).await;
        };
        let mut stream = stream.boxed();
        while let Some(Ok(event)) = stream.next().await {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    version = object.meta().resource_version.clone().unwrap_or(version);
                    tell(object, Is::There);
                }
                WatchEvent::Deleted(object) => {
                    version = object.meta().resource_version.clone().unwrap_or(version);
                    tell(object, Is::Gone);
                }
                WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                WatchEvent::Error(_) => return,
            }
        }
    }
}
