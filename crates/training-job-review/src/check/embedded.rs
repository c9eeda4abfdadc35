//! Jobs within other objects: an Experiment, a Workflow, an AppWrapper, a ConfigMap (pure).

use kube_manifest::{Content, Node, Severity, parse};
use kube_schema::{field, item};
use serde_json::Value;
use training_job::offline;

use super::found::{may_have_job, names_job};
use super::{Checker, wording};
use crate::kinds::{Kind, Kinds};

/// The depth of texts within texts that are searched.
const MAX_TEXTS: usize = 3;

/// A job within another object.
struct Embedded {
    /// Its path in the object.
    path: String,
    /// The job with its places in the file; those of a text are that of the text. `None` for a text that is not YAML
    /// before a program fills it in.
    job: Option<Node>,
}

impl Checker {
    /// Names the jobs within another object, and checks them for `validate`. Returns true if there are any.
    pub(super) fn embedded(&mut self, object: &Node) -> bool {
        let mut jobs = Vec::new();
        search(&self.kinds, object, "", 0, &mut jobs);
        let outer = object.text("kind").unwrap_or_default();
        for Embedded { path, job } in &jobs {
            let Some(job) = job else {
                let at = object.positions().nearest(path);
                let problem = format!("is the template of a job within this {outer}; not checked");
                self.add(Severity::Note, Some(at), path, problem, "");
                continue;
            };
            let [version, kind] = ["apiVersion", "kind"].map(|key| job.text(key).unwrap_or_default());
            let known = self.kinds.iter().find(|known| known.name() == kind).cloned();
            let known = known.filter(|_| self.checks_embedded);
            let (severity, problem) = match (self.unserved(version, kind), known) {
                (Some(unserved), _) if unserved.is_of_another_program => (Severity::Note, unserved.problem),
                (Some(unserved), _) => (Severity::Warning, unserved.problem),
                (None, known) => {
                    let article = if kind.starts_with(['M', 'X']) { "an" } else { "a" };
                    let end = match known {
                        Some(known) => self.check_embedded(path, job, &known),
                        None => ", which is left as it is",
                    };
                    (
                        Severity::Note,
                        format!("is {article} {kind} within this {outer}{end}"),
                    )
                }
            };
            self.add(severity, Some(job.at), path, problem, "");
            self.has_job |= self.checks_embedded;
        }
        !jobs.is_empty()
    }

    /// Checks a job that gets its name and the values of its placeholders from the object around it. Returns the end of
    /// the sentence about it.
    fn check_embedded(&mut self, path: &str, job: &Node, kind: &Kind) -> &'static str {
        let mut object = job.to_json();
        let metadata = &mut object["metadata"];
        if metadata["name"].is_null() && metadata["generateName"].is_null() {
            *metadata = metadata.as_object().cloned().unwrap_or_default().into();
            metadata["name"] = "embedded".into();
        }
        let errors: Vec<_> = offline::check(kind, &object)
            .err()
            .into_iter()
            .flatten()
            .collect();
        let (later, errors): (Vec<_>, Vec<_>) = errors.into_iter().partition(wording::is_of_placeholder);
        let is_valid = errors.is_empty();
        let before = self.checked.findings.len();
        self.field_findings(Severity::Error, job, errors);
        for finding in &mut self.checked.findings[before..] {
            let separator = if finding.path.starts_with('[') { "" } else { "." };
            finding.path = format!("{path}{separator}{}", finding.path);
        }
        self.checked.embedded_jobs += usize::from(is_valid);
        match (is_valid, later.is_empty()) {
            (false, _) => "",
            (true, true) => "; valid",
            (true, false) => "; valid except for its placeholders, which are not checked",
        }
    }
}

fn search(kinds: &Kinds, node: &Node, path: &str, texts: usize, found: &mut Vec<Embedded>) {
    match &node.content {
        Content::Map(_) if !path.is_empty() && is_job(kinds, node) => found.push(Embedded {
            path: path.to_owned(),
            job: Some(node.clone()),
        }),
        Content::Map(entries) => {
            // Annotations may hold a copy of the object itself.
            for entry in entries.iter().filter(|entry| entry.key != "metadata") {
                search(kinds, &entry.value, &field(path, &entry.key), texts, found);
            }
        }
        Content::List(items) => {
            for (n, node) in items.iter().enumerate() {
                search(kinds, node, &item(path, n), texts, found);
            }
        }
        Content::Scalar(Value::String(text)) if texts < MAX_TEXTS && may_have_job(kinds, text) => {
            match parse(text) {
                Ok(mut documents) => {
                    for document in &mut documents {
                        place(document, node);
                        search(kinds, document, path, texts + 1, found);
                    }
                }
                Err(_) if names_job(kinds, text) => found.push(Embedded {
                    path: path.to_owned(),
                    job: None,
                }),
                Err(_) => {}
            }
        }
        Content::Scalar(_) => {}
    }
}

/// Gives all values of a parsed text the place of the text.
fn place(node: &mut Node, text: &Node) {
    node.at = text.at;
    match &mut node.content {
        Content::Map(entries) => {
            for entry in entries {
                entry.at = text.at;
                place(&mut entry.value, text);
            }
        }
        Content::List(items) => items.iter_mut().for_each(|item| place(item, text)),
        Content::Scalar(_) => {}
    }
}

/// True for a whole job of one of the kinds, in any version. A reference to a job has no spec.
fn is_job(kinds: &Kinds, node: &Node) -> bool {
    let (Some(version), Some(kind), Some(_)) = (node.text("apiVersion"), node.text("kind"), node.get("spec"))
    else {
        return false;
    };
    let group = version.split('/').next().unwrap_or_default();
    kinds
        .iter()
        .any(|known| known.name() == kind && known.resource.group == group)
        || (kinds.unserved)(version, kind, "").is_some()
}
