//! Creation.

use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    definition,
    document::Document,
    events,
    kinds::{Family, Target},
    leases,
    members::Members,
    metadata,
    object::{Applied, Object},
    patch, pods,
    request::Request,
    server::{Answer, Server},
    services, shape,
    status::{Cause, Failure, Outcome},
};

/// Letters of a generated name before its suffix.
const GENERATED_PREFIX: usize = 58;
/// Suffixes tried for a generated name.
const GENERATED_TRIES: usize = 8;

impl Server {
    pub(super) fn create(&mut self, request: &Request, target: &Target, now: Timestamp) -> Outcome<Answer> {
        check_media_type(request)?;
        let body = read_body(request, target)?;
        let namespace = request.path.namespace.as_deref().unwrap_or_default();
        let object = self.create_from(request, target, namespace, body, None, now)?;
        Ok(self.shown(201, request, target, &object))
    }

    /// Creates an object from a body in the request's version.
    pub(super) fn create_from(
        &mut self,
        request: &Request,
        target: &Target,
        namespace: &str,
        mut body: Document,
        applied: Option<Arc<Applied>>,
        now: Timestamp,
    ) -> Outcome<Arc<Object>> {
        identify(request, target, &mut body)?;
        metadata::settle_metadata(&mut body).map_err(|why| undecodable(request, target, &body, &why))?;
        let told = body.meta_text("namespace");
        if !told.is_empty() && told != namespace {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Failure::bad_request(why));
        }
        if target.kind.namespaced {
            self.admit_namespace(target, &body, namespace, now)?;
        }
        target.absorb(&mut body);
        let unknown = settle(request, target, &mut body)?;
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
    ) -> Outcome<()> {
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

    /// Stores a settled object of the stored version under a new UID.
    pub(super) fn insert(
        &mut self,
        target: &Target,
        namespace: &str,
        mut body: Document,
        applied: Option<Arc<Applied>>,
        dry_run: bool,
        now: Timestamp,
    ) -> Outcome<Arc<Object>> {
        let stamp = self.stamp(now);
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
        let causes = validate(target, &body);
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

    /// Gives a name to an object that asks for one; whether it did so without finding the name taken.
    fn generate_name(&mut self, target: &Target, namespace: &str, meta: &mut Members) -> bool {
        if meta.contains_key("name") {
            return false;
        }
        let Some(base) = meta.get("generateName").and_then(Value::as_str) else {
            return false;
        };
        let base: String = base.chars().take(GENERATED_PREFIX).collect();
        for _ in 0..GENERATED_TRIES {
            let name = format!("{base}{}", self.next_suffix());
            let free = self.store.get(target.id, namespace, &name).is_none();
            meta.insert("name", Value::from(name));
            if free {
                return true;
            }
        }
        false
    }

    /// What the server itself writes into a new object.
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
            Family::Definition => Some(
                json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null}),
            ),
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

    /// Serves the kind of a stored definition and says so in its status.
    pub(super) fn establish(&mut self, target: &Target, object: &Arc<Object>, now: &str) {
        let Some(kind) = definition::kind(object.value()) else {
            return;
        };
        self.install(kind);
        let mut document = object.document().clone();
        document.insert("status", definition::established(object.value(), now));
        self.store
            .replace(target, object, document, object.applied.clone());
    }
}

pub(super) fn meta_text<'a>(object: &'a Value, key: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|meta| meta.get(key))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Reads the body of a request that is a whole object; a custom one has to name its kind.
pub(super) fn read_body(request: &Request, target: &Target) -> Outcome<Document> {
    let kind = &target.kind.kind;
    let refuse = |why: String| {
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why}"
        ))
    };
    let unread = |why: String| refuse(format!("couldn't get version/kind; json parse error: {why}"));
    let body = Document::read(&request.body).map_err(|error| unread(patch::words(&error)))?;
    let body = body.ok_or_else(|| unread("json: no object".to_owned()))?;
    let missing = |key: &str| body.text(key).is_empty();
    let missing = [("kind", "Kind"), ("apiVersion", "apiVersion")]
        .into_iter()
        .find(|(key, _)| target.kind.is_custom() && missing(key));
    if let Some((_, shown)) = missing {
        let text = String::from_utf8_lossy(&request.body);
        let start: String = text.chars().take(30).collect();
        let start = if start == text {
            start
        } else {
            format!("{start} ...")
        };
        return Err(refuse(format!(
            "Object '{shown}' is missing in '{text}' ({start})"
        )));
    }
    Ok(body)
}

/// Refuses a body that says of itself that it is no object.
fn check_media_type(request: &Request) -> Outcome<()> {
    let known = [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
    ];
    let told = request.content_type.as_str();
    if told.is_empty() || known.contains(&told) {
        return Ok(());
    }
    Err(Failure::unsupported_media_type(&known.join(", ")))
}

/// Checks that a body is of the kind and version its path says.
pub(super) fn identify(request: &Request, target: &Target, body: &mut Document) -> Outcome<()> {
    let (version, kind) = (body.text("apiVersion"), body.text("kind"));
    let other = |found: &str, wanted: &str| !found.is_empty() && found != wanted;
    if !target.kind.is_custom() && (other(kind, &target.kind.kind) || other(version, target.api_version())) {
        let why = "it is another kind";
        if request.is_plain_patch() {
            return Err(Failure::unreadable_patch(&body.to_value(), why));
        }
        let kind = if kind.is_empty() { &target.kind.kind } else { kind };
        let version = version.rsplit('/').next().filter(|version| !version.is_empty());
        let version = version.unwrap_or_else(|| target.version_name());
        let said = format!(
            "{kind} in version {version:?} cannot be handled as a {}: {why}",
            target.kind.kind
        );
        return Err(Failure::bad_request(said));
    }
    let wanted = [
        ("apiVersion", target.api_version()),
        ("kind", target.kind.kind.as_str()),
    ];
    for (key, wanted) in wanted {
        match body.text(key) {
            "" => body.insert(key, Value::from(wanted)),
            found if found == wanted => {}
            found if key == "apiVersion" => {
                return Err(Failure::bad_request(format!(
                    "the API version in the data ({found}) does not match the expected API version ({wanted})"
                )));
            }
            found => {
                let cause = Cause::invalid_text("kind", found, &format!("must be {wanted}"));
                let name = body.meta_text("name");
                return Err(Failure::invalid_kind(target.group(), found, name, &[cause]));
            }
        }
    }
    Ok(())
}

/// The same as [`settle`] after a write of the status alone, whose object is settled already but for that.
pub(super) fn settle_status(request: &Request, target: &Target, body: &mut Document) -> Outcome<Vec<String>> {
    if target.kind.family != Family::Pod {
        return settle(request, target, body);
    }
    let Some(status) = body.get_mut("status") else {
        return Ok(Vec::new());
    };
    drop_nulls(status);
    match shape::fit_pod_status(status) {
        Ok(unknown) => {
            if let Some(status) = status.as_object_mut() {
                pods::complete_status(status);
            }
            Ok(unknown)
        }
        Err(why) => Err(undecodable(request, target, body, &why)),
    }
}

/// Brings an object of the stored version into its canonical form; names the members that were unknown.
pub(super) fn settle(request: &Request, target: &Target, body: &mut Document) -> Outcome<Vec<String>> {
    let settled = match target.kind.family {
        Family::Custom => settle_custom(target, body),
        Family::Definition => {
            body.edit(definition::set_defaults);
            Ok(Vec::new())
        }
        _ => settle_built_in(target, body),
    };
    settled.map_err(|why| undecodable(request, target, body, &why))
}

fn settle_custom(target: &Target, body: &mut Document) -> Result<Vec<String>, String> {
    let mut unknown = shape::fit_metadata_of(body)?;
    if let Some(schema) = target.schema() {
        body.edit(|body| {
            schema.prune(body, &mut unknown);
            schema.set_defaults(body);
        });
    }
    Ok(unknown)
}

fn settle_built_in(target: &Target, body: &mut Document) -> Result<Vec<String>, String> {
    let mut unknown = Vec::new();
    if !shape::fits(target, body) {
        unknown = body.edit(|body| {
            drop_nulls(body);
            shape::fit(target, body)
        })?;
    }
    match target.kind.family {
        Family::Pod => pods::set_defaults(body),
        Family::Event => events::set_defaults(body),
        Family::Secret => body.edit(settle_secret),
        _ => {}
    }
    show_times(target, body);
    Ok(unknown)
}

fn show_times(target: &Target, body: &mut Document) {
    let show = match target.kind.family {
        Family::Pod => pods::complete_status,
        Family::Node => shape::show_node_times,
        _ => return,
    };
    body.change("status", |status| status.as_object_mut().map_or((), show));
}

/// An object that cannot be read as one of its kind.
pub(super) fn undecodable(request: &Request, target: &Target, object: &Document, why: &str) -> Box<Failure> {
    if request.is_plain_patch() {
        return Failure::unreadable_patch(&object.to_value(), &format!("json: {why}"));
    }
    Failure::bad_request(format!("{}: json: {why}", unhandled(target)))
}

fn unhandled(target: &Target) -> String {
    let (kind, version) = (&target.kind.kind, target.version_name());
    format!("{kind} in version {version:?} cannot be handled as a {kind}")
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| !member.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn settle_secret(secret: &mut Value) {
    let Some(map) = secret.as_object_mut() else { return };
    map.entry("type").or_insert_with(|| Value::from("Opaque"));
    let Some(Value::Object(texts)) = map.remove("stringData") else {
        return;
    };
    let Some(data) = map.entry("data").or_insert_with(|| json!({})).as_object_mut() else {
        return;
    };
    for (key, text) in texts {
        data.insert(
            key,
            Value::from(BASE64_STANDARD.encode(text.as_str().unwrap_or_default())),
        );
    }
}

/// Everything that is checked about an object of the stored version.
pub(super) fn validate(target: &Target, body: &Document) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = body.meta_text("name");
    let base = body.meta_text("generateName");
    let masked = base.strip_suffix('-').map(|base| format!("{base}a"));
    let base_rule = target.kind.name_rule();
    if let Some(why) = (!base.is_empty())
        .then(|| base_rule.broken_by(masked.as_deref().unwrap_or(base)))
        .flatten()
    {
        causes.push(Cause::invalid_text("metadata.generateName", base, &why));
    }
    if name.is_empty() {
        causes.push(Cause::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else if let Some(why) = target.kind.name_rule().broken_by(name) {
        causes.push(Cause::invalid_text("metadata.name", name, &why));
    }
    if let Some(meta) = body.metadata() {
        metadata::metadata(meta, &mut causes);
    }
    match target.kind.family {
        Family::Pod => causes.extend(pods::validate(body)),
        Family::Service => causes.extend(services::validate(body)),
        Family::Lease => causes.extend(leases::validate(body)),
        Family::Plain | Family::Secret => metadata::config_keys(body, &mut causes),
        Family::Event => causes.extend(events::validate(body, target.is_events_group())),
        Family::Definition => causes.extend(definition::validate(&body.to_value())),
        Family::Custom => {
            if let Some(schema) = target.schema() {
                schema.validate(body, &mut causes);
                if target.has_rules() && causes.iter().any(Cause::blocks_rules) {
                    causes.push(Cause::rules_unchecked());
                }
            }
        }
        _ => {}
    }
    causes
}

pub(super) fn strict_failure(
    request: &Request,
    target: &Target,
    object: &Document,
    unknown: &[String],
) -> Box<Failure> {
    let mut listed: Vec<String> = unknown
        .iter()
        .map(|path| format!("unknown field {path:?}"))
        .collect();
    listed.sort();
    let said = format!("strict decoding error: {}", listed.join(", "));
    if request.is_plain_patch() {
        return Failure::unreadable_patch(&object.to_value(), &said);
    }
    Failure::bad_request(format!("{}: {said}", unhandled(target)))
}
