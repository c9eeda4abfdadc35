//! Creation of objects.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Family, Target, definition, pods, services, stored};
use crate::object::{document::Document, members::Members, metadata};
use crate::request::{
    Request,
    failure::{ApiResult, Failure},
};
use crate::server::{Server, ServerResponse};
use crate::store::object::{Applied, Object};
use crate::verbs::normalize::{
    check_type_meta, normalize, parse_body, strict_failure, undecodable, validate,
};

/// The greatest number of characters of a generated name before its suffix.
const MAX_GENERATED_PREFIX_CHARS: usize = 58;
/// The number of suffixes tried for a generated name.
const MAX_GENERATED_NAME_TRIES: usize = 8;

impl Server {
    pub(crate) fn create(
        &mut self,
        request: &Request,
        target: &Target,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        check_media_type(request)?;
        let body = parse_body(request, target)?;
        let namespace = request.path.namespace.as_deref().unwrap_or_default();
        let object = self.create_from(request, target, namespace, body, None, now)?;
        Ok(self.object_response(201, request, target, &object))
    }

    /// Creates an object from a body in the request's version.
    pub(crate) fn create_from(
        &mut self,
        request: &Request,
        target: &Target,
        namespace: &str,
        mut body: Document,
        applied: Option<Arc<Applied>>,
        now: Timestamp,
    ) -> ApiResult<Arc<Object>> {
        check_type_meta(request, target, &mut body)?;
        metadata::normalize_metadata(&mut body).map_err(|why| undecodable(request, target, &body, &why))?;
        let given = body.meta_text("namespace");
        if !given.is_empty() && given != namespace {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Failure::bad_request(why));
        }
        if target.kind.namespaced {
            self.admit_namespace(target, &body, namespace, now)?;
        }
        target.to_stored_version(&mut body);
        let unknown = normalize(request, target, &mut body)?;
        if request.query.strict && !unknown.is_empty() {
            return Err(strict_failure(request, target, &body, &unknown));
        }
        self.insert(target, namespace, body, applied, request.query.dry_run, now)
    }

    fn admit_namespace(
        &mut self,
        target: &Target,
        body: &Document,
        namespace: &str,
        now: Timestamp,
    ) -> ApiResult<()> {
        if self.settings.auto_namespaces {
            self.ensure_namespace(namespace, now);
        }
        let spaces = self
            .store
            .registry
            .find("", "v1", "namespaces")
            .ok_or_else(Failure::no_such_resource)?;
        match self.store.get(spaces.id, "", namespace) {
            None => Err(Failure::namespace_not_found(namespace)),
            Some(space) if space.is_deleting() => Err(Failure::namespace_terminating(
                target,
                body.meta_text("name"),
                namespace,
            )),
            Some(_) => Ok(()),
        }
    }

    /// Stores a normalized object of the stored version under a new UID.
    pub(crate) fn insert(
        &mut self,
        target: &Target,
        namespace: &str,
        mut body: Document,
        applied: Option<Arc<Applied>>,
        dry_run: bool,
        now: Timestamp,
    ) -> ApiResult<Arc<Object>> {
        let stamp = self.timestamp(now);
        let uid = self.next_uid();
        let Some(meta) = body.metadata_mut() else {
            return Err(Failure::bad_request("no metadata"));
        };
        if meta.contains_key("resourceVersion") {
            return Err(Failure::internal(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        meta.remove("deletionTimestamp");
        meta.remove("deletionGracePeriodSeconds");
        meta.insert("uid", Value::from(uid));
        meta.insert("creationTimestamp", Value::from(stamp.as_str()));
        if target.kind.generation {
            meta.insert("generation", Value::from(1));
        }
        if target.kind.namespaced {
            meta.insert("namespace", Value::from(namespace));
        } else {
            meta.remove("namespace");
        }
        let generated = self.generate_name(target, namespace, meta);
        let name = meta.text("name").to_owned();
        self.prepare_new(target, &mut body);
        let mut causes = validate(target, &body);
        self.check_rules(target, &body, None, &mut causes);
        if !causes.is_empty() {
            return Err(Failure::invalid(target, &name, &causes));
        }
        if target.kind.namespaced {
            self.admit_quota(target, namespace, &body)?;
        }
        if !generated && let Some(known) = self.store.get(target.id, namespace, &name) {
            return Err(if known.is_deleting() {
                Failure::still_exists(target, &name)
            } else {
                Failure::already_exists(target, &name)
            });
        }
        if dry_run {
            return Ok(Arc::new(Object::unstored(body)));
        }
        let object = self.store.add(target, body, applied);
        if target.kind.family == Family::Definition {
            self.establish(target, &object, &stamp);
        }
        Ok(object)
    }

    /// Generates a name from `generateName`. Returns true if a name was generated and is free.
    fn generate_name(&mut self, target: &Target, namespace: &str, meta: &mut Members) -> bool {
        if meta.contains_key("name") {
            return false;
        }
        let Some(base) = meta.get("generateName").and_then(Value::as_str) else {
            return false;
        };
        let base: String = base.chars().take(MAX_GENERATED_PREFIX_CHARS).collect();
        for _ in 0..MAX_GENERATED_NAME_TRIES {
            let name = format!("{base}{}", self.next_suffix());
            let free = self.store.get(target.id, namespace, &name).is_none();
            meta.insert("name", Value::from(name));
            if free {
                return true;
            }
        }
        false
    }

    /// Sets the fields that the server itself writes into a new object.
    fn prepare_new(&mut self, target: &Target, body: &mut Document) {
        if target.kind.family == Family::Service {
            services::set_defaults(body, || self.next_address());
        }
        if target.kind.family == Family::Pod {
            pods::admit(body);
        }
        let status = match target.kind.family {
            Family::Pod => Some(pods::first_status(body)),
            Family::Service => Some(services::first_status()),
            Family::Namespace => Some(json!({"phase": "Active"})),
            Family::Quota => Some(json!({})),
            Family::Definition => Some(definition::first_status(body)),
            Family::Stored => stored::first_status(&target.kind.kind),
            _ => None,
        };
        if let Some(status) = status {
            body.insert("status", status);
        } else if target.kind.is_custom() && target.has_status() {
            body.remove("status");
        }
        if target.kind.family == Family::Namespace {
            let name = body.meta_text("name").to_owned();
            body.insert("spec", json!({"finalizers": ["kubernetes"]}));
            let labels = body.meta("labels").and_then(Value::as_object);
            let mut labels = labels.cloned().unwrap_or_default();
            labels.insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
            body.set_meta("labels", Value::Object(labels));
        }
    }

    /// Serves the kind of a stored definition, and marks the definition as established in its status.
    pub(crate) fn establish(&mut self, target: &Target, object: &Arc<Object>, now: &str) {
        let Some(kind) = definition::parse_kind(object.value()) else {
            return;
        };
        self.install(kind);
        let mut document = object.document().clone();
        document.insert("status", definition::established_status(object.value(), now));
        self.store
            .replace(target, object, document, object.applied.clone());
    }
}

/// Rejects a body whose media type is not one of the API's.
fn check_media_type(request: &Request) -> ApiResult<()> {
    let known = [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
    ];
    let given = request.content_type.as_str();
    if given.is_empty() || known.contains(&given) {
        return Ok(());
    }
    Err(Failure::unsupported_media_type(&known.join(", ")))
}
