//! Reads and writes the sub-resource `scale`.

use http::Method;
use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::{Target, scale::ScalePaths};
use crate::object::document::Document;
use crate::request::{
    Request, body,
    failure::{ApiResult, Failure},
};
use crate::server::{Server, ServerResponse};
use crate::verbs::patch;

impl Server {
    /// Handles a request for the sub-resource of an object.
    pub(crate) fn on_scale(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        paths: &ScalePaths,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        let old = self.find(request, target, name)?.clone();
        let missing = || {
            let path = paths.spec_path();
            Failure::internal(format!("the spec replicas field {path:?} does not exist"))
        };
        let current = paths.read(old.value()).ok_or_else(missing)?;
        let wanted = match (&request.method, request.content_type.as_str()) {
            (&Method::GET, _) => return Ok(ServerResponse::value(200, &current)),
            (&Method::PUT, _) => body::parse(&request.body)?,
            (&Method::PATCH, body::JSON_PATCH) => {
                let mut patched = current;
                patch::apply_json_patch(&mut patched, &request.body)?;
                patched
            }
            (&Method::PATCH, body::MERGE_PATCH | body::STRATEGIC_PATCH | body::APPLY) => {
                let mut patched = current;
                json_patch::merge(&mut patched, &body::parse(&request.body)?);
                patched
            }
            (&Method::PATCH, _) => return Err(Failure::unsupported_patch()),
            (&Method::POST, _) if target.kind.is_custom() => {
                return Err(Failure::verb_not_supported(target, "create"));
            }
            (&Method::DELETE, _) if target.kind.is_custom() => {
                return Err(Failure::verb_not_supported(target, "delete"));
            }
            _ => return Err(Failure::method_not_allowed()),
        };
        let replicas = match &wanted["spec"]["replicas"] {
            Value::Null => 0,
            number => number
                .as_i64()
                .ok_or_else(|| Failure::bad_request("spec.replicas: must be a number"))?,
        };
        let mut changed: Document = old.document().clone();
        paths.write(&mut changed, replicas);
        if let Some(version) = wanted["metadata"]["resourceVersion"].as_str() {
            changed.set_meta("resourceVersion", Value::from(version));
        }
        let object = self.update(request, target, &old, changed, old.applied.clone(), false, now)?;
        let scale = paths.read(object.value()).ok_or_else(missing)?;
        Ok(ServerResponse::value(200, &scale))
    }
}
