//! What a namespace holds, by watching it.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The objects of a kind by name.
pub(crate) type Objects = BTreeMap<String, Value>;

/// What a namespace holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub(crate) jobs: Objects,
    pub(crate) pods: Objects,
    pub(crate) services: Objects,
    pub(crate) events: Objects,
}

/// Which objects of those held.
type Part = fn(&mut Held) -> &mut Objects;

/// Follows a namespace until it is dropped.
pub(crate) struct Mirror {
    pub(crate) held: watch::Receiver<Held>,
    _tasks: JoinSet<()>,
}

impl Mirror {
    pub(crate) fn of(client: &Client, namespace: &str, jobs: ApiResource) -> Self {
        let (sender, held) = watch::channel(Held::default());
        let mut tasks = JoinSet::new();
        let core = |kind: &str, plural: &str| ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let kinds: [(ApiResource, Part); 4] = [
            (jobs, |held| &mut held.jobs),
            (core("Pod", "pods"), |held| &mut held.pods),
            (core("Service", "services"), |held| &mut held.services),
            (core("Event", "events"), |held| &mut held.events),
        ];
        for (resource, part) in kinds {
            let api = Api::namespaced_with(client.clone(), namespace, &resource);
            tasks.spawn(follow(api, sender.clone(), part));
        }
        Self { held, _tasks: tasks }
    }
}

async fn follow(api: Api<DynamicObject>, sender: watch::Sender<Held>, part: Part) {
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
    let mut listing = Objects::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listing.clear(),
            Ok(Event::InitApply(object)) => {
                listing.insert(object.name_any(), value(object));
            }
            Ok(Event::InitDone) => {
                let all = std::mem::take(&mut listing);
                sender.send_if_modified(|held| {
                    let changed = *part(held) != all;
                    *part(held) = all;
                    changed
                });
            }
            Ok(Event::Apply(object)) => sender.send_modify(|held| {
                part(held).insert(object.name_any(), value(object));
            }),
            Ok(Event::Delete(object)) => sender.send_modify(|held| {
                part(held).remove(&object.name_any());
            }),
            // It is watched anew.
            Err(_) => {}
        }
    }
}

fn value(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap()
}
