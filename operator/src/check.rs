//! Reads and checks the manifests that a command names: the jobs that can be run, and what is wrong with the others.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use kube_manifest::{Content, Finding, Node, Position, Severity, Source, parse_until_error, sources};
use serde_json::Value;
use training_job::{FieldErrors, Settings};

use crate::convert;
use crate::exit::Failure;
use crate::kinds::{Kind, kinds};

/// What a command's file arguments hold.
pub(crate) struct Checked {
    /// Errors, warnings and notes, in the files' order.
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
    /// The object, of its kind's stored version, without null fields.
    pub(crate) object: Value,
    /// The API version under which it is written, without the group.
    pub(crate) version: String,
    /// Its file, as the command's arguments name it.
    pub(crate) file: String,
    /// Its file and the line in which it begins.
    pub(crate) origin: String,
}

impl Job {
    /// Its services and pods by an operator with these settings, in the order in which it makes them.
    pub(crate) fn render(&self, settings: &Settings) -> Result<Vec<Value>, Failure> {
        self.kind
            .render(&self.object, settings)
            .map_err(|errors| Failure::new(&self.origin, errors))
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

/// Checks one file that has been read already.
#[cfg(feature = "__fuzzing")]
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
                let (documents, error) = parse_until_error(&text);
                for document in &documents {
                    self.document(document);
                }
                if let Some(error) = error {
                    self.error(Some(error.at), "", error.problem, error.remedy);
                }
            }
        }
    }

    fn end_of_argument(&mut self, argument: &Path) {
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
        if convert::is_old(api_version, kind) && !self.serves(api_version, kind) {
            let problem = format!("{kind} of {api_version} is not served any more");
            let remedy = format!("convert it by: training-operator convert {}", self.file);
            return self.error(node.positions().get("apiVersion"), "apiVersion", problem, &remedy);
        }
        let list_of = kind.strip_suffix("List");
        let is_list = list_of.is_some_and(|of| of.is_empty() || self.kinds.iter().any(|k| k.name() == of));
        if is_list && let Some(items) = node.get("items") {
            if let Content::List(items) = &items.content {
                items.iter().for_each(|item| self.document(item));
            }
            return;
        }
        let group = api_version.split('/').next().unwrap_or_default();
        let named = self.kinds.iter();
        let named = named.filter(|k| k.name().eq_ignore_ascii_case(kind));
        // Two kinds may be spelt alike but for case.
        let named = named
            .max_by_key(|k| (k.resource.group == group, k.name() == kind))
            .cloned();
        match named {
            None => self.note_other_object(node, api_version, kind),
            Some(known) if known.name() != kind => {
                let at = node.positions().get("kind");
                let versions: Vec<_> = known.schemas.api_versions().collect();
                self.error(
                    at,
                    "kind",
                    format!("{kind:?} is not known"),
                    &format!("use {} of {}", known.name(), versions.join(" or ")),
                );
            }
            Some(known) => self.job(node, api_version, known),
        }
    }

    /// Whether jobs of this kind and version are run.
    fn serves(&self, api_version: &str, kind: &str) -> bool {
        let mut kinds = self.kinds.iter().filter(|known| known.name() == kind);
        kinds.any(|known| known.schemas.api_versions().any(|version| version == api_version))
    }

    fn note_other_object(&mut self, node: &Node, api_version: &str, kind: &str) {
        let name = node.get("metadata").and_then(|m| m.text("name"));
        let problem = format!(
            "{kind} {} of {api_version} is not a training job: passed by",
            name.unwrap_or("without a name")
        );
        self.add(Severity::Note, Some(node.at), "", problem, "");
    }

    fn job(&mut self, node: &Node, api_version: &str, kind: Rc<Kind>) {
        self.has_job = true;
        match kind.check(&node.to_json()) {
            Err(errors) => self.field_findings(Severity::Error, node, errors),
            Ok(checked) => {
                self.field_findings(Severity::Warning, node, checked.warnings);
                self.checked.jobs.push(Job {
                    kind,
                    object: checked.object,
                    version: api_version.rsplit('/').next().unwrap_or_default().to_owned(),
                    file: self.file.clone(),
                    origin: format!("{}:{}", self.file, node.at.line),
                });
            }
        }
    }

    fn field_findings(&mut self, severity: Severity, node: &Node, errors: FieldErrors) {
        let errors = errors.into_iter().map(|e| (e.path, e.problem, e.remedy));
        let findings = Finding::locate(&self.file, severity, node, errors);
        self.checked.findings.extend(findings);
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
