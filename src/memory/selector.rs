//! Label and field selectors.

use serde_json::Value;

use super::{
    kinds::{Family, Target},
    names,
    status::{Failure, Outcome},
};

/// What a list or watch asks for: objects pass when every requirement holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LabelRequirement {
    key: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    path: String,
    value: String,
    equal: bool,
}

impl Filter {
    /// Reads both selectors; empty texts select everything.
    pub(super) fn parse(labels: &str, fields: &str, target: &Target) -> Outcome<Self> {
        Ok(Self {
            labels: parse_labels(labels)?,
            fields: parse_fields(fields, target)?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn passes(&self, object: &Value) -> bool {
        self.labels.iter().all(|requirement| requirement.holds(object))
            && self.fields.iter().all(|requirement| requirement.holds(object))
    }
}

impl LabelRequirement {
    fn holds(&self, object: &Value) -> bool {
        let label = object
            .get("metadata")
            .and_then(|meta| meta.get("labels"))
            .and_then(|labels| labels.get(&self.key))
            .and_then(Value::as_str);
        match (&self.operator, label) {
            (Operator::Exists, found) => found.is_some(),
            (Operator::Missing, found) => found.is_none(),
            (Operator::In(values), Some(label)) => values.iter().any(|value| value == label),
            (Operator::In(_), None) => false,
            (Operator::NotIn(values), Some(label)) => values.iter().all(|value| value != label),
            (Operator::NotIn(_), None) => true,
        }
    }
}

impl FieldRequirement {
    fn holds(&self, object: &Value) -> bool {
        let found = self.path.split('.').try_fold(object, |value, key| value.get(key));
        let equal = match found {
            Some(Value::String(text)) => *text == self.value,
            Some(Value::Bool(flag)) => self.value == if *flag { "true" } else { "false" },
            Some(Value::Number(number)) => self.value == number.to_string(),
            _ => self.value.is_empty(),
        };
        equal == self.equal
    }
}

/// Splits at commas that stand outside parentheses.
fn requirements(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(text.get(start..index).unwrap_or_default());
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

fn parse_labels(text: &str) -> Outcome<Vec<LabelRequirement>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    requirements(text)
        .into_iter()
        .map(|part| parse_label(part.trim(), text))
        .collect()
}

fn parse_label(part: &str, whole: &str) -> Outcome<LabelRequirement> {
    let refuse = || Failure::bad_request(format!("unable to parse requirement: {part:?} in {whole:?}"));
    let (key, operator) = if let Some((key, value)) = part.split_once("!=") {
        (key.trim(), Operator::NotIn(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        (key.trim(), Operator::In(vec![value.trim().to_owned()]))
    } else if let Some((head, tail)) = part.split_once('(') {
        let values: Vec<String> = tail
            .strip_suffix(')')
            .ok_or_else(refuse)?
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        let (key, word) = head.trim().split_once(char::is_whitespace).ok_or_else(refuse)?;
        match word.trim() {
            "in" => (key, Operator::In(values)),
            "notin" => (key, Operator::NotIn(values)),
            _ => return Err(refuse()),
        }
    } else if let Some(key) = part.strip_prefix('!') {
        (key.trim(), Operator::Missing)
    } else {
        (part, Operator::Exists)
    };
    let values: &[String] = match &operator {
        Operator::In(values) | Operator::NotIn(values) => values,
        Operator::Exists | Operator::Missing => &[],
    };
    if names::qualified(key).is_some() || values.iter().any(|value| names::label_value(value).is_some()) {
        return Err(refuse());
    }
    Ok(LabelRequirement {
        key: key.to_owned(),
        operator,
    })
}

fn parse_fields(text: &str, target: &Target) -> Outcome<Vec<FieldRequirement>> {
    let mut fields = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (path, value, equal) = if let Some((path, value)) = part.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            (path, value, true)
        } else {
            return Err(Failure::bad_request(format!("invalid field selector {part:?}")));
        };
        let path = path.trim();
        if !supported(path, target) {
            return Err(Failure::bad_request(format!("field label not supported: {path}")));
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
