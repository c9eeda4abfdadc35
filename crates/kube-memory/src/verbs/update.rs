//! Changes of existing objects: update (PUT), patch and apply.

use std::sync::Arc;

use http::Method;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::kinds::{Family, Target, events, pods, services};
use crate::object::{cause::Cause, document::Document, json, metadata};
use crate::request::{
    Request, body,
    failure::{ApiResult, Failure},
};
use crate::server::{Server, ServerResponse};
use crate::store::object::{Applied, Object};
use crate::verbs::{
    apply,
    normalize::{
        check_type_meta, normalize, normalize_status, parse_body, strict_failure, undecodable, validate,
    },
    patch::{self, Position},
};

/// Metadata that only the server writes.
const SYSTEM_FIELDS: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "name",
    "namespace",
];

impl Server {
    pub(crate) fn replace(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        status_only: bool,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        let mut body = parse_body(request, target)?;
        check_type_meta(request, target, &mut body)?;
        metadata::normalize_metadata(&mut body).map_err(|why| undecodable(request, target, &body, &why))?;
        if body.meta_text("name").is_empty() {
            return Err(Failure::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        let namespace = request.path.namespace.as_deref().unwrap_or_default();
        check_name_and_namespace(&body, name, namespace)?;
        let old = match self.find(request, target, name) {
            Ok(old) => old.clone(),
            Err(_) if target.kind.create_on_update() && !status_only => {
                let object = self.create_from(request, target, namespace, body, None, now)?;
                return Ok(self.object_response(201, request, target, &object));
            }
            Err(failure) => return Err(failure),
        };
        if body.meta_text("resourceVersion").is_empty() && !target.kind.unconditional_update() {
            let why = "must be specified for an update";
            let cause = Cause::invalid("metadata.resourceVersion", &json!(0), why);
            // The server's message contains the resource instead of the kind.
            let plural = &target.kind.plural;
            return Err(Failure::invalid_kind(target.group(), plural, name, &[cause]));
        }
        target.to_stored_version(&mut body);
        let applied = old.applied.clone();
        let object = self.update(request, target, &old, body, applied, status_only, now)?;
        Ok(self.object_response(200, request, target, &object))
    }

    pub(crate) fn patch(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        status_only: bool,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        let kind = request.content_type.as_str();
        if matches!(kind, body::APPLY | body::APPLY_JSON) {
            return self.apply(request, target, name, status_only, now);
        }
        let strategic = kind == body::STRATEGIC_PATCH && !target.kind.is_custom();
        if !strategic && !matches!(kind, body::JSON_PATCH | body::MERGE_PATCH) {
            if !target.kind.is_custom() {
                return Err(Failure::unsupported_patch());
            }
            let accepted = [
                body::JSON_PATCH,
                body::MERGE_PATCH,
                body::STRATEGIC_PATCH,
                body::APPLY,
            ];
            let accepted: Vec<&str> = accepted
                .into_iter()
                .filter(|kind| *kind != body::STRATEGIC_PATCH || !target.kind.is_custom())
                .collect();
            return Err(Failure::unsupported_media_type(&accepted.join(", ")));
        }
        let old = self.find(request, target, name)?.clone();
        let mut body = target.in_request_version(old.document()).into_owned();
        match kind {
            body::JSON_PATCH => edit(&mut body, |whole| patch::apply_json_patch(whole, &request.body))?,
            body::MERGE_PATCH => body.merge(parse_object(&request.body)?),
            _ => {
                let patch = body::parse_patch(&request.body)?;
                edit(&mut body, |whole| {
                    patch::apply_strategic_patch(whole, patch, Position::BuiltIn(""))
                })?;
            }
        }
        check_type_meta(request, target, &mut body)?;
        metadata::normalize_metadata(&mut body).map_err(|why| undecodable(request, target, &body, &why))?;
        check_name_and_namespace(&body, name, old.namespace())?;
        target.to_stored_version(&mut body);
        let applied = old.applied.clone();
        let object = self.update(request, target, &old, body, applied, status_only, now)?;
        Ok(self.object_response(200, request, target, &object))
    }

    fn apply(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        status_only: bool,
        now: Timestamp,
    ) -> ApiResult<ServerResponse> {
        let query = &request.query;
        let mut config = Document::from(parse_object(&request.body)?);
        if config
            .meta("managedFields")
            .is_some_and(|fields| !fields.is_null())
        {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        let (api_version, kind) = (config.text("apiVersion"), config.text("kind"));
        if api_version != target.api_version() || kind != target.kind.kind {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            return Err(Failure::bad_request(format!(
                "invalid object type: {group}/{version}, Kind={kind}"
            )));
        }
        check_type_meta(request, target, &mut config)?;
        metadata::normalize_metadata(&mut config)
            .map_err(|why| undecodable(request, target, &config, &why))?;
        let namespace = request.path.namespace.as_deref().unwrap_or_default();
        check_name_and_namespace(&config, name, namespace)?;
        let manager = if status_only {
            format!("{}/status", query.manager)
        } else {
            query.manager.clone()
        };
        let position = if target.kind.is_custom() {
            Position::Custom(target.schema().map(AsRef::as_ref))
        } else {
            Position::BuiltIn("")
        };
        let sent = config.to_value();
        let old = self.find(request, target, name).cloned();
        let Ok(old) = old else {
            if status_only {
                return Err(Failure::not_found(target, name));
            }
            let given = config.meta_text("uid");
            if !given.is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {given}, and no existing object was found"
                );
                return Err(Failure::conflict(target, name, &why));
            }
            let mut live = json!({});
            let mut applied = Applied::new();
            apply::apply(&mut live, &sent, &manager, query.force, &mut applied, position)?;
            // The name has no owner, so it is added after the applied configuration is recorded.
            config.set_meta("name", Value::from(name));
            let object =
                self.create_from(request, target, namespace, config, Some(Arc::new(applied)), now)?;
            return Ok(self.object_response(201, request, target, &object));
        };
        let mut body = target.in_request_version(old.document()).into_owned();
        let mut applied = old.applied.as_deref().cloned().unwrap_or_default();
        edit(&mut body, |whole| {
            apply::apply(whole, &sent, &manager, query.force, &mut applied, position)
        })?;
        for key in ["uid", "resourceVersion"] {
            let given = config.meta_text(key);
            if !given.is_empty() {
                body.set_meta(key, Value::from(given));
            }
        }
        metadata::normalize_metadata(&mut body).map_err(|why| undecodable(request, target, &body, &why))?;
        target.to_stored_version(&mut body);
        let object = self.update(
            request,
            target,
            &old,
            body,
            Some(Arc::new(applied)),
            status_only,
            now,
        )?;
        Ok(self.object_response(200, request, target, &object))
    }

    /// Stores a new state of an object. Fields that the client must not change keep their values.
    #[expect(
        clippy::too_many_arguments,
        reason = "each caller has its own combination of these values"
    )]
    pub(crate) fn update(
        &mut self,
        request: &Request,
        target: &Target,
        old: &Arc<Object>,
        mut new: Document,
        applied: Option<Arc<Applied>>,
        status_only: bool,
        now: Timestamp,
    ) -> ApiResult<Arc<Object>> {
        let name = old.name();
        check_preconditions(request, target, old, &new)?;
        if status_only {
            new = with_status_of(target, old.document(), &new);
        }
        keep_system_fields(&mut new, old);
        if !status_only {
            keep_status(target, &mut new, old.document());
        }
        let unknown = if status_only {
            normalize_status(request, target, &mut new)?
        } else {
            normalize(request, target, &mut new)?
        };
        if request.query.strict && !unknown.is_empty() {
            return Err(strict_failure(request, target, &new, &unknown));
        }
        let causes = self.violations(target, &mut new, old, status_only);
        if !causes.is_empty() {
            return Err(Failure::invalid(target, name, &causes));
        }
        if desired_changed(target, &new, old.document()) {
            bump_generation(&mut new);
        }
        if request.query.dry_run {
            return Ok(Arc::new(Object::new(new, old.resource_version(), None)));
        }
        if may_be_removed(target, &new) {
            self.store.remove(target, old);
            return Ok(Arc::new(Object::new(new, old.resource_version(), None)));
        }
        let object = self.store.replace(target, old, new, applied);
        if target.kind.family == Family::Definition && !status_only && !object.is_deleting() {
            let stamp = self.timestamp(now);
            if object.resource_version() != old.resource_version() {
                self.establish(target, &object, &stamp);
            }
        }
        Ok(object)
    }

    fn violations(&self, target: &Target, new: &mut Document, old: &Object, status_only: bool) -> Vec<Cause> {
        if !status_only && target.kind.family == Family::Service {
            services::keep_address(new, old.document());
            services::set_defaults(new, String::new);
        }
        // A stored object was validated, so unchanged parts are valid.
        let checked = matches!(target.kind.family, Family::Pod | Family::Service)
            && new.has_same("metadata", old.document())
            && new.has_same("spec", old.document());
        let mut causes = if checked {
            Vec::new()
        } else {
            validate(target, new)
        };
        self.check_rules(target, new, Some(old), &mut causes);
        if !status_only {
            match target.kind.family {
                Family::Pod => causes.extend(pods::validate_update(new, old.document())),
                Family::Event if target.is_events_group() => {
                    causes.extend(events::validate_update(new, old.document()));
                }
                Family::Service => causes.extend(services::validate_update(new, old.document())),
                _ => {}
            }
        }
        if old.is_deleting() {
            let found: Vec<String> = json::array(new.meta("finalizers"))
                .filter_map(Value::as_str)
                .filter(|finalizer| !old.has_finalizer(finalizer))
                .map(|finalizer| format!("{finalizer:?}"))
                .collect();
            if !found.is_empty() {
                let why = format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    found.join(", ")
                );
                causes.push(Cause::forbidden("metadata.finalizers", &why));
            }
        }
        causes
    }
}

/// Parses a patch, which must be an object.
fn parse_object(body: &[u8]) -> ApiResult<Map<String, Value>> {
    match body::parse_patch(body)? {
        Value::Object(members) => Ok(members),
        _ => Err(Failure::bad_request("error decoding patch: json: no object")),
    }
}

/// Applies a patch, whose result must be an object.
fn edit(body: &mut Document, change: impl FnOnce(&mut Value) -> ApiResult<()>) -> ApiResult<()> {
    body.edit(|whole| {
        change(whole)?;
        if !whole.is_object() {
            return Err(Failure::bad_request("the object provided is not a JSON object"));
        }
        Ok(())
    })
}

/// Rejects a body with another name or namespace than the path.
fn check_name_and_namespace(body: &Document, name: &str, namespace: &str) -> ApiResult<()> {
    let given = body.meta_text("name");
    if !given.is_empty() && given != name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    let given = body.meta_text("namespace");
    if !given.is_empty() && given != namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(why));
    }
    Ok(())
}

fn check_preconditions(request: &Request, target: &Target, old: &Object, new: &Document) -> ApiResult<()> {
    let uid = new.meta_text("uid");
    let other = !uid.is_empty() && uid != old.uid();
    // The UID of a patched object is checked later, as an immutable field.
    let patched = request.method == Method::PATCH;
    if other && !patched {
        return Err(uid_conflict(target, old, uid));
    }
    let version = new.meta_text("resourceVersion");
    if !version.is_empty() && version.parse::<u64>().is_err() {
        return Err(Failure::no_number(500, "ParseUint", version));
    }
    if !version.is_empty() && version != old.meta_text("resourceVersion") {
        return Err(Failure::modified(target, old.name()));
    }
    if other {
        let cause = Cause::invalid_text("metadata.uid", uid, "field is immutable");
        return Err(Failure::invalid(target, old.name(), &[cause]));
    }
    Ok(())
}

/// Returns the failure of a write with another UID than the object's, in the words of the server's storage.
pub(crate) fn uid_conflict(target: &Target, old: &Object, given: &str) -> Box<Failure> {
    let (key, found) = (target.key(old.namespace(), old.name()), old.uid());
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {given}, UID in object meta: {found}"
    );
    Failure::conflict(target, old.name(), &why)
}

fn keep_system_fields(new: &mut Document, old: &Object) {
    if SYSTEM_FIELDS.iter().all(|key| new.meta(key) == old.meta(key)) {
        return;
    }
    if let (Some(meta), Some(known)) = (new.metadata_mut(), old.document().metadata()) {
        SYSTEM_FIELDS.iter().for_each(|key| meta.share_from(key, known));
    }
}

/// Keeps the parts that a write of the object itself must not change.
fn keep_status(target: &Target, new: &mut Document, old: &Document) {
    if target.has_status() {
        new.share_from("status", old);
    }
    if target.kind.family == Family::Namespace {
        new.share_from("spec", old);
    }
}

/// Returns the old object with the new status, and with the metadata that a write of the status may change.
fn with_status_of(target: &Target, old: &Document, new: &Document) -> Document {
    let mut kept = old.clone();
    kept.share_from("status", new);
    if kept.get("status").is_some_and(Value::is_null) {
        kept.remove("status");
    }
    let changeable: &[&str] = match target.kind.family {
        _ if target.kind.is_custom() => &[],
        Family::Pod => &["labels", "annotations", "finalizers"],
        _ => &["labels", "annotations", "finalizers", "ownerReferences"],
    };
    if changeable.iter().any(|key| kept.meta(key) != new.meta(key))
        && let (Some(meta), Some(given)) = (kept.metadata_mut(), new.metadata())
    {
        changeable.iter().for_each(|key| meta.share_from(key, given));
    }
    kept
}

/// Returns true if the change increases `metadata.generation`.
fn desired_changed(target: &Target, new: &Document, old: &Document) -> bool {
    if !target.kind.generation {
        return false;
    }
    if !target.kind.is_custom() {
        let annotated =
            target.kind.kind == "Deployment" && new.meta("annotations") != old.meta("annotations");
        return annotated || !new.has_same("spec", old);
    }
    let counts = |key: &&str| match *key {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !target.has_status(),
        _ => true,
    };
    let keys = new.members().chain(old.members()).map(|(key, _)| key);
    keys.filter(counts).any(|key| !new.has_same(key, old))
}

pub(crate) fn bump_generation(object: &mut Document) {
    let number = object.meta("generation").and_then(Value::as_i64);
    if let Some(number) = number.filter(|number| *number > 0) {
        object.set_meta("generation", Value::from(number.saturating_add(1)));
    }
}

/// Returns true if an object that is being deleted has neither finalizers nor grace period left.
fn may_be_removed(target: &Target, object: &Document) -> bool {
    let grace = object.meta("deletionGracePeriodSeconds").and_then(Value::as_i64);
    object.meta("deletionTimestamp").is_some()
        && json::array(object.meta("finalizers")).next().is_none()
        && grace.unwrap_or_default() == 0
        && target.kind.family != Family::Namespace
}
