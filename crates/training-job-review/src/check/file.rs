//! Reads one file of an argument: decides whether it is meant for this program, and reports why it is skipped.

use std::path::Path;

use kube_manifest::{MAX_FILE_BYTES, Position, Severity, Source, SyntaxError, parse_until_error};

use super::{Checker, found, wording};
use crate::help::help;

impl Checker {
    pub(super) fn source(&mut self, source: Source) {
        self.is_found = source.is_found();
        self.file = source.name;
        let text = match source.text {
            Ok(text) => text,
            Err(no_text) if self.is_found && no_text.is_too_large => {
                let problem = format!("has more than {} MiB and is skipped", MAX_FILE_BYTES >> 20);
                return self.add(Severity::Note, None, "", problem, "");
            }
            Err(no_text) => {
                let may_be_job = |text: &String| found::names_job(&self.kinds, text);
                if self.is_found && no_text.lossy.as_ref().is_some_and(|text| !may_be_job(text)) {
                    self.skipped += 1;
                    return;
                }
                self.checked.is_unreadable = true;
                return self.error(None, "", no_text.problem, "");
            }
        };
        if Path::new(&self.file).extension().is_some_and(|end| end == "py") {
            let remedy = "give a manifest of a job whose command runs the program";
            return self.error(None, "", "is a Python program, not a manifest", remedy);
        }
        let before = (self.checked.findings.len(), self.checked.jobs.len());
        self.text(&text);
        let after = (self.checked.findings.len(), self.checked.jobs.len());
        self.skipped += usize::from(self.is_found && before == after);
    }

    fn text(&mut self, text: &str) {
        if text.trim().is_empty() {
            let (problem, remedy) = ("is empty", self.add_a_job());
            return match self.is_found {
                true => self.add(Severity::Note, None, "", problem.to_owned(), ""),
                false => self.error(None, "", problem, &remedy),
            };
        }
        let is_read = self.is_for_this_machine || !self.is_found || found::may_have_job(&self.kinds, text);
        if !is_read {
            return;
        }
        let names_job = || found::names_job(&self.kinds, text);
        if !self.is_found && names_job() {
            self.kustomizations.read_beside(&self.file);
        }
        if let Some(directory) = self.kustomizations.of_patch(&self.file) {
            if names_job() {
                let problem = "is a patch of a kustomization and is skipped".to_owned();
                let remedy = format!("check the result: {}", build(directory));
                self.add(Severity::Note, None, "", problem, &remedy);
                self.has_job |= self.checks_embedded && !self.is_found;
            }
            return;
        }
        let (documents, error) = parse_until_error(text);
        for document in &documents {
            self.document(document);
        }
        if let Some(error) = error
            && (!self.is_found || found::names_job(&self.kinds, text))
        {
            self.syntax_error(text, error);
        }
    }

    /// Handles the end of a file that is not valid YAML.
    fn syntax_error(&mut self, text: &str, error: SyntaxError) {
        let remedy = wording::render_template();
        match (found::is_of_template(text, &error), self.is_found) {
            (true, true) => self.skip_template(error.at),
            (true, false) => {
                let remedy = format!("looks like a template: {remedy}");
                self.error(Some(error.at), "", error.problem, &remedy);
            }
            (false, _) => self.error(Some(error.at), "", error.problem, error.remedy),
        }
    }

    pub(super) fn skip_template(&mut self, at: Position) {
        self.has_job = true;
        let problem = "looks like a template and is skipped".to_owned();
        self.add(Severity::Note, Some(at), "", problem, &wording::render_template());
    }

    pub(super) fn end_of_argument(&mut self, argument: &Path) {
        if !std::mem::take(&mut self.has_job) {
            self.no_job(argument);
        }
        let skipped = std::mem::take(&mut self.skipped);
        if skipped > 0 {
            self.file = argument.display().to_string();
            let (files, have, are) = match skipped {
                1 => ("file", "has", "is"),
                _ => ("files", "have", "are"),
            };
            let problem = format!("{skipped} {files} {have} no training job and {are} skipped");
            self.add(Severity::Note, None, "", problem, "");
        }
    }

    pub(super) fn no_job(&mut self, argument: &Path) {
        if self.is_found || argument.is_dir() {
            self.file = argument.display().to_string();
        }
        let others = || self.kustomizations.first_of_others(&self.file);
        let elsewhere = match self.is_found {
            true => others(),
            false => self.kustomizations.of_patch(&self.file),
        };
        let remedy = match elsewhere {
            Some(directory) => format!("check what kustomize makes: {}", build(directory)),
            None => self.add_a_job(),
        };
        // A directory may have no jobs yet, but a command that shows jobs has nothing to show.
        let severity = match self.checks_embedded && self.is_found {
            true => Severity::Warning,
            false => Severity::Error,
        };
        self.add(severity, None, "", "no training job found".to_owned(), &remedy);
    }

    fn add_a_job(&self) -> String {
        let names: Vec<_> = self.kinds.iter().map(|k| k.name().to_owned()).collect();
        format!("add a job of kind {}", names.join(", "))
    }
}

/// Returns the command that checks what a kustomization makes. kustomize cannot read a git revision.
fn build(directory: &str) -> String {
    let (place, directory) = match directory.split_once(':') {
        Some((revision, "")) => (revision, "."),
        Some((revision, directory)) => (revision, directory),
        None => ("", directory),
    };
    let command = help("kustomize build DIRECTORY | {program} validate -").replace("DIRECTORY", directory);
    match place {
        "" => command,
        revision => format!("in a git worktree of {revision}, run {command}"),
    }
}
