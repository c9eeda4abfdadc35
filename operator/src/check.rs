//! Manifests → jobs that can be run, and everything that is wrong with the others.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use serde_json::Value;
use training_job::FieldError;
use training_job::validate::mend::{is_echo, mend};
use training_job::validate::schema;

use crate::exit::Failure;
use crate::finding::{Finding, Severity};
use crate::kinds::{Kind, Refusal, kinds};
use crate::manifest::{Content, Node, Position, Source, documents, sources};

/// What a command's file arguments hold.
pub(crate) struct Checked {
    /// What is to be said, in the files' order.
    pub(crate) findings: Vec<Finding>,
    /// The jobs that can be run, in the files' order.
    pub(crate) jobs: Vec<Job>,
    /// Whether a file could not be read at all.
    pub(crate) is_unreadable: bool,
}

/// A job that can be run.
pub(crate) struct Job {
    /// Its kind.
    pub(crate) kind: Rc<Kind>,
    /// The object, of its kind's stored version, nulls dropped.
    pub(crate) object: Value,
    /// Its file, as the command's arguments name it.
    pub(crate) file: String,
    /// Its file and the line in which it begins.
    pub(crate) origin: String,
}

impl Job {
    /// All that it gets, in the order in which the operator makes it.
    pub(crate) fn render(&self) -> Result<Vec<Value>, Failure> {
        (self.kind.render)(&self.object).map_err(|refusal| Failure::new(&self.origin, format!("{refusal:?}")))
    }
}

impl Checked {
    /// Whether every job can be run.
    pub(crate) fn is_good(&self) -> bool {
        self.findings.iter().all(|f| f.severity != Severity::Error)
    }
}

/// Reads and checks all that `arguments` name. An argument without any job is an error.
pub(crate) fn check(arguments: &[PathBuf]) -> Checked {
    let mut checker = Checker::new(kinds().into_iter().map(Rc::new).collect());
    let mut sources = sources(arguments).into_iter().peekable();
    while let Some(source) = sources.next() {
        let argument = source.argument;
        checker.source(source);
        if sources.peek().is_none_or(|next| next.argument != argument) {
            checker.end_of_argument(&arguments[argument]);
        }
    }
    checker.checked
}

/// Checks one file that is there already.
pub(crate) fn check_source(kinds: &[Rc<Kind>], source: Source) -> Checked {
    let mut checker = Checker::new(kinds.to_vec());
    checker.source(source);
    checker.checked
}

struct Checker {
    kinds: Vec<Rc<Kind>>,
    file: String,
    /// Whether the argument has held a job, or an error that may hide one.
    has_job: bool,
    checked: Checked,
}

impl Checker {
    fn new(kinds: Vec<Rc<Kind>>) -> Self {
        Self {
            kinds,
            file: String::new(),
            has_job: false,
            checked: Checked {
                findings: Vec::new(),
                jobs: Vec::new(),
                is_unreadable: false,
            },
        }
    }

    fn source(&mut self, source: Source) {
        self.file = source.name;
        match source.text {
            Err(problem) => {
                self.checked.is_unreadable = true;
                self.error(None, "", problem, "");
            }
            Ok(text) => {
                let (documents, fault) = documents(&text);
                for document in &documents {
                    self.document(document);
                }
                if let Some(fault) = fault {
                    self.error(Some(fault.at), "", fault.problem, fault.remedy);
                }
            }
        }
    }

    fn end_of_argument(&mut self, argument: &std::path::Path) {
        if !std::mem::take(&mut self.has_job) {
            let names: Vec<_> = self.kinds.iter().map(|k| k.name().to_owned()).collect();
            if argument.is_dir() {
                self.file = argument.display().to_string();
            }
            let remedy = format!("give it a job of kind {}", names.join(", "));
            self.error(None, "", "there is no training job in it", &remedy);
        }
    }

    fn document(&mut self, node: &Node) {
        if !matches!(node.content, Content::Map(_)) {
            let problem = "this is no Kubernetes object";
            return self.error(
                Some(node.at),
                "",
                problem,
                "begin the document with apiVersion and kind",
            );
        }
        let (Some(api_version), Some(kind)) = (node.text("apiVersion"), node.text("kind")) else {
            let missing = if node.text("kind").is_none() {
                "kind"
            } else {
                "apiVersion"
            };
            return self.error(
                Some(node.at),
                missing,
                "it is missing, or no string",
                "say what the object is",
            );
        };
        let list_of = kind.strip_suffix("List");
        let is_list = list_of.is_some_and(|of| of.is_empty() || self.kinds.iter().any(|k| k.name() == of));
        if is_list && let Some(items) = node.get("items") {
            if let Content::List(items) = &items.content {
                items.iter().for_each(|item| self.document(item));
            }
            return;
        }
        let named = self
            .kinds
            .iter()
            .find(|k| k.name().eq_ignore_ascii_case(kind))
            .cloned();
        match named {
            None => self.pass_by(node, api_version, kind),
            Some(known) if known.name() != kind => {
                let at = node.positions().get("kind").copied();
                self.error(
                    at,
                    "kind",
                    format!("{kind:?} is not known"),
                    &format!("use {} of {}", known.name(), known.api_versions().join(" or ")),
                );
            }
            Some(known) => self.job(node, api_version, known),
        }
    }

    fn pass_by(&mut self, node: &Node, api_version: &str, kind: &str) {
        let name = node.get("metadata").and_then(|m| m.text("name"));
        let problem = format!(
            "{kind} {} of {api_version} is not a training job: passed by",
            name.unwrap_or("without a name")
        );
        self.add(Severity::Note, Some(node.at), "", problem, "");
    }

    fn job(&mut self, node: &Node, api_version: &str, kind: Rc<Kind>) {
        self.has_job = true;
        let Some(schema) = kind.schema(api_version) else {
            let at = node.positions().get("apiVersion").copied();
            return self.error(
                at,
                "apiVersion",
                format!("{api_version:?} has no {}", kind.name()),
                &format!("use one of {}", kind.api_versions().join(", ")),
            );
        };
        let mut object = node.to_json();
        let by_schema = schema::check(schema, &object);
        let removed = mend(schema, &mut object);
        if let (Some(stored), Some(members)) = (kind.api_versions().first(), object.as_object_mut()) {
            members.insert("apiVersion".to_owned(), stored.as_str().into());
            // What they lack is then an error of a field.
            for part in ["metadata", "spec"] {
                members
                    .entry(part)
                    .or_insert_with(|| Value::Object(Default::default()));
            }
        }
        let by_operator = (kind.check)(&object);
        if by_schema.is_empty()
            && let Ok(warnings) = by_operator
        {
            self.field_findings(Severity::Warning, node, warnings.into_iter());
            let origin = format!("{}:{}", self.file, node.at.line);
            return self.checked.jobs.push(Job {
                kind,
                object,
                file: self.file.clone(),
                origin,
            });
        }
        // Of two errors in one field the operator's says more than the schema's.
        let mut errors: BTreeMap<String, FieldError> =
            by_schema.into_iter().map(|e| (e.path.clone(), e)).collect();
        match by_operator {
            Ok(_) => {}
            Err(Refusal::Invalid(more)) => {
                let more = more.into_iter().filter(|e| !is_echo(&e.path, &removed));
                errors.extend(more.map(|e| (e.path.clone(), e)));
            }
            Err(Refusal::Unreadable(problem)) => self.error(Some(node.at), "", problem, ""),
        }
        self.field_findings(Severity::Error, node, errors.into_values());
    }

    fn field_findings(&mut self, severity: Severity, node: &Node, errors: impl Iterator<Item = FieldError>) {
        let positions = node.positions();
        let mut placed: Vec<_> = errors
            .map(|error| (place(&positions, &error.path), error))
            .collect();
        placed.sort_by_key(|(at, _)| *at);
        for (at, error) in placed {
            self.add(severity, at, &error.path, error.problem, &error.remedy);
        }
    }

    fn error(&mut self, at: Option<Position>, path: &str, problem: impl Into<String>, remedy: &str) {
        self.add(Severity::Error, at, path, problem.into(), remedy);
    }

    fn add(&mut self, severity: Severity, at: Option<Position>, path: &str, problem: String, remedy: &str) {
        self.has_job |= severity == Severity::Error;
        self.checked.findings.push(Finding {
            severity,
            file: self.file.clone(),
            at,
            path: path.to_owned(),
            problem,
            remedy: remedy.to_owned(),
        });
    }
}

/// The place of a field, or of the nearest field around it that is there.
fn place(positions: &BTreeMap<String, Position>, path: &str) -> Option<Position> {
    let mut path = path;
    loop {
        if let Some(at) = positions.get(path) {
            return Some(*at);
        }
        path = path.rfind(['.', '[']).map_or("", |end| &path[..end]);
    }
}
