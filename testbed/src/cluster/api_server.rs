//! Stops and starts the API server, and writes past it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use kube::{Client, Config};
use serde_json::{Value, json};

use super::control_plane::ControlPlane;
use super::own::Own;

impl ControlPlane {
    fn own(&self) -> &Own {
        self.own
            .as_ref()
            .expect("only a control plane of our own can be tampered with")
    }

    /// Kills the API server. After a graceful stop it would serve for some more seconds.
    pub fn stop_api_server(&self) {
        *self.own().api_server.lock() = None;
    }

    /// Starts the API server with its previous port and data, and waits until it is ready.
    pub async fn start_api_server(&self) {
        let own = self.own();
        assert!(own.api_server.lock().is_none(), "the API server runs");
        own.launch_api_server().unwrap_or_else(|e| panic!("{e}"));
        own.ready().await.unwrap_or_else(|e| panic!("{e}"));
    }

    /// Removes the history before this version from etcd, as happens by itself every few minutes.
    pub async fn compact(&self, version: u64) {
        self.call_store(
            "compaction",
            &json!({"revision": version.to_string(), "physical": true}),
        )
        .await;
    }

    /// Writes an object to etcd unchanged, without the API server, as if an older API server had stored it. `key` is
    /// the part of the key after `/registry/`.
    pub async fn store(&self, key: &str, object: &Value) {
        let base64 = |text: String| STANDARD.encode(text);
        let put = json!({"key": base64(format!("/registry/{key}")), "value": base64(object.to_string())});
        self.call_store("put", &put).await;
    }

    async fn call_store(&self, call: &str, body: &Value) {
        let url = format!("http://127.0.0.1:{}", self.own().layout.etcd);
        let config = Config::new(url.parse().expect("a URL"));
        let store = Client::try_from(config).expect("a client");
        let request = Request::post(format!("/v3/kv/{call}")).header("content-type", "application/json");
        let request = request.body(body.to_string().into_bytes()).expect("a request");
        let answer = store.request_text(request).await;
        answer.unwrap_or_else(|e| panic!("the store refuses a {call}: {e}"));
    }
}
