//! The bodies of requests: JSON, and the media types of patches.

use serde_json::Value;

use crate::request::failure::{ApiResult, Failure};

pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
/// Another name of the format [`APPLY`].
pub(crate) const APPLY_JSON: &str = "application/apply-patch+json";

/// Parses a body as JSON.
pub(crate) fn parse(body: &[u8]) -> ApiResult<Value> {
    serde_json::from_slice(body).map_err(|error| Failure::bad_request(error_text(&error)))
}

/// Parses a patch as JSON.
pub(crate) fn parse_patch(body: &[u8]) -> ApiResult<Value> {
    serde_json::from_slice(body).map_err(|_| Failure::bad_request("invalid JSON patch"))
}

/// Returns the message for a JSON error.
pub(crate) fn error_text(error: &serde_json::Error) -> String {
    if error.is_eof() {
        "unexpected end of JSON input".to_owned()
    } else {
        format!("json: {error}")
    }
}
