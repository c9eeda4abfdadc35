#![expect(clippy::unwrap_used, reason = "an example may fail by panic")]
//! A controller with a kind of its own, and its tests against the in-memory API.
//!
//! Each `Greeting` gets a config map with its text. `cargo run -p kube-memory --example controller` shows what the
//! controller does in a cluster, `cargo test -p kube-memory --example controller` runs the tests at the end.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::{Controller, controller::Action, watcher},
};
use kube_memory::Cluster;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
struct GreetingSpec {
    #[schemars(length(min = 1))]
    text: String,
}

/// Writes a greeting's config map as it should be.
async fn reconcile(greeting: Arc<Greeting>, client: Arc<Client>) -> kube::Result<Action> {
    let namespace = greeting.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(Client::clone(&client), &namespace);
    let name = greeting.name_any();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [greeting.controller_owner_ref(&())]},
        "data": {"text": greeting.spec.text},
    });
    let params = PatchParams::apply("greetings").force();
    maps.patch(&name, &params, &Patch::Apply(&map)).await?;
    Ok(Action::await_change())
}

fn retry(_: Arc<Greeting>, _: &kube::Error, _: Arc<Client>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

/// Runs the controller. It does not return.
async fn run(client: Client) {
    let config = watcher::Config::default;
    Controller::new(Api::<Greeting>::all(client.clone()), config())
        .owns(Api::<ConfigMap>::all(client.clone()), config())
        .run(reconcile, retry, Arc::new(client))
        .for_each(|_| async {})
        .await;
}

/// A cluster that serves greetings, and a client of it.
async fn cluster() -> (Cluster, Client) {
    let cluster = Cluster::new();
    let client = cluster.client("default");
    let params = PostParams::default();
    Api::all(client.clone())
        .create(&params, &Greeting::crd())
        .await
        .unwrap();
    (cluster, client)
}

async fn create(client: &Client, name: &str, text: &str) -> kube::Result<Greeting> {
    let greeting = Greeting::new(
        name,
        GreetingSpec {
            text: text.to_owned(),
        },
    );
    Api::default_namespaced(client.clone())
        .create(&PostParams::default(), &greeting)
        .await
}

/// The time is paused, so this returns when no task has anything left to do within the second.
async fn until_idle() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    tokio::time::pause();
    let (cluster, client) = cluster().await;
    cluster.on_change(|_, change| println!("{change}"));
    tokio::spawn(run(client.clone()));
    create(&client, "hello", "Hello, world").await.unwrap();
    until_idle().await;
    let greetings: Api<Greeting> = Api::default_namespaced(client);
    greetings.delete("hello", &Default::default()).await.unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that a config map holds, if there is such a map.
    fn text(cluster: &Cluster, name: &str) -> Option<String> {
        let map = cluster.get("configmaps", "default", name)?;
        Some(map["data"]["text"].as_str()?.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_greeting_has_a_config_map_until_it_is_deleted() {
        let (cluster, client) = cluster().await;
        tokio::spawn(run(client.clone()));
        create(&client, "hello", "Hello").await.unwrap();
        until_idle().await;
        assert_eq!(text(&cluster, "hello").as_deref(), Some("Hello"));

        let greetings: Api<Greeting> = Api::default_namespaced(client);
        let patch = Patch::Merge(json!({"spec": {"text": "Good morning"}}));
        greetings
            .patch("hello", &PatchParams::default(), &patch)
            .await
            .unwrap();
        until_idle().await;
        assert_eq!(text(&cluster, "hello").as_deref(), Some("Good morning"));

        greetings.delete("hello", &Default::default()).await.unwrap();
        until_idle().await;
        assert_eq!(text(&cluster, "hello"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_greeting_that_was_created_while_all_watches_were_cut_is_not_missed() {
        let (cluster, client) = cluster().await;
        tokio::spawn(run(client.clone()));
        until_idle().await;
        cluster.cut_watches(None);
        create(&client, "late", "Hello").await.unwrap();
        cluster.compact();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(text(&cluster, "late").as_deref(), Some("Hello"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_controller_that_has_nothing_to_do_writes_nothing() {
        let (cluster, client) = cluster().await;
        tokio::spawn(run(client.clone()));
        create(&client, "hello", "Hello").await.unwrap();
        until_idle().await;
        let before = cluster.resource_version();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(cluster.changes(before).len(), 0);
    }

    #[tokio::test]
    async fn an_empty_text_is_rejected_by_the_schema() {
        let (_, client) = cluster().await;
        let refused = create(&client, "silent", "").await.unwrap_err();
        assert!(matches!(refused, kube::Error::Api(status) if status.code == 422));
    }
}
