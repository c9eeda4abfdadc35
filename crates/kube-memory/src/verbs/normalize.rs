//! Converts a request's body to an object that can be stored: parsing, canonical form, validation.

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use crate::kinds::{Family, Target, decode, definition, events, leases, pods, schema, services, stored};
use crate::object::{cause::Cause, document::Document, metadata};
use crate::request::{
    Request, body,
    failure::{ApiResult, Failure},
};
use crate::server::Server;
use crate::store::object::Object;

pub(crate) fn meta_text<'a>(object: &'a Value, key: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|meta| meta.get(key))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Parses the body of a request as a whole object. A custom resource must contain its kind.
pub(crate) fn parse_body(request: &Request, target: &Target) -> ApiResult<Document> {
    let kind = &target.kind.kind;
    let refuse = |why: String| {
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why}"
        ))
    };
    let unread = |why: String| refuse(format!("couldn't get version/kind; json parse error: {why}"));
    let body = Document::parse(&request.body).map_err(|error| unread(body::error_text(&error)))?;
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

/// Checks that a body has the kind and version of its path, and sets them where they are missing.
pub(crate) fn check_type_meta(request: &Request, target: &Target, body: &mut Document) -> ApiResult<()> {
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
        let message = format!(
            "{kind} in version {version:?} cannot be handled as a {}: {why}",
            target.kind.kind
        );
        return Err(Failure::bad_request(message));
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

/// Like [`normalize`], after a write of the status alone: the rest of the object is normalized already.
pub(crate) fn normalize_status(
    request: &Request,
    target: &Target,
    body: &mut Document,
) -> ApiResult<Vec<String>> {
    if target.kind.family != Family::Pod {
        return normalize(request, target, body);
    }
    let Some(status) = body.get_mut("status") else {
        return Ok(Vec::new());
    };
    drop_nulls(status);
    match decode::decode_pod_status(status) {
        Ok(unknown) => {
            if let Some(status) = status.as_object_mut() {
                pods::complete_status(status);
            }
            Ok(unknown)
        }
        Err(why) => Err(undecodable(request, target, body, &why)),
    }
}

/// Converts an object of the stored version to its canonical form: unknown members are dropped, defaults are set.
/// Returns the paths of the unknown members.
pub(crate) fn normalize(request: &Request, target: &Target, body: &mut Document) -> ApiResult<Vec<String>> {
    let normalized = match target.kind.family {
        Family::Custom => normalize_custom(target, body),
        Family::Definition => {
            body.edit(definition::set_defaults);
            Ok(Vec::new())
        }
        _ => normalize_built_in(target, body),
    };
    normalized.map_err(|why| undecodable(request, target, body, &why))
}

fn normalize_custom(target: &Target, body: &mut Document) -> Result<Vec<String>, String> {
    body.edit(|body| {
        let mut unknown = decode::decode_metadata(body)?;
        if let Some(schema) = target.schema() {
            unknown.extend(schema.prune(body));
            schema.set_defaults(body);
        }
        Ok(unknown)
    })
}

fn normalize_built_in(target: &Target, body: &mut Document) -> Result<Vec<String>, String> {
    let unknown = body.edit(|body| {
        drop_nulls(body);
        decode::decode(target, body)
    })?;
    match target.kind.family {
        Family::Pod => pods::set_defaults(body),
        Family::Event => events::set_defaults(body),
        Family::Secret => body.edit(normalize_secret),
        Family::Stored => body.edit(|body| stored::set_defaults(&target.kind.kind, body)),
        _ => {}
    }
    show_times(target, body);
    Ok(unknown)
}

fn show_times(target: &Target, body: &mut Document) {
    let show = match target.kind.family {
        Family::Pod => pods::complete_status,
        Family::Node => decode::show_node_times,
        _ => return,
    };
    body.change("status", |status| status.as_object_mut().map_or((), show));
}

/// Returns the failure for an object that cannot be decoded as its kind.
pub(crate) fn undecodable(request: &Request, target: &Target, object: &Document, why: &str) -> Box<Failure> {
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

fn normalize_secret(secret: &mut Value) {
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

/// Validates an object of the stored version.
pub(crate) fn validate(target: &Target, body: &Document) -> Vec<Cause> {
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
            if let Some(paths) = target.scale() {
                causes.extend(paths.check(body));
            }
            if let Some(of_kind) = target.schema() {
                schema::check(of_kind, body, &mut causes);
                if target.has_rules() && causes.iter().any(Cause::blocks_rules) {
                    causes.push(Cause::rules_unchecked());
                }
            }
        }
        _ => {}
    }
    causes
}

pub(crate) fn strict_failure(
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
    let message = format!("strict decoding error: {}", listed.join(", "));
    if request.is_plain_patch() {
        return Failure::unreadable_patch(&object.to_value(), &message);
    }
    Failure::bad_request(format!("{}: {message}", unhandled(target)))
}

impl Server {
    /// Evaluates the rules of the object's definition, if the cluster has that setting and nothing blocks them.
    #[cfg(feature = "rules")]
    pub(crate) fn check_rules(
        &self,
        target: &Target,
        body: &Document,
        old: Option<&Object>,
        causes: &mut Vec<Cause>,
    ) {
        if !self.settings.rules || causes.iter().any(Cause::blocks_rules) {
            return;
        }
        if let Some(rules) = target.evaluated_rules() {
            rules.check(&body.to_value(), old.map(Object::value), causes);
        }
    }

    #[cfg(not(feature = "rules"))]
    #[expect(clippy::unused_self, reason = "the feature `rules` needs it")]
    pub(crate) fn check_rules(&self, _: &Target, _: &Document, _: Option<&Object>, _: &mut Vec<Cause>) {}
}
