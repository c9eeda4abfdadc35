//! Keeps a cache of ConfigMaps while they are created, changed and deleted:
//!
//! ```sh
//! cargo run --package kube-follow --example follow
//! ```
//!
//! It uses an API server in memory, so that it runs anywhere. Use `kube::Client::try_default()` instead to follow the
//! ConfigMaps of your cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use kube_follow::{Event, Watch};
use serde_json::json;
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> kube::Result<()> {
    let client = kube_memory::Cluster::new().client("default");
    create(&client, "listed").await?;

    let (send, mut events) = mpsc::unbounded_channel();
    let watch = Watch {
        labels: Some("app=demo".to_owned()),
        ..Watch::new(Api::<ConfigMap>::all(client.clone()))
    };
    tokio::spawn(async move {
        // A closed channel is ignored, because the program ends then.
        watch.run(|event| drop(send.send(event))).await;
    });

    let mut cache = Cache::default();
    while !cache.deleted_one {
        let Some(event) = events.recv().await else { break };
        let is_listed = matches!(event, Event::ListDone);
        cache.handle(event);
        if is_listed {
            change_something(&client).await?;
        }
    }
    Ok(())
}

/// A cache of all ConfigMaps, by name.
#[derive(Default)]
struct Cache {
    maps: BTreeMap<String, ConfigMap>,
    /// The objects of the current list so far.
    listing: BTreeMap<String, ConfigMap>,
    deleted_one: bool,
}

impl Cache {
    fn handle(&mut self, event: Event<ConfigMap>) {
        match event {
            Event::ListStarted => self.listing.clear(),
            Event::Listed(map) => drop(self.listing.insert(map.name_any(), map)),
            Event::ListDone => {
                // An object that was deleted between two watches is not in the list.
                self.maps = std::mem::take(&mut self.listing);
                println!("the cluster has: {:?}", self.maps.keys());
            }
            Event::Applied(map) => {
                println!("{} is now {:?}", map.name_any(), map.data);
                self.maps.insert(map.name_any(), map);
            }
            Event::Deleted(map) => {
                println!("{} was deleted", map.name_any());
                self.maps.remove(&map.name_any());
                self.deleted_one = true;
            }
            Event::Absent => println!("the API server does not serve ConfigMaps; retrying"),
            Event::Forbidden(message) => println!("{message}; retrying"),
            Event::Failed => println!("the watch failed; retrying"),
            Event::ListPage(_) | Event::Bookmark(_) => {}
        }
    }
}

async fn create(client: &Client, name: &str) -> kube::Result<ConfigMap> {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.metadata.labels = Some(BTreeMap::from([("app".to_owned(), "demo".to_owned())]));
    let maps = Api::default_namespaced(client.clone());
    maps.create(&PostParams::default(), &map).await
}

async fn change_something(client: &Client) -> kube::Result<()> {
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    create(client, "fresh").await?;
    let change = Patch::Merge(json!({"data": {"greeting": "hello"}}));
    maps.patch("fresh", &PatchParams::default(), &change).await?;
    maps.delete("listed", &DeleteParams::default()).await?;
    Ok(())
}
