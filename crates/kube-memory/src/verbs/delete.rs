//! Deletion: preconditions, grace periods, finalizers and the three propagation policies.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::kinds::{Family, Target, definition, pods};
use crate::object::{cause::Cause, document::Document, json};
use crate::request::{
    Request, body,
    failure::{self, ApiResult, Failure},
};
use crate::server::{Server, ServerResponse};
use crate::store::object::Object;
use crate::verbs::update::bump_generation;

/// An owner's finalizer until its dependents no longer refer to it.
pub(crate) const ORPHAN: &str = "orphan";
/// An owner's finalizer until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The options of a delete request.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    grace_seconds: Option<i64>,
    propagation: Option<String>,
    uid: Option<String>,
    version: Option<String>,
    dry_run: bool,
}

impl DeleteOptions {
    /// Returns the options of a deletion without preconditions.
    pub(crate) fn with_policy(policy: &str) -> Self {
        Self {
            propagation: Some(policy.to_owned()),
            ..Self::default()
        }
    }

    /// Parses the options. A body replaces the options of the query.
    fn from_request(request: &Request) -> ApiResult<Self> {
        let query = &request.query;
        if !request.body.is_empty() {
            return Self::from_json(&body::parse(&request.body)?, query.dry_run);
        }
        let mut options = Self::from_json(&json!({}), query.dry_run)?;
        options.grace_seconds = query.grace_seconds;
        if let Some(policy) = query.propagation.as_deref() {
            options.propagation = Some(known_policy(policy)?.to_owned());
        }
        Ok(options)
    }

    fn from_json(body: &Value, dry_run: bool) -> ApiResult<Self> {
        let misfit = body
            .get("gracePeriodSeconds")
            .is_some_and(|grace| !grace.is_i64() && !grace.is_null());
        if misfit {
            return Err(Failure::bad_request("json: gracePeriodSeconds is no number"));
        }
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let precondition = |key: &str| text(body.get("preconditions").and_then(|wanted| wanted.get(key)));
        let mut propagation = text(body.get("propagationPolicy"));
        if let Some(orphan) = body.get("orphanDependents").and_then(Value::as_bool) {
            if let Some(policy) = propagation {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                let cause = Cause::invalid_text("propagationPolicy", &policy, why);
                return Err(Failure::invalid_options("DeleteOptions", &[cause]));
            }
            propagation = Some(if orphan { "Orphan" } else { "Background" }.to_owned());
        }
        if let Some(policy) = propagation.as_deref() {
            known_policy(policy)?;
        }
        let asked_dry = json::array(body.get("dryRun")).any(|mode| mode == "All");
        let empty = body.as_object().is_none_or(Map::is_empty);
        Ok(Self {
            grace_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            propagation,
            uid: precondition("uid"),
            version: precondition("resourceVersion"),
            dry_run: asked_dry || (empty && dry_run),
        })
    }
}

fn known_policy(policy: &str) -> ApiResult<&str> {
    if matches!(policy, "Background" | "Foreground" | "Orphan") {
        return Ok(policy);
    }
    let allowed = ["Foreground", "Background", "Orphan", "nil"].map(|known| format!("{known:?}"));
    let cause = Cause::unsupported("propagationPolicy", &Value::from(policy), &allowed);
    Err(Failure::invalid_options("DeleteOptions", &[cause]))
}

/// The result of a deletion.
pub(crate) struct Deletion {
    /// The current object, or its last state if it is gone.
    pub(crate) object: Arc<Object>,
    pub(crate) gone: bool,
}

impl Server {
    pub(crate) fn delete(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        let options = DeleteOptions::from_request(request)?;
        let old = self.find(request, target, name)?.clone();
        let done = self.delete_object(target, &old, &options, now)?;
        if done.gone && !target.kind.returns_deleted {
            return Ok(ServerResponse::value(
                200,
                &failure::deleted(target, name, old.uid()),
            ));
        }
        Ok(self.object_response(200, request, target, &done.object))
    }

    pub(crate) fn delete_collection(
        &mut self,
        request: &Request,
        target: &Target,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        if target.kind.namespaced && request.path.namespace.is_none() {
            return Err(Failure::method_not_allowed());
        }
        let options = DeleteOptions::from_request(request)?;
        let filter =
            crate::store::selector::Filter::parse(&request.query.labels, &request.query.fields, target)?;
        let namespace = request.path.namespace.as_deref();
        let chosen: Vec<Arc<Object>> = self
            .store
            .iter(target.id, namespace, None)
            .filter(|object| filter.matches(object))
            .cloned()
            .collect();
        for object in &chosen {
            self.delete_object(target, object, &options, now)?;
        }
        // The response contains the objects before their deletion.
        let body = self.list_body(request, target, chosen.iter(), self.store.version(), None, None);
        Ok(ServerResponse::Done { code: 200, body })
    }

    /// `pods/eviction`: deletes the pod. There are no disruption budgets.
    pub(crate) fn evict(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        let eviction = body::parse(&request.body)?;
        let options = DeleteOptions::from_json(
            eviction.get("deleteOptions").unwrap_or(&Value::Null),
            request.query.dry_run,
        )?;
        let mut old = self.find(request, target, name)?.clone();
        check_preconditions(target, &old, &options)?;
        if !options.dry_run {
            let mut document = old.document().clone();
            pods::add_condition(
                &mut document,
                json!({
                    "type": "DisruptionTarget",
                    "status": "True",
                    "lastProbeTime": null,
                    "lastTransitionTime": self.timestamp(now),
                    "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting",
                }),
            );
            old = self.store.replace(target, &old, document, old.applied.clone());
        }
        let unconditional = DeleteOptions {
            version: None,
            ..options
        };
        self.delete_object(target, &old, &unconditional, now)?;
        Ok(ServerResponse::value(201, &failure::created()))
    }

    /// Deletes an object, or marks it as being deleted.
    pub(crate) fn delete_object(
        &mut self,
        target: &Target,
        old: &Arc<Object>,
        options: &DeleteOptions,
        now: Timestamp,
    ) -> ApiResult<Deletion> {
        check_preconditions(target, old, options)?;
        let mut document = old.document().clone();
        let grace = match self.grace(target, old, options, now) {
            // The object is being deleted already, with at most this grace period.
            Grace::Pending => {
                return Ok(Deletion {
                    object: old.clone(),
                    gone: false,
                });
            }
            Grace::Unsupported => None,
            Grace::Seconds { seconds, deadline } => {
                let first = !old.is_deleting();
                document.set_meta("deletionTimestamp", Value::from(deadline));
                document.set_meta("deletionGracePeriodSeconds", Value::from(seconds));
                if first {
                    bump_generation(&mut document);
                }
                Some(seconds)
            }
        };
        let finalizers = self.finalizers(target, old, options);
        let pending = !finalizers.is_empty() || target.kind.family == Family::Namespace;
        document.set_meta("finalizers", Value::from(finalizers));
        if grace.is_none() && pending {
            self.mark_deleting(target, &mut document, now);
        }
        let waits = pending || grace.is_some_and(|seconds| seconds > 0);
        if options.dry_run {
            let object = Arc::new(Object::new(document, old.resource_version(), None));
            return Ok(Deletion { object, gone: !waits });
        }
        // Without a grace period or finalizers the object is removed at once, without a state in between.
        let marked = if waits || grace.is_some() {
            self.store.replace(target, old, document, old.applied.clone())
        } else {
            old.clone()
        };
        if waits {
            return Ok(Deletion {
                object: marked,
                gone: false,
            });
        }
        Ok(Deletion {
            object: self.store.remove(target, &marked),
            gone: true,
        })
    }

    fn grace(&mut self, target: &Target, old: &Object, options: &DeleteOptions, now: Timestamp) -> Grace {
        if target.kind.family != Family::Pod {
            return Grace::Unsupported;
        }
        let period = old
            .meta("deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        if old.is_deleting() {
            if period == 0 {
                return Grace::Unsupported;
            }
            let Some(requested) = options.grace_seconds.filter(|requested| *requested < period) else {
                return Grace::Pending;
            };
            let begun = old
                .meta_text("deletionTimestamp")
                .parse::<Timestamp>()
                .ok()
                .and_then(|deadline| deadline.checked_sub(SignedDuration::from_secs(period)).ok())
                .unwrap_or(now);
            return self.grace_from(begun, requested);
        }
        let spec = |key: &str| old.get("spec").and_then(|spec| spec.get(key));
        let node = spec("nodeName").and_then(Value::as_str).unwrap_or_default();
        let phase = old
            .get("status")
            .and_then(|status| status.get("phase"))
            .and_then(Value::as_str);
        if node.is_empty() || matches!(phase, Some("Succeeded" | "Failed")) {
            return self.grace_from(now, 0);
        }
        let requested = options
            .grace_seconds
            .or_else(|| spec("terminationGracePeriodSeconds").and_then(Value::as_i64))
            .unwrap_or(30);
        self.grace_from(now, if requested < 0 { 1 } else { requested })
    }

    fn grace_from(&mut self, begun: Timestamp, seconds: i64) -> Grace {
        let deadline = begun
            .checked_add(SignedDuration::from_secs(seconds))
            .unwrap_or(begun);
        Grace::Seconds {
            seconds,
            deadline: self.timestamp(deadline),
        }
    }

    /// Returns the finalizers after a delete request. The propagation policy sets the collector's two finalizers.
    fn finalizers(&self, target: &Target, old: &Object, options: &DeleteOptions) -> Vec<String> {
        let (orphan, foreground) = match options.propagation.as_deref() {
            Some("Orphan") => (true, false),
            Some("Foreground") => (false, true),
            Some(_) => (false, false),
            None => (old.has_finalizer(ORPHAN), old.has_finalizer(FOREGROUND)),
        };
        let mut finalizers: Vec<String> = json::array(old.meta("finalizers"))
            .filter_map(Value::as_str)
            .filter(|name| !matches!(*name, ORPHAN | FOREGROUND))
            .map(str::to_owned)
            .collect();
        if orphan {
            finalizers.push(ORPHAN.to_owned());
        }
        if foreground {
            finalizers.push(FOREGROUND.to_owned());
        }
        let cleanup = target.kind.family == Family::Definition && !old.is_deleting();
        if cleanup && !finalizers.iter().any(|name| name == definition::CLEANUP) {
            finalizers.push(definition::CLEANUP.to_owned());
        }
        finalizers
    }

    fn mark_deleting(&mut self, target: &Target, document: &mut Document, now: Timestamp) {
        let stamp = self.timestamp(now);
        // The server deletes these two kinds in its own way, without a grace period.
        let has_grace = !matches!(target.kind.family, Family::Namespace | Family::Definition);
        if has_grace && document.meta("deletionGracePeriodSeconds").is_none() {
            bump_generation(document);
        }
        if document.meta("deletionTimestamp").is_none() {
            document.set_meta("deletionTimestamp", Value::from(stamp.as_str()));
            match target.kind.family {
                Family::Namespace => document.insert("status", json!({"phase": "Terminating"})),
                Family::Definition => definition::mark_terminating(document, &stamp),
                _ => {}
            }
        }
        if has_grace {
            document.set_meta("deletionGracePeriodSeconds", Value::from(0));
        }
    }
}

enum Grace {
    Unsupported,
    Pending,
    Seconds { seconds: i64, deadline: String },
}

fn check_preconditions(target: &Target, old: &Object, options: &DeleteOptions) -> ApiResult<()> {
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != old.uid()) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            old.uid()
        );
        return Err(Failure::precondition(target, old.name(), &why));
    }
    let found = old.meta_text("resourceVersion");
    if let Some(version) = options.version.as_deref().filter(|version| *version != found) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
             ({found}). The object might have been modified"
        );
        return Err(Failure::precondition(target, old.name(), &why));
    }
    Ok(())
}
