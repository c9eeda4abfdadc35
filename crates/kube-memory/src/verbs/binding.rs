//! Binding: a scheduler assigns a pod to a node.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Target, pods};
use crate::request::{
    Request, body,
    failure::{self, ApiResult, Failure},
};
use crate::server::{Server, ServerResponse};
use crate::verbs::{normalize::meta_text, update::uid_conflict};

impl Server {
    /// `pods/binding`: assigns a pod to a node, once.
    pub(crate) fn bind(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        let binding = body::parse(&request.body)?;
        let node = binding
            .get("target")
            .and_then(|target| target.get("name"))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if node.is_empty() {
            return Err(Failure::internal("target.name: Required value"));
        }
        let old = self.find(request, target, name)?.clone();
        let uid = meta_text(&binding, "uid");
        if !uid.is_empty() && uid != old.uid() {
            return Err(uid_conflict(target, &old, uid));
        }
        let assigned = old
            .get("spec")
            .and_then(|spec| spec.get("nodeName"))
            .and_then(Value::as_str);
        if old.is_deleting() {
            let why = format!("pod {name} is being deleted, cannot be assigned to a host");
            return Err(Failure::binding_conflict(name, &why));
        }
        if let Some(assigned) = assigned.filter(|assigned| !assigned.is_empty()) {
            let why = format!("pod {name} is already assigned to node {assigned:?}");
            return Err(Failure::binding_conflict(name, &why));
        }
        let stamp = self.timestamp(now);
        let mut document = old.document().clone();
        if let Some(spec) = document.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("nodeName".to_owned(), Value::from(node));
        }
        let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": stamp});
        pods::add_condition(&mut document, scheduled);
        if !request.query.dry_run {
            self.store.replace(target, &old, document, old.applied.clone());
        }
        Ok(ServerResponse::value(201, &failure::created()))
    }
}
