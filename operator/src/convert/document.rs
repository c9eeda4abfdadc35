//! One document of a file: what it is, and its new text.

use kube_manifest::{Node, SyntaxError, comments, parse};

use crate::exit::Failure;
use crate::write;

use super::log::Log;
use super::tree::{Ordered, child, items, scalar, take};
use super::{comments as placing, listed, mapped};

/// A document of a file, with the line that begins it.
pub(super) struct Document<'t> {
    pub(super) text: &'t str,
    /// The lines of the file before it.
    pub(super) lines: usize,
}

/// The documents of a file; written one behind the other they are the file.
pub(super) fn documents(text: &str) -> Vec<Document<'_>> {
    let mut documents = vec![Document { text: "", lines: 0 }];
    let (mut begin, mut at) = (0, 0);
    for (n, line) in text.split_inclusive('\n').enumerate() {
        // In no value a line begins so, unless it is in quotes, where YAML forbids it.
        let rest = line.strip_prefix("---");
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace)) && at > 0 {
            begin = at;
            documents.push(Document { text: "", lines: n });
        }
        at += line.len();
        if let Some(last) = documents.last_mut() {
            last.text = &text[begin..at];
        }
    }
    documents
}

/// What is done with objects of a kind and version.
enum Old {
    /// `v1alpha1` and the ancestors.
    Listed(&'static listed::Listed, Today),
    /// An MXJob of `v1`, or, if it says so, of a version before.
    Mapped(bool),
}

/// A kind of today, of `kubeflow.org/v1`.
type Today = &'static str;

const VERSION: &str = "kubeflow.org/v1";

fn old(api_version: &str, kind: &str) -> Option<Old> {
    Some(match (api_version, kind) {
        ("kubeflow.org/v1alpha1", "MXJob") => Old::Listed(&listed::MXJOB_ALPHA, "MXJob"),
        ("mxnet.mlkube.io/v1beta1", "MxJob") => Old::Listed(&listed::MX_JOB, "MXJob"),
        ("mlkube.io/v1beta1", "TfJob") => Old::Listed(&listed::TF_JOB, "TFJob"),
        ("kubeflow.org/v1alpha2" | "kubeflow.org/v1beta1", "MXJob") => Old::Mapped(true),
        (VERSION, "MXJob") => Old::Mapped(false),
        _ => return None,
    })
}

/// Whether there was such a kind and version, before today's.
pub(crate) fn is_old(api_version: &str, kind: &str) -> bool {
    api_version != VERSION && old(api_version, kind).is_some()
}

/// The new text of a document, or nothing if it stays as it is.
///
/// # Errors
/// The text is no YAML, or it cannot be written.
pub(super) fn convert(document: &Document<'_>, log: &mut Log<'_>) -> Result<Option<String>, Problem> {
    let read = parse(document.text).map_err(Problem::Syntax)?;
    let [source] = &read[..] else {
        return Ok(None);
    };
    let mut node = source.clone();
    objects(&mut node, "", log);
    if log.findings.is_empty() || log.has_errors() {
        return Ok(None);
    }
    let is_json = document.text.trim_start().starts_with('{');
    if is_json {
        return Ok(Some(write::json(&Ordered(&node)).map_err(Problem::output)?));
    }
    let text = write::yaml(&Ordered(&node)).map_err(Problem::output)?;
    let again = parse(&text).map_err(Problem::Syntax)?;
    let text = match &again[..] {
        [new] => placing::place(&comments(document.text), source, &node, (&text, new), log),
        _ => text,
    };
    let begin = if document.text.starts_with("---") {
        "---\n"
    } else {
        ""
    };
    let text = format!("{begin}{text}");
    Ok(Some(match document.text.contains("\r\n") {
        true => text.replace('\n', "\r\n"),
        false => text,
    }))
}

/// Converts a job, or those of a list.
fn objects(node: &mut Node, path: &str, log: &mut Log<'_>) {
    let text = |key: &str| node.text(key).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if let Some(of) = kind.strip_suffix("List") {
        let Some(all) = child(node, "items").and_then(items) else {
            return;
        };
        for (n, item) in all.iter_mut().enumerate() {
            objects(item, &format!("{path}items[{n}]."), log);
        }
        let today = old(&api_version, of).map(|old| old.kind());
        if let Some(today) = today.filter(|_| is_old(&api_version, of)) {
            rename(node, &api_version, (&kind, &format!("{today}List")), path, log);
        }
        return;
    }
    let Some(old) = old(&api_version, &kind) else {
        return;
    };
    path.clone_into(&mut log.prefix);
    let before = log.findings.len();
    rename(node, &api_version, (&kind, old.kind()), path, log);
    match old {
        Old::Listed(listed, _) => listed::convert(node, listed, log),
        Old::Mapped(is_old) => mapped::convert(node, is_old, log),
    }
    if log.findings.len() > before
        && let Some(status) = take(node, "status")
    {
        log.note(status.at, "status", "it is left out: the operator writes it");
    }
}

impl Old {
    fn kind(&self) -> Today {
        match self {
            Self::Listed(_, kind) => kind,
            Self::Mapped(_) => "MXJob",
        }
    }
}

/// Gives an object the version and kind of today.
fn rename(node: &mut Node, api_version: &str, (kind, today): (&str, &str), path: &str, log: &mut Log<'_>) {
    path.clone_into(&mut log.prefix);
    for (key, old, new) in [("apiVersion", api_version, VERSION), ("kind", kind, today)] {
        if old != new
            && let Some(value) = child(node, key)
        {
            log.note(value.at, key, format!("{old} is {new} now"));
            value.content = scalar(new).content;
        }
    }
}

/// Why a document has no new text.
pub(super) enum Problem {
    /// It is no YAML.
    Syntax(SyntaxError),
    /// It cannot be written.
    Output(Failure),
}

impl Problem {
    fn output(error: impl std::fmt::Display) -> Self {
        Self::Output(Failure::new("output", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_its_documents() {
        for (text, lines) in [
            ("", &[0][..]),
            ("a: 1", &[0]),
            ("---\na: 1\n---\nb: 2\n", &[0, 2]),
            ("# head\n---\na: |\n  ---\n--- # tail\nb: 2", &[0, 1, 4]),
            ("a: ----\n---b: 1\n", &[0]),
            ("a: 1\r\n---\r\nb: 1\r\n", &[0, 1]),
        ] {
            let all = documents(text);
            assert_eq!(all.iter().map(|d| d.text).collect::<String>(), text);
            assert_eq!(all.iter().map(|d| d.lines).collect::<Vec<_>>(), lines, "{text}");
        }
    }
}
