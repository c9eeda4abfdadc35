//! Label and field selectors.

use serde_json::Value;

use crate::kinds::{Family, Target};
use crate::request::failure::{ApiResult, Failure};
use crate::store::{
    labels::{self, LabelRequirement},
    object::Object,
};

/// The selectors of a list or watch. An object passes if every requirement holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    path: String,
    value: String,
    equal: bool,
}

impl Filter {
    /// Parses both selectors; empty texts select all objects.
    pub(crate) fn parse(labels: &str, fields: &str, target: &Target) -> ApiResult<Self> {
        Ok(Self {
            labels: labels::parse(labels).map_err(Failure::bad_request)?,
            fields: parse_fields(fields, target)?,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.labels.iter().all(|requirement| requirement.matches(object))
            && self.fields.iter().all(|requirement| requirement.matches(object))
    }
}

impl FieldRequirement {
    fn matches(&self, object: &Object) -> bool {
        let mut keys = self.path.split('.');
        let member = keys.next().and_then(|key| object.get(key));
        let found = member.and_then(|member| keys.try_fold(member, |value, key| value.get(key)));
        let equal = match found {
            Some(Value::String(text)) => *text == self.value,
            Some(Value::Bool(flag)) => self.value == if *flag { "true" } else { "false" },
            Some(Value::Number(number)) => self.value == number.to_string(),
            _ => self.value.is_empty(),
        };
        equal == self.equal
    }
}

fn parse_fields(text: &str, target: &Target) -> ApiResult<Vec<FieldRequirement>> {
    let mut fields = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (path, value, equal) = if let Some((path, value)) = part.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            (path, value, true)
        } else {
            let why = format!("invalid selector: '{text}'; can't understand '{part}'");
            return Err(Failure::bad_request(why));
        };
        let path = path.trim();
        if !supported(path, target) {
            return Err(Failure::bad_request(unsupported(path, target)));
        }
        let path = if target.is_events_group() {
            path.replace("regarding.", "involvedObject.")
        } else {
            path.to_owned()
        };
        fields.push(FieldRequirement {
            path,
            value: value.trim().to_owned(),
            equal,
        });
    }
    Ok(fields)
}

/// Returns the message for an unsupported field. Kinds without fields of their own have another message.
fn unsupported(path: &str, target: &Target) -> String {
    if matches!(
        target.kind.family,
        Family::Plain | Family::Stored | Family::Lease | Family::Quota
    ) {
        return format!(
            "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
    }
    format!("field label not supported: {path}")
}

fn supported(path: &str, target: &Target) -> bool {
    if path == "metadata.name" || (path == "metadata.namespace" && target.kind.namespaced) {
        return true;
    }
    match target.kind.family {
        Family::Pod => matches!(
            path,
            "spec.nodeName"
                | "spec.restartPolicy"
                | "spec.schedulerName"
                | "spec.serviceAccountName"
                | "spec.hostNetwork"
                | "status.phase"
                | "status.podIP"
                | "status.nominatedNodeName"
        ),
        Family::Event => {
            matches!(
                path,
                "reason" | "type" | "reportingComponent" | "reportingController"
            ) || path.starts_with("involvedObject.")
                || path.starts_with("regarding.")
        }
        Family::Service => matches!(path, "spec.clusterIP" | "spec.type"),
        Family::Namespace => path == "status.phase",
        Family::Node => path == "spec.unschedulable",
        Family::Secret => path == "type",
        _ => false,
    }
}
