//! The paths, queries and headers of the Kubernetes REST protocol.

pub(crate) mod accept;
pub(crate) mod body;
pub(crate) mod failure;
pub(crate) mod options;
pub(crate) mod protobuf;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri, header};

use crate::request::accept::{Accepted, MEDIA_TYPES};
use crate::request::failure::{ApiResult, Failure};

/// The resource that a path names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// The form of objects in the response: whole objects, their metadata, or rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    MetadataOnly,
    Table(Include),
}

impl Form {
    /// Returns the form of objects that a client prefers, or `None` if it accepts none.
    fn of(accepted: &Accepted, include: Include) -> Option<Self> {
        accepted.first(&MEDIA_TYPES, |_, conversion| {
            match (conversion.kind, conversion.group, conversion.version) {
                ("", ..) => Some(Self::Whole),
                ("Table", "meta.k8s.io", "v1") => Some(Self::Table(include)),
                ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1") => {
                    Some(Self::MetadataOnly)
                }
                _ => None,
            }
        })
    }
}

/// The form of the object that a row of a table contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

/// Options of a request, of any verb.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) labels: String,
    pub(crate) fields: String,
    pub(crate) limit: i64,
    pub(crate) continue_token: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) version_match: Option<String>,
    pub(crate) watch: bool,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<i64>,
    pub(crate) dry_run: bool,
    pub(crate) dry_run_modes: Vec<String>,
    pub(crate) manager: String,
    pub(crate) force: bool,
    pub(crate) strict: bool,
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) propagation: Option<String>,
    pub(crate) include: Include,
}

/// A request with its body read.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: Path,
    pub(crate) query: Query,
    pub(crate) form: Form,
    /// False if the client accepts no media type of objects.
    pub(crate) is_acceptable: bool,
    pub(crate) content_type: String,
    pub(crate) accepted: Accepted,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) fn new(method: Method, uri: &Uri, headers: &HeaderMap, body: Bytes) -> ApiResult<Self> {
        let path = Path::parse(uri.path()).ok_or_else(Failure::path_not_found)?;
        let query = Query::parse(uri.query().unwrap_or_default())?;
        let text = |name| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
        };
        let accepted = Accepted::parse(text(header::ACCEPT));
        let form = Form::of(&accepted, query.include);
        let content_type = text(header::CONTENT_TYPE)
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned();
        let (content_type, body) = match content_type.as_str() {
            protobuf::PROTOBUF if !body.is_empty() => {
                let json = protobuf::to_json(&body).and_then(|value| serde_json::to_vec(&value).ok());
                let known = "application/json, application/yaml";
                let json = json.ok_or_else(|| Failure::unsupported_media_type(known))?;
                ("application/json".to_owned(), Bytes::from(json))
            }
            _ => (content_type, body),
        };
        let request = Self {
            method,
            path,
            query,
            form: form.unwrap_or(Form::Whole),
            is_acceptable: form.is_some(),
            content_type,
            accepted,
            body,
        };
        options::check_write(&request)?;
        Ok(request)
    }
}

impl Request {
    /// Returns true for a server-side apply.
    pub(crate) fn is_apply(&self) -> bool {
        let formats = [body::APPLY, body::APPLY_JSON];
        self.method == Method::PATCH && formats.contains(&self.content_type.as_str())
    }

    /// Returns true for a patch other than an apply.
    pub(crate) fn is_plain_patch(&self) -> bool {
        self.method == Method::PATCH && !self.is_apply()
    }
}

impl Path {
    /// Parses `/api/v1/…` and `/apis/<group>/<version>/…`; returns `None` for any other path. A path without a
    /// resource is a discovery request. `/version` is parsed as a version without a group, `/healthz` as one of the group
    /// `health`, `/openapi/v2` as a version of the group `openapi`, and `/openapi/v3/…` as the name of an object of it.
    fn parse(path: &str) -> Option<Self> {
        let mut parts = path.split('/').filter(|part| !part.is_empty()).map(decode);
        let group = match parts.next()?.as_str() {
            "version" => {
                return Some(Self {
                    version: "version".to_owned(),
                    ..Self::default()
                });
            }
            health @ ("healthz" | "livez" | "readyz") => {
                return Some(Self {
                    group: "health".to_owned(),
                    version: health.to_owned(),
                    ..Self::default()
                });
            }
            "openapi" => {
                let version = parts.next()?;
                let document = parts.collect::<Vec<String>>().join("/");
                let (version, name) = match version.as_str() {
                    "v2" if document.is_empty() => (version, None),
                    "v3" => (String::new(), Some(document)),
                    _ => return None,
                };
                return Some(Self {
                    group: "openapi".to_owned(),
                    version,
                    name,
                    ..Self::default()
                });
            }
            "api" => String::new(),
            "apis" => match parts.next() {
                Some(group) => group,
                None => {
                    return Some(Self {
                        group: "*".to_owned(),
                        ..Self::default()
                    });
                }
            },
            _ => return None,
        };
        let Some(version) = parts.next() else {
            return Some(Self {
                group,
                ..Self::default()
            });
        };
        let mut rest: Vec<String> = parts.collect();
        if rest.is_empty() {
            return Some(Self {
                group,
                version,
                ..Self::default()
            });
        }
        // `/namespaces/<name>` is the namespace object itself, and so are its sub-resources.
        let own =
            rest.len() <= 2 || (rest.len() == 3 && matches!(rest.get(2)?.as_str(), "status" | "finalize"));
        let namespace = if rest.first()? == "namespaces" && !own {
            let namespace = rest.get(1)?.clone();
            rest.drain(..2);
            Some(namespace)
        } else {
            None
        };
        let mut rest = rest.into_iter();
        let plural = rest.next()?;
        let name = rest.next();
        // No sub-resource has a slash in its name, so a longer path is one that is not served.
        let subresource = rest.reduce(|path, segment| path + "/" + &segment);
        Some(Self {
            group,
            version,
            namespace,
            plural,
            name,
            subresource,
        })
    }
}

impl Query {
    fn parse(text: &str) -> ApiResult<Self> {
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(&value.replace('+', " "));
            match decode(key).as_str() {
                "labelSelector" => query.labels = value,
                "fieldSelector" => query.fields = value,
                "limit" => query.limit = number(&value)?,
                "continue" => query.continue_token = Some(value).filter(|token| !token.is_empty()),
                "resourceVersion" => query.version = Some(value).filter(|version| !version.is_empty()),
                "resourceVersionMatch" => query.version_match = Some(value).filter(|rule| !rule.is_empty()),
                "watch" => query.watch = flag(&value),
                "allowWatchBookmarks" => query.bookmarks = flag(&value),
                "sendInitialEvents" => query.initial_events = Some(flag(&value)),
                "timeoutSeconds" => query.timeout_seconds = Some(number(&value)?),
                "dryRun" if !value.is_empty() => query.dry_run_modes.push(value),
                "fieldManager" => query.manager = value,
                "force" => query.force = flag(&value),
                "fieldValidation" => query.strict = value == "Strict",
                "gracePeriodSeconds" => query.grace_seconds = Some(number(&value)?),
                "includeObject" => {
                    query.include = match value.as_str() {
                        "None" => Include::None,
                        "Object" => Include::Object,
                        _ => Include::Metadata,
                    }
                }
                "propagationPolicy" => query.propagation = Some(value).filter(|policy| !policy.is_empty()),
                _ => {}
            }
        }
        query.dry_run = !query.dry_run_modes.is_empty();
        Ok(query)
    }
}

fn flag(value: &str) -> bool {
    matches!(value, "" | "1" | "true" | "True" | "t")
}

fn number(value: &str) -> ApiResult<i64> {
    let bad = |_| Failure::no_number(400, "ParseInt", value);
    value.parse().map_err(bad)
}

/// Decodes `%XX`. Any other text stays unchanged.
fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        let escaped = (*byte == b'%')
            .then(|| text.get(index + 1..index + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(value) => {
                out.push(value);
                index += 3;
            }
            None => {
                out.push(*byte);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_resolved_and_broken_ones_kept() {
        assert_eq!(decode("a%3Db%2Cc"), "a=b,c");
        assert_eq!(decode("100%"), "100%");
        assert_eq!(decode("%zz%e4%b8%96"), "%zz世");
    }
}
