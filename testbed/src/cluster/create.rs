//! Creates objects from manifests.

use std::error::Error;

use http::Request;
use kube::api::{DynamicObject, TypeMeta};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Client, Resource};
use serde::Deserialize;
use serde_json::Value;

use super::control_plane::ControlPlane;

impl ControlPlane {
    /// Creates the objects of a manifest, in this namespace unless they name another. Unknown fields are errors, as for
    /// kubectl. A run of kubectl takes 0.3 s of CPU, and one test alone would need three hundred.
    ///
    /// # Panics
    /// The manifest is invalid, or the API server refuses an object.
    pub async fn create(&self, namespace: &str, manifest: &(impl ToString + ?Sized)) {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&manifest.to_string())
            .unwrap_or_else(|e| panic!("the manifest: {e}"));
        let client = self.client();
        for mut document in documents {
            let objects = match document.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => items,
                _ => vec![document],
            };
            for object in objects {
                let created = create(&client, namespace, &object).await;
                created.unwrap_or_else(|error| panic!("{error}\n{object}"));
            }
        }
    }
}

async fn create(client: &Client, namespace: &str, object: &Value) -> Result<(), Box<dyn Error>> {
    let types = TypeMeta::deserialize(object)?;
    let kind = GroupVersionKind::try_from(types)?;
    let (resource, capabilities) = pinned_kind(client, &kind).await?;
    let own = object["metadata"]["namespace"].as_str();
    let namespace = (capabilities.scope == Scope::Namespaced).then(|| own.unwrap_or(namespace));
    let path = DynamicObject::url_path(&resource, namespace);
    let request = Request::post(format!("{path}?fieldValidation=Strict"));
    client
        .request::<Value>(request.body(object.to_string().into_bytes())?)
        .await?;
    Ok(())
}
