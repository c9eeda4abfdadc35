//! Continue tokens of lists: JSON in base 64, as the API server writes them.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use serde_json::{Value, json};

use crate::request::failure::{ApiResult, Failure};
use crate::store::object::Object;

const VERSION: &str = "meta.k8s.io/v1";

/// The start of the next page of a list.
pub(crate) struct ContinueToken {
    /// The version of the list; -1 if the rest is read from the current state.
    pub(crate) version: i64,
    /// The namespace and name of the last object before the page.
    pub(crate) after: (String, String),
}

impl ContinueToken {
    pub(crate) fn after(version: u64, object: &Object) -> Self {
        Self {
            version: i64::try_from(version).unwrap_or(i64::MAX),
            after: (object.namespace().to_owned(), object.name().to_owned()),
        }
    }

    /// Returns the token of a list of one namespace or all.
    pub(crate) fn encode(&self, namespace: Option<&str>) -> String {
        self.start(namespace, "/")
    }

    /// Encodes the token. Tokens of the server's cache have a slash before a name in a namespace; tokens of its store
    /// have none.
    fn start(&self, namespace: Option<&str>, slash: &str) -> String {
        let (space, name) = &self.after;
        let start = match namespace {
            None if !space.is_empty() => format!("{space}/{name}\0"),
            Some(_) => format!("{slash}{name}\0"),
            None => format!("{name}\0"),
        };
        let token = json!({"v": VERSION, "rv": self.version, "start": start});
        BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
    }

    /// Returns the token that continues from the current state instead of the list's version.
    pub(crate) fn for_current_state(&self, namespace: Option<&str>) -> String {
        let now = Self {
            version: -1,
            after: self.after.clone(),
        };
        now.start(namespace, "")
    }

    pub(crate) fn decode(token: &str, namespace: Option<&str>) -> ApiResult<Self> {
        let refuse = |why: &str| {
            Failure::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = BASE64_URL_SAFE_NO_PAD
            .decode(token.trim_end_matches('='))
            .map_err(|_| refuse("illegal base64 data"))?;
        let token: Value = serde_json::from_slice(&bytes).map_err(|error| refuse(&error.to_string()))?;
        let text = |key: &str| token.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("v") != VERSION {
            return Err(refuse(&format!(
                "server does not recognize this encoded version {}",
                text("v")
            )));
        }
        let version = token.get("rv").and_then(Value::as_i64).unwrap_or_default();
        let start = text("start");
        if version == 0 || start.is_empty() {
            return Err(refuse(
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ));
        }
        if start.split('/').any(|part| part == "..") {
            return Err(refuse(start));
        }
        let start = start.trim_matches(['\0', '/']);
        let (space, name) = match (namespace, start.split_once('/')) {
            (None, Some((space, name))) => (space, name),
            (namespace, _) => (namespace.unwrap_or_default(), start),
        };
        Ok(Self {
            version,
            after: (space.to_owned(), name.to_owned()),
        })
    }
}
