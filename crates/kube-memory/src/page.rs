//! Tokens that continue a list: text of JSON in base 64, as the server's own.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use serde_json::{Value, json};

use super::{
    object::Object,
    status::{Failure, Outcome},
};

const VERSION: &str = "meta.k8s.io/v1";

/// Where the next page of a list starts.
pub(super) struct Resume {
    /// The version of the list; below 0 if the rest may come from the present state.
    pub(super) version: i64,
    /// Namespace and name before the page.
    pub(super) after: (String, String),
}

impl Resume {
    pub(super) fn after(version: u64, object: &Object) -> Self {
        Self {
            version: i64::try_from(version).unwrap_or(i64::MAX),
            after: (object.namespace().to_owned(), object.name().to_owned()),
        }
    }

    /// The token of a list of one namespace or all.
    pub(super) fn write(&self, namespace: Option<&str>) -> String {
        self.start(namespace, "/")
    }

    /// The server's cache begins the place in a namespace with a slash, the store does not.
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

    /// The token that goes on with what is there now.
    pub(super) fn of_now(&self, namespace: Option<&str>) -> String {
        let now = Self {
            version: -1,
            after: self.after.clone(),
        };
        now.start(namespace, "")
    }

    pub(super) fn read(token: &str, namespace: Option<&str>) -> Outcome<Self> {
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
