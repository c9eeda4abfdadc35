//! Plain HTTP requests, whose responses include codes and warnings.

use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// A response of the API server.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

impl Answer {
    pub(crate) fn ok(&self) -> bool {
        self.code < 300
    }
}

/// A user of the API.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
}

impl Requests {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Answer, String> {
        self.send("GET", path, "application/json", None).await
    }

    pub(crate) async fn create(&self, path: &str, body: &Value) -> Result<Answer, String> {
        self.send("POST", path, "application/json", Some(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Result<Answer, String> {
        self.send("PATCH", path, "application/merge-patch+json", Some(body))
            .await
    }

    pub(crate) async fn delete(&self, path: &str, options: &Value) -> Result<Answer, String> {
        self.send("DELETE", path, "application/json", Some(options)).await
    }

    /// Returns the objects of a collection.
    pub(crate) async fn list(&self, path: &str) -> Result<Vec<Value>, String> {
        let answer = self.get(path).await?;
        match answer.body.get("items") {
            Some(Value::Array(items)) => Ok(items.clone()),
            _ => Err(format!("list {path}: {}", answer.body)),
        }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let fail = |error: String| format!("{method} {path}: {error}");
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Accept", "application/json")
            .header("Content-Type", kind)
            .body(Body::from(text.into_bytes()))
            .map_err(|e| fail(e.to_string()))?;
        let response = self.client.send(request).await.map_err(|e| fail(e.to_string()))?;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("Warning").into_iter();
        let warnings = warnings.filter_map(|w| warning(w.to_str().ok()?)).collect();
        let bytes = response.into_body().collect_bytes().await;
        let bytes = bytes.map_err(|e| fail(e.to_string()))?;
        let plain = || json!({"message": String::from_utf8_lossy(&bytes)});
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| plain());
        Ok(Answer { code, body, warnings })
    }
}

/// Returns the text of a header such as `299 - "text"`.
fn warning(header: &str) -> Option<String> {
    let (_, quoted) = header.split_once('"')?;
    Some(quoted.strip_suffix('"')?.replace("\\\"", "\""))
}

#[test]
fn a_warning_is_unquoted() {
    assert_eq!(warning(r#"299 - "a \"b\"""#).as_deref(), Some(r#"a "b""#));
}
