//! `--set PATH=VALUE`: changes a field of a job before the job is checked (pure).

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use training_job::FieldErrors;

/// A field of the specification and its new value.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// As in messages: `spec.containers[0].image`.
    path: String,
    steps: Vec<Step>,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Item(usize),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Item(index) => write!(f, "[{index}]"),
        }
    }
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, value) = text.split_once('=').ok_or("must have the form PATH=VALUE")?;
        let steps = steps(path).filter(|steps| is_writable(steps));
        let steps =
            steps.ok_or("must begin with a field of the job, such as spec.runPolicy.backoffLimit=3")?;
        let value = kube_manifest::parse(value).map_err(|error| format!("the value: {}", error.problem))?;
        Ok(Self {
            path: path.to_owned(),
            steps,
            value: value.first().map_or(Value::Null, kube_manifest::Node::to_json),
        })
    }
}

/// Returns true for a field of the specification, the namespace, a label or an annotation.
fn is_writable(steps: &[Step]) -> bool {
    let is = |n: usize, key: &str| steps.get(n) == Some(&Step::Key(key.to_owned()));
    let is_map = is(1, "labels") || is(1, "annotations");
    is(0, "spec") && steps.len() > 1
        || is(0, "metadata") && (is(1, "namespace") && steps.len() == 2 || is_map && steps.len() == 3)
}

/// Returns the steps of a path such as `spec.a.list[0].labels[example.com/b]`.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(bracket) = rest.strip_prefix('[') {
            let (inside, after) = bracket.split_once(']')?;
            steps.push(match inside.parse() {
                Ok(index) => Step::Item(index),
                Err(_) => Step::Key(inside.to_owned()),
            });
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            steps.push(Step::Key(rest[..end].to_owned()));
            rest = rest[end..].strip_prefix('.').unwrap_or(&rest[end..]);
        }
    }
    Some(steps)
}

/// Sets the fields of a job.
///
/// # Errors
/// The first field that cannot be set.
pub(crate) fn apply_all(assignments: &[Assignment], job: &mut Value) -> Result<(), FieldErrors> {
    for assignment in assignments {
        assignment.apply(job).map_err(|problem| {
            let mut errors = FieldErrors::default();
            errors.push(assignment.path.as_str(), problem, "change the path of --set");
            errors
        })?;
    }
    Ok(())
}

impl Assignment {
    /// Sets the field. Objects on its path are created.
    ///
    /// # Errors
    /// A value on the path is not an object, or a list without the item. Returns the problem.
    fn apply(&self, object: &mut Value) -> Result<(), String> {
        let mut at = object;
        let mut parent = String::new();
        for step in &self.steps {
            at = match (step, at) {
                (Step::Item(index), Value::Array(items)) => {
                    let count = items.len();
                    let item = items.get_mut(*index);
                    item.ok_or_else(|| format!("has no item {index}, because {parent} has {count}"))?
                }
                (Step::Key(key), at @ (Value::Null | Value::Object(_))) => &mut at[key.as_str()],
                (Step::Item(_), _) => return Err(format!("cannot be set, because {parent} is not a list")),
                (Step::Key(_), _) => return Err(format!("cannot be set, because {parent} is not an object")),
            };
            let dot = if parent.is_empty() || matches!(step, Step::Item(_)) {
                ""
            } else {
                "."
            };
            parent = format!("{parent}{dot}{step}");
        }
        *at = self.value.clone();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(text: &str) -> Result<Value, String> {
        let mut job = json!({"spec": {"replicas": 2, "list": [{"a": 1}]}});
        text.parse::<Assignment>()?.apply(&mut job)?;
        Ok(job["spec"].take())
    }

    #[test]
    fn values_have_the_types_of_yaml() {
        for (text, expected) in [
            ("spec.replicas=4", json!({"replicas": 4, "list": [{"a": 1}]})),
            ("spec.replicas='4'", json!({"replicas": "4", "list": [{"a": 1}]})),
            (
                "spec.list[0].a=x=y",
                json!({"replicas": 2, "list": [{"a": "x=y"}]}),
            ),
            ("spec.list=[b, true]", json!({"replicas": 2, "list": ["b", true]})),
            ("spec.list=", json!({"replicas": 2, "list": null})),
            (
                "spec.new.key[a.b/c].d=1",
                json!({"replicas": 2, "list": [{"a": 1}], "new": {"key": {"a.b/c": {"d": 1}}}}),
            ),
        ] {
            assert_eq!(set(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn the_namespace_labels_and_annotations_may_be_set() {
        let mut job = json!({"metadata": {"name": "a"}});
        for text in [
            "metadata.namespace=ml",
            "metadata.labels[a.b/c]=d",
            "metadata.annotations.e='1'",
        ] {
            text.parse::<Assignment>().unwrap().apply(&mut job).unwrap();
        }
        let expected =
            json!({"name": "a", "namespace": "ml", "labels": {"a.b/c": "d"}, "annotations": {"e": "1"}});
        assert_eq!(job["metadata"], expected);
    }

    #[test]
    fn wrong_paths_are_reported() {
        for (text, expected) in [
            ("spec.replicas", "must have the form PATH=VALUE"),
            (
                "replicas=4",
                "must begin with a field of the job, such as spec.runPolicy.backoffLimit=3",
            ),
            (
                "spec=4",
                "must begin with a field of the job, such as spec.runPolicy.backoffLimit=3",
            ),
            (
                "metadata.name=a",
                "must begin with a field of the job, such as spec.runPolicy.backoffLimit=3",
            ),
            (
                "spec..a=4",
                "must begin with a field of the job, such as spec.runPolicy.backoffLimit=3",
            ),
            ("spec.list[1]=4", "has no item 1, because spec.list has 1"),
            (
                "spec.replicas.a=4",
                "cannot be set, because spec.replicas is not an object",
            ),
            (
                "spec.replicas[0]=4",
                "cannot be set, because spec.replicas is not a list",
            ),
        ] {
            assert_eq!(set(text), Err(expected.to_owned()), "{text}");
        }
    }
}
