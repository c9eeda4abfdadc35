//! Objects for the tests.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

pub(crate) async fn config_map(
    client: Client,
    namespace: &str,
    name: &str,
    owner: Option<&ConfigMap>,
) -> ConfigMap {
    let owners: Vec<Value> = owner
        .map(|o| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": o.name_any(), "uid": o.uid()}))
        .into_iter()
        .collect();
    let object = json!({"metadata": {"name": name, "ownerReferences": owners}});
    let object: ConfigMap = serde_json::from_value(object).unwrap();
    let api: Api<ConfigMap> = Api::namespaced(client, namespace);
    api.create(&PostParams::default(), &object).await.unwrap()
}

pub(crate) fn pod(name: &str) -> Pod {
    let object = json!({"metadata": {"name": name}, "spec": {"containers": [
        {"name": "main", "image": "i"}, {"name": "side", "image": "i"},
    ]}});
    serde_json::from_value(object).unwrap()
}
