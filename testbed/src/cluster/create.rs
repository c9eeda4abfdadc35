//! Creates objects from manifests.

use http::Request;
use kube::Resource;
use kube::api::{DynamicObject, TypeMeta};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
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
        for mut document in documents {
            match document.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => {
                    for item in items {
                        self.create_object(namespace, item).await;
                    }
                }
                _ => self.create_object(namespace, document).await,
            }
        }
    }

    async fn create_object(&self, namespace: &str, object: Value) {
        let refused = |error: &dyn std::fmt::Display| -> ! { panic!("{error}\n{object}") };
        let types: TypeMeta = serde_json::from_value(object.clone()).unwrap_or_else(|e| refused(&e));
        let kind = GroupVersionKind::try_from(&types).unwrap_or_else(|e| refused(&e));
        let client = self.client();
        let (resource, capabilities) = pinned_kind(&client, &kind).await.unwrap_or_else(|e| refused(&e));
        let own = object["metadata"]["namespace"].as_str();
        let namespace = (capabilities.scope == Scope::Namespaced).then(|| own.unwrap_or(namespace));
        let path = DynamicObject::url_path(&resource, namespace);
        let request =
            Request::post(format!("{path}?fieldValidation=Strict")).body(object.to_string().into_bytes());
        let request = request.unwrap_or_else(|e| refused(&e));
        let created: kube::Result<Value> = client.request(request).await;
        created.unwrap_or_else(|e| refused(&e));
    }
}
