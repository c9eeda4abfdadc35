//! Changes of existing objects: replacing, patching, binding.

use std::sync::Arc;

use http::Method;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    apply,
    create::{identify, meta_text, read_body, settle, settle_status, strict_failure, undecodable, validate},
    events,
    kinds::{Family, Target},
    names,
    object::{Applied, Object},
    patch::{self, Spot},
    pods,
    request::Request,
    server::{Answer, Server},
    services,
    status::{Cause, Failure, Outcome},
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
    pub(super) fn replace(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        status_only: bool,
        now: Timestamp,
    ) -> Outcome<Answer> {
        let mut body = read_body(request, target)?;
        identify(request, target, &mut body)?;
        names::settle_metadata(&mut body).map_err(|why| undecodable(request, target, &body, &why))?;
        if meta_text(&body, "name").is_empty() {
            return Err(Failure::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        let namespace = request.path.namespace.as_deref().unwrap_or_default();
        check_address(&body, name, namespace)?;
        let old = match self.existing(request, target, name) {
            Ok(old) => old.clone(),
            Err(_) if target.kind.create_on_update() && !status_only => {
                let object = self.create_from(request, target, namespace, body, None, now)?;
                return Ok(self.shown(201, request, target, &object));
            }
            Err(failure) => return Err(failure),
        };
        if meta_text(&body, "resourceVersion").is_empty() && !target.kind.unconditional_update() {
            let why = "must be specified for an update";
            let cause = Cause::invalid("metadata.resourceVersion", &json!(0), why);
            // Here the server takes the resource for the kind.
            let plural = &target.kind.plural;
            return Err(Failure::invalid_kind(target.group(), plural, name, &[cause]));
        }
        target.absorb(&mut body);
        let applied = old.applied.clone();
        let object = self.update(request, target, &old, body, applied, status_only, now)?;
        Ok(self.shown(200, request, target, &object))
    }

    pub(super) fn patch(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        status_only: bool,
        now: Timestamp,
    ) -> Outcome<Answer> {
        let kind = request.content_type.as_str();
        if matches!(kind, patch::APPLY | patch::APPLY_JSON) {
            return self.apply(request, target, name, status_only, now);
        }
        let strategic = kind == patch::STRATEGIC && !target.kind.is_custom();
        if !strategic && !matches!(kind, patch::JSON | patch::MERGE) {
            if !target.kind.is_custom() {
                return Err(Failure::unsupported_patch());
            }
            let accepted = [patch::JSON, patch::MERGE, patch::STRATEGIC, patch::APPLY];
            let accepted: Vec<&str> = accepted
                .into_iter()
                .filter(|kind| *kind != patch::STRATEGIC || !target.kind.is_custom())
                .collect();
            return Err(Failure::unsupported_media_type(&accepted.join(", ")));
        }
        let old = self.existing(request, target, name)?.clone();
        let mut value = target.present(old.value()).into_owned();
        match kind {
            patch::JSON => patch::json(&mut value, &request.body)?,
            patch::MERGE => patch::merge(&mut value, read_object(&request.body)?),
            _ => patch::strategic(&mut value, patch::read(&request.body)?, Spot::BuiltIn(""))?,
        }
        identify(request, target, &mut value)?;
        names::settle_metadata(&mut value).map_err(|why| undecodable(request, target, &value, &why))?;
        check_address(&value, name, old.namespace())?;
        target.absorb(&mut value);
        let applied = old.applied.clone();
        let object = self.update(request, target, &old, value, applied, status_only, now)?;
        Ok(self.shown(200, request, target, &object))
    }

    fn apply(
        &mut self,
        request: &Request,
        target: &Target,
        name: &str,
        status_only: bool,
        now: Timestamp,
    ) -> Outcome<Answer> {
        let query = &request.query;
        let mut config = read_object(&request.body)?;
        if config
            .get("metadata")
            .and_then(|meta| meta.get("managedFields"))
            .is_some_and(|fields| !fields.is_null())
        {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        let told = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or_default();
        if told("apiVersion") != target.api_version() || told("kind") != target.kind.kind {
            let (group, version) = match told("apiVersion").split_once('/') {
                Some((group, version)) => (group, version),
                None => ("", told("apiVersion")),
            };
            let kind = told("kind");
            return Err(Failure::bad_request(format!(
                "invalid object type: {group}/{version}, Kind={kind}"
            )));
        }
        identify(request, target, &mut config)?;
        names::settle_metadata(&mut config).map_err(|why| undecodable(request, target, &config, &why))?;
        let namespace = request.path.namespace.as_deref().unwrap_or_default();
        check_address(&config, name, namespace)?;
        let manager = if status_only {
            format!("{}/status", query.manager)
        } else {
            query.manager.clone()
        };
        let spot = if target.kind.is_custom() {
            Spot::Custom(target.schema().map(AsRef::as_ref))
        } else {
            Spot::BuiltIn("")
        };
        let old = self.existing(request, target, name).cloned();
        let Ok(old) = old else {
            if status_only {
                return Err(Failure::not_found(target, name));
            }
            let told = meta_text(&config, "uid");
            if !told.is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {told}, and no existing object was found"
                );
                return Err(Failure::conflict(target, name, &why));
            }
            let mut live = json!({});
            let mut applied = Applied::new();
            apply::apply(&mut live, &config, &manager, query.force, &mut applied, spot)?;
            // The name is owned by nobody, so it is in no applied configuration.
            if let Some(meta) = config.get_mut("metadata").and_then(Value::as_object_mut) {
                meta.insert("name".to_owned(), Value::from(name));
            }
            let object =
                self.create_from(request, target, namespace, config, Some(Arc::new(applied)), now)?;
            return Ok(self.shown(201, request, target, &object));
        };
        let mut value = target.present(old.value()).into_owned();
        let mut applied = old.applied.as_deref().cloned().unwrap_or_default();
        apply::apply(&mut value, &config, &manager, query.force, &mut applied, spot)?;
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for key in ["uid", "resourceVersion"] {
                let told = meta_text(&config, key);
                if !told.is_empty() {
                    meta.insert(key.to_owned(), Value::from(told));
                }
            }
        }
        names::settle_metadata(&mut value).map_err(|why| undecodable(request, target, &value, &why))?;
        target.absorb(&mut value);
        let object = self.update(
            request,
            target,
            &old,
            value,
            Some(Arc::new(applied)),
            status_only,
            now,
        )?;
        Ok(self.shown(200, request, target, &object))
    }

    /// Stores a new state of an object, as far as the client may change it.
    #[allow(clippy::too_many_arguments)]
    fn update(
        &mut self,
        request: &Request,
        target: &Target,
        old: &Arc<Object>,
        mut new: Value,
        applied: Option<Arc<Applied>>,
        status_only: bool,
        now: Timestamp,
    ) -> Outcome<Arc<Object>> {
        let name = old.name();
        check_preconditions(request, target, old, &new)?;
        if status_only {
            new = with_status_of(target, old.value(), new);
        }
        keep_system_fields(&mut new, old);
        if !status_only {
            keep_status(target, &mut new, old.value());
        }
        let unknown = if status_only {
            settle_status(request, target, &mut new)?
        } else {
            settle(request, target, &mut new)?
        };
        if request.query.strict && !unknown.is_empty() {
            return Err(strict_failure(request, target, &new, &unknown));
        }
        let causes = self.breaches(target, &mut new, old, status_only);
        if !causes.is_empty() {
            return Err(Failure::invalid(target, name, &causes));
        }
        if desired_changed(target, &new, old.value()) {
            bump_generation(&mut new);
        }
        if request.query.dry_run {
            return Ok(Arc::new(Object::new(new, old.resource_version(), None)));
        }
        if leaves_now(target, &new) {
            self.store.remove(target, old);
            return Ok(Arc::new(Object::new(new, old.resource_version(), None)));
        }
        let object = self.store.replace(target, old, new, applied);
        if target.kind.family == Family::Definition && !status_only && !object.is_deleting() {
            let stamp = self.stamp(now);
            if object.resource_version() != old.resource_version() {
                self.establish(target, &object, &stamp);
            }
        }
        Ok(object)
    }

    fn breaches(&self, target: &Target, new: &mut Value, old: &Object, status_only: bool) -> Vec<Cause> {
        if !status_only && target.kind.family == Family::Service {
            services::keep_address(new, old.value());
            services::set_defaults(new, String::new);
        }
        let mut causes = validate(target, new);
        if !status_only {
            match target.kind.family {
                Family::Pod => causes.extend(pods::validate_update(new, old.value())),
                Family::Event if target.is_events_group() => {
                    causes.extend(events::validate_update(new, old.value()));
                }
                Family::Service => causes.extend(services::validate_update(new, old.value())),
                _ => {}
            }
        }
        if old.is_deleting() {
            let found: Vec<String> =
                names::array(new.get("metadata").and_then(|meta| meta.get("finalizers")))
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

/// Reads a patch that is an object.
fn read_object(body: &[u8]) -> Outcome<Value> {
    match serde_json::from_slice(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Failure::bad_request("error decoding patch: json: no object")),
        Err(error) => Err(Failure::bad_request(format!(
            "error decoding patch: {}",
            patch::words(&error)
        ))),
    }
}

/// Refuses a body whose name or namespace is not that of the path.
fn check_address(body: &Value, name: &str, namespace: &str) -> Outcome<()> {
    let told = meta_text(body, "name");
    if !told.is_empty() && told != name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({told}) does not match the name on the URL ({name})"
        )));
    }
    let told = meta_text(body, "namespace");
    if !told.is_empty() && told != namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(why));
    }
    Ok(())
}

fn check_preconditions(request: &Request, target: &Target, old: &Object, new: &Value) -> Outcome<()> {
    let uid = meta_text(new, "uid");
    let other = !uid.is_empty() && uid != old.uid();
    // A patch is made into a whole object first, and its UID is looked at when that is validated.
    let patched = request.method == Method::PATCH;
    if other && !patched {
        return Err(uid_conflict(target, old, uid));
    }
    let version = meta_text(new, "resourceVersion");
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

/// A write that was meant for an earlier object of the same name, in the words of the server's store.
pub(super) fn uid_conflict(target: &Target, old: &Object, told: &str) -> Box<Failure> {
    let (key, found) = (target.key(old.namespace(), old.name()), old.uid());
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {told}, UID in object meta: {found}"
    );
    Failure::conflict(target, old.name(), &why)
}

fn keep_system_fields(new: &mut Value, old: &Object) {
    let Some(meta) = new.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    for key in SYSTEM_FIELDS {
        match old.meta(key) {
            Some(value) if meta.get(key) == Some(value) => {}
            Some(value) => {
                meta.insert(key.to_owned(), value.clone());
            }
            None => {
                meta.remove(key);
            }
        }
    }
}

/// Undoes what a write of the object itself may not touch.
fn keep_status(target: &Target, new: &mut Value, old: &Value) {
    let Some(map) = new.as_object_mut() else { return };
    let mut keep = |key: &str| match old.get(key) {
        Some(value) => {
            map.insert(key.to_owned(), value.clone());
        }
        None => {
            map.remove(key);
        }
    };
    if target.has_status() {
        keep("status");
    }
    if target.kind.family == Family::Namespace {
        keep("spec");
    }
}

/// The old object with the new status, and with what else a write of the status may change.
fn with_status_of(target: &Target, old: &Value, new: Value) -> Value {
    let (Value::Object(mut new), Value::Object(old)) = (new, old) else {
        return old.clone();
    };
    let metadata = new.remove("metadata");
    new.retain(|key, _| key == "status" || old.contains_key(key));
    // Most of it is as it was: what is equal need not be copied.
    for (key, value) in old {
        if key != "status" && new.get(key) != Some(value) {
            new.insert(key.clone(), value.clone());
        }
    }
    if new.get("status").is_some_and(Value::is_null) {
        new.remove("status");
    }
    if !target.kind.is_custom()
        && let Some(meta) = new.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(given) = metadata.as_ref().and_then(Value::as_object)
    {
        let changeable: &[&str] = match target.kind.family {
            Family::Pod => &["labels", "annotations", "finalizers"],
            _ => &["labels", "annotations", "finalizers", "ownerReferences"],
        };
        for key in changeable {
            copy(meta, given, key);
        }
    }
    Value::Object(new)
}

fn copy(to: &mut Map<String, Value>, from: &Map<String, Value>, key: &str) {
    match from.get(key) {
        Some(value) => {
            to.insert(key.to_owned(), value.clone());
        }
        None => {
            to.remove(key);
        }
    }
}

/// Whether the desired state differs, which `metadata.generation` counts.
fn desired_changed(target: &Target, new: &Value, old: &Value) -> bool {
    if !target.kind.generation {
        return false;
    }
    if !target.kind.is_custom() {
        return new.get("spec") != old.get("spec");
    }
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else {
        return false;
    };
    let counts = |key: &&String| match key.as_str() {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !target.has_status(),
        _ => true,
    };
    new.keys()
        .chain(old.keys())
        .filter(counts)
        .any(|key| new.get(key) != old.get(key))
}

pub(super) fn bump_generation(object: &mut Value) {
    if let Some(slot) = object
        .get_mut("metadata")
        .and_then(|meta| meta.get_mut("generation"))
        && let Some(number) = slot.as_i64().filter(|number| *number > 0)
    {
        *slot = Value::from(number.saturating_add(1));
    }
}

/// Whether an object that is being deleted has nothing left to wait for.
fn leaves_now(target: &Target, object: &Value) -> bool {
    let Some(meta) = object.get("metadata").and_then(Value::as_object) else {
        return false;
    };
    meta.contains_key("deletionTimestamp")
        && names::array(meta.get("finalizers")).next().is_none()
        && meta
            .get("deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .unwrap_or_default()
            == 0
        && target.kind.family != Family::Namespace
}
