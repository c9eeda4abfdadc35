//! Failures in the API server's words: a `metav1.Status` with a code, a reason, details and causes.

use serde_json::{Map, Value, json};

use crate::kinds::Target;
use crate::object::cause::Cause;
use crate::request::accept::MEDIA_TYPES;

/// The reason that a request was rejected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    details: Map<String, Value>,
    /// True if `details` is shown even if it is empty.
    shows_details: bool,
    /// True if the response is the message as plain text, without a `Status`.
    pub(crate) is_plain_text: bool,
    /// `metadata.continue`: the token with which an expired list may continue, inconsistently.
    continue_token: Option<String>,
}

pub(crate) type ApiResult<T> = Result<T, Box<Failure>>;

impl Failure {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self {
            code,
            reason,
            message,
            details: Map::new(),
            shows_details: false,
            is_plain_text: false,
            continue_token: None,
        }
    }

    fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        if value.as_str() != Some("") {
            self.details.insert(key.to_owned(), value);
        }
        self
    }

    fn about(self, target: &Target, name: &str) -> Self {
        self.detail("name", name)
            .detail("group", target.group())
            .detail("kind", target.kind.plural.as_str())
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Box<Self> {
        Box::new(Self::new(400, "BadRequest", message.into()))
    }

    pub(crate) fn internal(message: impl Into<String>) -> Box<Self> {
        Box::new(Self::new(500, "", message.into()))
    }

    /// A change that cannot be stored. It has not been made.
    pub(crate) fn not_stored(error: &std::io::Error) -> Box<Self> {
        let message = format!("the change is not made, because it cannot be stored: {error}");
        Box::new(Self::new(500, "InternalError", message))
    }

    /// A text that is not a number, in the words of Go's `strconv`.
    pub(crate) fn no_number(code: u16, function: &str, text: &str) -> Box<Self> {
        let reason = if code == 400 { "BadRequest" } else { "" };
        let message = format!("strconv.{function}: parsing {text:?}: invalid syntax");
        Box::new(Self::new(code, reason, message))
    }

    pub(crate) fn not_found(target: &Target, name: &str) -> Box<Self> {
        let message = format!("{} {name:?} not found", target.resource());
        Box::new(Self::new(404, "NotFound", message).about(target, name))
    }

    pub(crate) fn namespace_not_found(name: &str) -> Box<Self> {
        let failure = Self::new(404, "NotFound", format!("namespaces {name:?} not found"));
        Box::new(failure.detail("name", name).detail("kind", "namespaces"))
    }

    pub(crate) fn no_such_resource() -> Box<Self> {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message.to_owned()).with_empty_details()
    }

    /// A path that is not served. The response is plain text.
    pub(crate) fn path_not_found() -> Box<Self> {
        let mut failure = Self::new(404, "", "404 page not found\n".to_owned());
        failure.is_plain_text = true;
        Box::new(failure)
    }

    pub(crate) fn method_not_allowed() -> Box<Self> {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message.to_owned()).with_empty_details()
    }

    /// A verb that custom kinds do not have at this path.
    pub(crate) fn verb_not_supported(target: &Target, verb: &str) -> Box<Self> {
        let message = format!(
            "{verb} is not supported on resources of kind {:?}",
            target.resource()
        );
        Box::new(Self::new(405, "MethodNotAllowed", message).about(target, ""))
    }

    fn with_empty_details(mut self) -> Box<Self> {
        self.shows_details = true;
        Box::new(self)
    }

    pub(crate) fn already_exists(target: &Target, name: &str) -> Box<Self> {
        let message = format!("{} {name:?} already exists", target.resource());
        Box::new(Self::new(409, "AlreadyExists", message).about(target, name))
    }

    /// The name belongs to an object that is being deleted.
    pub(crate) fn still_exists(target: &Target, name: &str) -> Box<Self> {
        let mut failure = Self::already_exists(target, name);
        failure.message = format!("object is being deleted: {}", failure.message);
        failure
    }

    /// A deletion whose precondition does not hold. The message contains the kind instead of the resource.
    pub(crate) fn precondition(target: &Target, name: &str, why: &str) -> Box<Self> {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            target.qualified_kind()
        );
        let failure = Self::new(409, "Conflict", message)
            .detail("name", name)
            .detail("group", target.group())
            .detail("kind", target.kind.kind.as_str());
        Box::new(failure)
    }

    pub(crate) fn conflict(target: &Target, name: &str, why: &str) -> Box<Self> {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            target.resource()
        );
        Box::new(Self::new(409, "Conflict", message).about(target, name))
    }

    /// A pod that cannot be bound.
    pub(crate) fn binding_conflict(name: &str, why: &str) -> Box<Self> {
        let message = format!("Operation cannot be fulfilled on pods/binding {name:?}: {why}");
        let failure = Self::new(409, "Conflict", message);
        Box::new(failure.detail("name", name).detail("kind", "pods/binding"))
    }

    pub(crate) fn modified(target: &Target, name: &str) -> Box<Self> {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(target, name, why)
    }

    /// Fields that other appliers own with other values: pairs of manager and path.
    pub(crate) fn apply_conflict(conflicts: &[(String, String)]) -> Box<Self> {
        let listed: Vec<String> = conflicts
            .iter()
            .map(|(manager, path)| format!("conflict with {manager:?}: {path}"))
            .collect();
        let plural = if conflicts.len() == 1 { "" } else { "s" };
        let message = format!(
            "Apply failed with {} conflict{plural}: {}",
            conflicts.len(),
            listed.join("\n")
        );
        let causes: Vec<Value> = conflicts
            .iter()
            .map(|(manager, path)| {
                json!({
                    "reason": "FieldManagerConflict",
                    "message": format!("conflict with {manager:?}"),
                    "field": path,
                })
            })
            .collect();
        Box::new(Self::new(409, "Conflict", message).detail("causes", causes))
    }

    pub(crate) fn forbidden(target: &Target, name: &str, why: &str) -> Box<Self> {
        let message = format!("{} {name:?} is forbidden: {why}", target.resource());
        Box::new(Self::new(403, "Forbidden", message).about(target, name))
    }

    pub(crate) fn namespace_terminating(target: &Target, name: &str, namespace: &str) -> Box<Self> {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = json!({
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        });
        let failure = *Self::forbidden(target, name, &why);
        Box::new(failure.detail("causes", vec![cause]))
    }

    pub(crate) fn invalid(target: &Target, name: &str, causes: &[Cause]) -> Box<Self> {
        // Events have the group of their core form.
        let group = if target.is_events_group() {
            ""
        } else {
            target.group()
        };
        Self::invalid_kind(group, &target.kind.kind, name, causes)
    }

    /// Invalid options of a request; `kind` is the kind of the options, such as `DeleteOptions`.
    pub(crate) fn invalid_options(kind: &str, causes: &[Cause]) -> Box<Self> {
        Self::invalid_kind("meta.k8s.io", kind, "", causes)
    }

    /// A patch after which the object cannot be decoded.
    pub(crate) fn unreadable_patch(object: &Value, why: &str) -> Box<Self> {
        let cause = Cause::invalid_text("patch", &object.to_string(), why);
        Self::invalid_kind("", "", "", &[cause])
    }

    /// Like [`Failure::invalid`], with the group and kind given.
    pub(crate) fn invalid_kind(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Box<Self> {
        let mut listed: Vec<String> = Vec::new();
        for cause in causes {
            let line = format!("{}: {}", cause.field, cause.message);
            if !listed.contains(&line) {
                listed.push(line);
            }
        }
        let text = match listed.as_slice() {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let qualified = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let message = format!("{qualified} {name:?} is invalid: {text}");
        let causes: Vec<Value> = causes
            .iter()
            .map(|c| json!({"reason": c.reason, "message": c.message, "field": c.field}))
            .collect();
        let failure = Self::new(422, "Invalid", message)
            .detail("name", name)
            .detail("group", group)
            .detail("kind", kind);
        Box::new(failure.detail("causes", causes))
    }

    /// A JSON patch that does not fit the object.
    pub(crate) fn unprocessable() -> Box<Self> {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, "Invalid", message.to_owned()).with_empty_details()
    }

    /// A client that accepts no media type of the response.
    pub(crate) fn not_acceptable() -> Box<Self> {
        let message = format!(
            "only the following media types are accepted: {}",
            MEDIA_TYPES.join(", ")
        );
        Box::new(Self::new(406, "NotAcceptable", message))
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Box<Self> {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Box::new(Self::new(415, "UnsupportedMediaType", message))
    }

    pub(crate) fn unsupported_patch() -> Box<Self> {
        let message = "415: Unsupported Media Type";
        Self::new(415, "UnsupportedMediaType", message.to_owned()).with_empty_details()
    }

    pub(crate) fn too_large(limit: usize) -> Box<Self> {
        let message = format!("Request entity too large: limit is {limit}");
        Box::new(Self::new(413, "RequestEntityTooLarge", message))
    }

    pub(crate) fn expired(requested: u64, oldest: u64) -> Box<Self> {
        Box::new(Self::new(
            410,
            "Expired",
            format!("too old resource version: {requested} ({oldest})"),
        ))
    }

    /// A list of exactly one version, which has been removed from the history.
    pub(crate) fn expired_exactly() -> Box<Self> {
        let message = "The resourceVersion for the provided list is too old.";
        Box::new(Self::new(410, "Expired", message.to_owned()))
    }

    /// A page of a list whose version was removed from the history; `continue_token` continues the list from the
    /// current state.
    pub(crate) fn expired_page(continue_token: String) -> Box<Self> {
        let message = "The provided continue parameter is too old to display a consistent list result. You can \
                       start a new list without the continue parameter, or use the continue token in this \
                       response to retrieve the remainder of the results. Continuing with the provided token \
                       results in an inconsistent list - objects that were created, modified, or deleted \
                       between the time the first chunk was returned and now may show up in the list.";
        let mut failure = Self::new(410, "Expired", message.to_owned());
        failure.continue_token = Some(continue_token);
        Box::new(failure)
    }

    pub(crate) fn version_too_large(requested: u64, current: u64) -> Box<Self> {
        let message = format!("Timeout: Too large resource version: {requested}, current: {current}");
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        let failure = Self::new(504, "Timeout", message);
        Box::new(
            failure
                .detail("causes", vec![cause])
                .detail("retryAfterSeconds", 1),
        )
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(continue_token) = &self.continue_token {
            metadata.insert("continue".to_owned(), Value::from(continue_token.as_str()));
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if let Some(map) = status.as_object_mut() {
            if !self.reason.is_empty() {
                map.insert("reason".to_owned(), Value::from(self.reason));
            }
            if self.shows_details || !self.details.is_empty() {
                map.insert("details".to_owned(), Value::Object(self.details.clone()));
            }
        }
        status
    }
}

/// Returns the response to a deletion that returns no object.
pub(crate) fn deleted(target: &Target, name: &str, uid: &str) -> Value {
    let mut details = Map::new();
    details.insert("name".to_owned(), Value::from(name));
    if !target.group().is_empty() {
        details.insert("group".to_owned(), Value::from(target.group()));
    }
    details.insert("kind".to_owned(), Value::from(target.kind.plural.as_str()));
    details.insert("uid".to_owned(), Value::from(uid));
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// Returns the response of sub-resources that return no object (`binding`, `eviction`).
pub(crate) fn created() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}
