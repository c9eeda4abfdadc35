//! Reads and checks the manifests that a command names. Collects the valid jobs, and the findings of all documents.

pub mod assignment;
mod embedded;
mod file;
mod found;
mod job;
mod local;
mod wording;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use assignment::{Assignment, apply_all};
use kube_manifest::{Content, Finding, Node, Position, Severity, sources};
use serde_json::Value;
use training_job::offline;
use training_job::{FieldError, FieldErrors, Settings, nearest};

use crate::kinds::{Kind, Kinds, Unserved};
use crate::kustomization::Kustomizations;
use crate::report;

pub use job::Job;

/// The findings and the valid jobs of a command's file arguments.
#[derive(Debug)]
pub struct Checked {
    /// Errors, warnings and notes, in the files' order.
    pub findings: Vec<Finding>,
    /// The valid jobs, in the files' order.
    pub jobs: Vec<Job>,
    /// The number of valid jobs within other objects. Only `validate` checks them.
    pub(crate) embedded_jobs: usize,
    /// The ConfigMaps and Secrets, if the jobs are to run on this machine.
    pub config: Vec<Value>,
    /// True if a file could not be read.
    pub(crate) is_unreadable: bool,
}

impl Checked {
    pub(crate) fn has_warnings(&self) -> bool {
        self.findings.iter().any(|f| f.severity == Severity::Warning)
    }

    /// Returns true if there are no errors.
    pub fn is_valid(&self) -> bool {
        self.findings.iter().all(|f| f.severity != Severity::Error)
    }
}

/// Reads and checks the files that `arguments` name. An argument without a job is an error.
pub(crate) fn check(kinds: &Kinds, arguments: &[PathBuf]) -> Checked {
    Checker::new(kinds).arguments(arguments, |_| false)
}

/// Reads and checks the files of jobs that are to run on this machine. Returns the ConfigMaps and Secrets of the files as
/// well. Errors are also jobs that could not start here. Before the check, `set` changes each job.
pub fn check_for_this_machine(kinds: &Kinds, arguments: &[PathBuf], set: &[Assignment]) -> Checked {
    let mut checker = Checker::new(kinds);
    checker.is_for_this_machine = true;
    checker.assignments = set.to_vec();
    checker.arguments(arguments, |_| false)
}

/// Checks the text of a job that is to run on this machine.
pub fn check_text_for_this_machine(kinds: &Kinds, text: String) -> Checked {
    let mut checker = Checker::new(kinds);
    checker.is_for_this_machine = true;
    checker.source(kube_manifest::Source::from_bytes(
        "--kind".to_owned(),
        0,
        Ok(text.into_bytes()),
    ));
    checker.checked
}

/// Reads and checks the files that `arguments` name, except files in directories whose names are excluded. Jobs within
/// other objects are checked as well.
pub(crate) fn check_all_except(
    kinds: &Kinds,
    arguments: &[PathBuf],
    is_excluded: impl Fn(&str) -> bool,
) -> Checked {
    let mut checker = Checker::new(kinds);
    checker.checks_embedded = true;
    checker.arguments(arguments, is_excluded)
}

/// Reads and checks files as `check` does, and prints the errors and notes. Returns the jobs if all of them are valid.
pub fn valid_jobs(kinds: &Kinds, arguments: &[PathBuf]) -> Option<Vec<Job>> {
    let checked = check(kinds, arguments);
    report::print(&checked.findings);
    checked.is_valid().then_some(checked.jobs)
}

/// Checks one file whose text has already been read.
#[cfg(feature = "__fuzzing")]
pub(crate) fn check_source(kinds: &Kinds, source: kube_manifest::Source) -> Checked {
    let mut checker = Checker::new(kinds);
    checker.source(source);
    checker.checked
}

/// Checks single documents that are not yet in a file.
#[derive(Debug)]
pub struct DocumentCheck(Checker);

impl DocumentCheck {
    /// Returns a check for these kinds.
    pub fn new(kinds: &Kinds) -> Self {
        Self(Checker::new(kinds))
    }

    /// Returns the errors of the jobs in a document of this file. An error without a position gets the document's
    /// position.
    pub fn errors(&mut self, file: &str, node: &Node) -> Vec<Finding> {
        let is_object = node.text("apiVersion").is_some() && node.text("kind").is_some();
        if !is_object {
            return Vec::new();
        }
        file.clone_into(&mut self.0.file);
        self.0.document(node);
        self.0.checked.jobs.clear();
        self.0.places.clear();
        let mut errors = std::mem::take(&mut self.0.checked.findings);
        errors.retain(|finding| finding.severity == Severity::Error);
        for error in &mut errors {
            error.at = error.at.filter(|at| at.line > 0).or(Some(node.at));
        }
        errors
    }

    /// Returns a note for each job within a document of another kind.
    pub fn embedded_jobs(&mut self, file: &str, node: &Node) -> Vec<Finding> {
        file.clone_into(&mut self.0.file);
        self.0.embedded(node);
        std::mem::take(&mut self.0.checked.findings)
    }

    /// True if a text that is not valid YAML is that of a job.
    pub fn names_job(&self, text: &str) -> bool {
        found::names_job(&self.0.kinds, text)
    }
}

#[derive(Debug)]
struct Checker {
    kinds: Kinds,
    file: String,
    /// The file's path below the argument that names its directory.
    below: String,
    /// True if the file was found in a directory, so that it need not be meant for this program.
    is_found: bool,
    is_for_this_machine: bool,
    checks_embedded: bool,
    /// The files of the current argument without a job.
    skipped: usize,
    /// Changes of each job before its check.
    assignments: Vec<Assignment>,
    /// True if the argument contains a job, settings of jobs on this machine, or an error that may hide a job.
    has_job: bool,
    /// The jobs by kind, namespace and name, with their files and places.
    places: BTreeMap<[String; 3], [String; 2]>,
    kustomizations: Kustomizations,
    /// The ConfigMaps and Secrets that jobs on this machine need, with the errors if no file has them.
    references: Vec<(local::Reference, Finding)>,
    checked: Checked,
}

impl Checker {
    fn new(kinds: &Kinds) -> Self {
        Self {
            kinds: kinds.clone(),
            file: String::new(),
            below: String::new(),
            is_found: false,
            is_for_this_machine: false,
            checks_embedded: false,
            skipped: 0,
            assignments: Vec::new(),
            has_job: false,
            places: BTreeMap::new(),
            kustomizations: Kustomizations::default(),
            references: Vec::new(),
            checked: Checked {
                findings: Vec::new(),
                jobs: Vec::new(),
                embedded_jobs: 0,
                config: Vec::new(),
                is_unreadable: false,
            },
        }
    }

    fn arguments(mut self, arguments: &[PathBuf], is_excluded: impl Fn(&str) -> bool) -> Checked {
        let sources = sources(arguments).filter(|source| !source.is_found() || !is_excluded(&source.name));
        let mut sources = sources.peekable();
        let mut read = None;
        while let Some(source) = sources.next() {
            let argument = source.argument;
            if read.replace(argument) != Some(argument) {
                self.kustomizations.read(&source.siblings);
            }
            let name = arguments[argument].display().to_string();
            let below = source.name.strip_prefix(&name).filter(|_| source.is_found());
            below
                .unwrap_or_default()
                .trim_start_matches('/')
                .clone_into(&mut self.below);
            self.source(source);
            if sources.peek().is_none_or(|next| next.argument != argument) {
                self.end_of_argument(&arguments[argument]);
            }
        }
        if let Some(argument) = arguments.first()
            && self.is_for_this_machine
            && self.checked.jobs.is_empty()
            && self.checked.is_valid()
        {
            self.no_job(argument);
        }
        let Checked { findings, config, .. } = &mut self.checked;
        self.references
            .retain(|(reference, _)| !config.iter().any(|object| reference.is_to(object)));
        findings.extend(self.references.into_iter().map(|(_, finding)| finding));
        self.checked
    }

    fn document(&mut self, node: &Node) {
        if self.is_found && !found::is_object(&self.kinds, node) {
            return;
        }
        if !matches!(node.content, Content::Map(_)) {
            let problem = "must be a Kubernetes object";
            let remedy = "start the document with apiVersion and kind";
            return self.error(Some(node.at), "", problem, remedy);
        }
        let (Some(api_version), Some(kind)) = (node.text("apiVersion"), node.text("kind")) else {
            let (field, remedy) = match node.text("kind") {
                None => ("kind", "set the kind of the object".to_owned()),
                Some(kind) => {
                    let known = self.kinds.iter().find(|known| known.name() == kind);
                    let version = known.and_then(|known| known.schemas().api_versions().next());
                    let remedy = match version {
                        Some(version) => format!("set apiVersion: {version}"),
                        None => "set the API version of the object".to_owned(),
                    };
                    ("apiVersion", remedy)
                }
            };
            return self.error(Some(node.at), field, "must be a non-empty string", &remedy);
        };
        if let Some(unserved) = self.unserved(api_version, kind) {
            let Unserved { problem, remedy, .. } = unserved;
            let severity = match unserved.is_of_another_program && self.is_found {
                true => Severity::Note,
                false => Severity::Error,
            };
            let at = node.positions().get("apiVersion");
            return self.add(severity, at, "apiVersion", problem, &remedy);
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
        let is_own = !self.is_found || self.kinds.is_own_group(group);
        let named = named.filter(|k| k.name() == kind || is_own && k.name().eq_ignore_ascii_case(kind));
        // Two kinds may have names that differ only in case.
        let named = named
            .max_by_key(|k| (k.resource.group == group, k.name() == kind))
            .cloned();
        match named {
            None => match self.near(group, kind) {
                None => self.note_other_object(node, api_version, kind),
                Some(remedy) => {
                    let at = node.positions().get("kind");
                    self.error(at, "kind", format!("unknown kind {kind:?} of {group}"), &remedy);
                }
            },
            Some(known) if known.name() != kind => {
                let at = node.positions().get("kind");
                let versions: Vec<_> = known.schemas().api_versions().collect();
                self.error(
                    at,
                    "kind",
                    format!("unknown kind {kind:?}"),
                    &format!("use {} of {}", known.name(), versions.join(" or ")),
                );
            }
            Some(known) => self.job(node, api_version, known),
        }
    }

    /// Returns the remedy for an unknown kind of one of our groups whose name is near one of ours.
    fn near(&self, group: &str, kind: &str) -> Option<String> {
        let names = self.kinds.iter().map(|known| known.name());
        let near = nearest(kind, names).filter(|_| self.kinds.is_own_group(group))?;
        Some(format!("did you mean {near}?"))
    }

    /// Describes an object of a version that was served once.
    fn unserved(&self, api_version: &str, kind: &str) -> Option<Unserved> {
        let is_served = self.serves(api_version, kind);
        (self.kinds.unserved)(api_version, kind, &self.file).filter(|_| !is_served)
    }

    /// Returns true if the operator runs jobs of this kind and version.
    fn serves(&self, api_version: &str, kind: &str) -> bool {
        let mut kinds = self.kinds.iter().filter(|known| known.name() == kind);
        kinds.any(|known| {
            known
                .schemas()
                .api_versions()
                .any(|version| version == api_version)
        })
    }

    fn note_other_object(&mut self, node: &Node, api_version: &str, kind: &str) {
        if self.is_for_this_machine && api_version == "v1" && matches!(kind, "ConfigMap" | "Secret") {
            // A file of settings of the other files' jobs needs no job of its own.
            self.has_job = true;
            return self.checked.config.push(node.to_json());
        }
        if self.embedded(node) || self.is_found {
            return;
        }
        let name = node.get("metadata").and_then(|m| m.text("name"));
        let problem = format!(
            "{kind} {} of {api_version} is not a training job and is skipped",
            name.unwrap_or("without a name")
        );
        self.add(Severity::Note, Some(node.at), "", problem, "");
    }

    fn job(&mut self, node: &Node, api_version: &str, kind: Arc<Kind>) {
        let mut object = node.to_json();
        let pasted = wording::warnings(node);
        self.field_findings(Severity::Warning, node, pasted);
        if let Err(errors) = apply_all(&self.assignments, &mut object) {
            return self.field_findings(Severity::Error, node, errors);
        }
        match offline::check(&kind, &object) {
            Err(errors) => {
                let errors = self.with_fields_of_other_kinds(&kind, errors);
                if self.is_found && errors.iter().all(wording::is_of_action) {
                    return self.skip_template(node.at);
                }
                self.has_job = true;
                self.field_findings(Severity::Error, node, errors);
            }
            Ok(checked) => {
                self.has_job = true;
                let (refused, warnings): (Vec<_>, Vec<_>) =
                    checked.warnings.into_iter().partition(|warning| {
                        // The API rejects a pod without the volume of a mount, and no webhook adds the volume here.
                        self.is_for_this_machine && warning.path.contains(".volumeMounts[")
                    });
                self.field_findings(Severity::Warning, node, warnings);
                self.field_findings(Severity::Error, node, refused);
                if self.is_for_this_machine {
                    // The check of the job has reported why nothing can be rendered.
                    let objects = offline::render(&kind, &checked.object, &Settings::default());
                    let objects = objects.unwrap_or_default();
                    let errors = local::errors(&kind, &checked.object, &objects);
                    self.field_findings(Severity::Error, node, errors);
                    let references = local::references(&checked.object, &objects);
                    let errors: Vec<_> = references.iter().map(local::Reference::error).collect();
                    let errors = Finding::locate(&self.file, Severity::Error, node, errors);
                    self.references.extend(references.into_iter().zip(errors));
                }
                self.note_generated_name(node, &checked.object);
                let origin = format!("{}:{}", self.file, node.at.line);
                let text = |field: &str| checked.object["metadata"][field].as_str().unwrap_or("default");
                let job = [kind.name(), text("namespace"), text("name")].map(str::to_owned);
                let place = [self.file.clone(), origin.clone()];
                if let Some(other) = self.places.insert(job, place)
                    && self.is_duplicate(node, text("name"), &other)
                {
                    return;
                }
                self.checked.jobs.push(Job {
                    kind,
                    object: checked.object,
                    status: Value::Null,
                    version: api_version.rsplit('/').next().unwrap_or_default().to_owned(),
                    file: self.file.clone(),
                    below: self.below.clone(),
                    origin,
                });
            }
        }
    }

    /// Reports a job whose name another job has. Returns true if both are applied together, so that one of them is lost.
    fn is_duplicate(&mut self, node: &Node, name: &str, [file, origin]: &[String; 2]) -> bool {
        let at = Some(node.positions().nearest("metadata.name"));
        let files = [file.as_str(), &self.file];
        if files[0] == files[1] || self.is_for_this_machine || self.kustomizations.apply_together(files) {
            let problem = format!("duplicate job: {name} is also at {origin}");
            self.error(at, "metadata.name", problem, "keep one of them");
            return true;
        }
        if !files.iter().any(|file| self.kustomizations.stands_beside(file)) {
            let problem = format!("{name} is also the name of the job at {origin}");
            let remedy = "use another name or namespace if both are applied to one cluster";
            self.add(Severity::Warning, at, "metadata.name", problem, remedy);
        }
        false
    }

    /// Names the kind whose roles a job has, if that is another kind. The error of a job without roles follows
    /// from that one.
    fn with_fields_of_other_kinds(&self, kind: &Kind, errors: FieldErrors) -> FieldErrors {
        let own = kind.framework.roles_field;
        let other = |path: &str| {
            let field = path.strip_prefix("spec.")?;
            self.kinds
                .iter()
                .find(|other| other.framework.roles_field == field && field != own)
        };
        let is_other = errors.iter().any(|e| other(&e.path).is_some());
        let mut named = FieldErrors::default();
        for e in errors {
            match other(&e.path) {
                Some(other) => {
                    let problem = format!("is a field of {}, not of {}", other.name(), kind.name());
                    named.push(
                        e.path,
                        problem,
                        format!("set kind: {}, or rename the field to {own}", other.name()),
                    );
                }
                None if is_other && e.path == format!("spec.{own}") => {}
                None => named.push(e.path, e.problem, e.remedy),
            }
        }
        named
    }

    /// Notes the name that is used in place of a name that the API server would generate.
    fn note_generated_name(&mut self, node: &Node, object: &Value) {
        let own = node.get("metadata").and_then(|metadata| metadata.text("name"));
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if own.is_none_or(str::is_empty) {
            let path = "metadata.generateName";
            let problem = format!("the API server generates the end of the name, so {name} is used instead");
            self.add(
                Severity::Note,
                Some(node.positions().nearest(path)),
                path,
                problem,
                "",
            );
        }
    }

    fn field_findings(
        &mut self,
        severity: Severity,
        node: &Node,
        errors: impl IntoIterator<Item = FieldError>,
    ) {
        let errors: Vec<FieldError> = errors.into_iter().collect();
        let has_value = |e: &FieldError| e.problem.ends_with(')');
        let positions = errors.iter().any(has_value).then(|| node.positions());
        let errors = errors.into_iter().map(|mut e| {
            let written = positions
                .as_ref()
                .and_then(|positions| positions.written(&e.path));
            if let Some((problem, value)) = written.and(e.problem.rsplit_once(" (is "))
                && let Some(written) = written
            {
                e.problem = match value {
                    "true)" | "false)" => format!("{problem} (YAML reads {written} as the boolean {value}"),
                    _ => format!("{problem} (is {written})"),
                };
            }
            let e = match severity {
                Severity::Error => wording::with_cause(e),
                _ => e,
            };
            (e.path, e.problem, e.remedy)
        });
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
