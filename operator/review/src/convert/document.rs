//! Converts one document of a file to its new text.

use kube_manifest::{Node, SyntaxError, comments, parse};
use training_job_review::check::DocumentCheck;
use training_job_review::{Failure, write};

use super::log::Log;
use super::tree::{Ordered, child, items, scalar};
use super::versions::{self, CURRENT_VERSION};
use super::{comments as placing, exported, mpi, unknown};

/// A document of a file, with the line that begins it.
pub(super) struct Document<'t> {
    pub(super) text: &'t str,
    /// The number of lines before it in the file.
    pub(super) lines: usize,
}

/// Splits a file into its documents. Their concatenation is the file.
pub(super) fn documents(text: &str) -> Vec<Document<'_>> {
    let mut documents = vec![Document { text: "", lines: 0 }];
    let (mut begin, mut at) = (0, 0);
    for (n, line) in text.split_inclusive('\n').enumerate() {
        // No value contains such a line: YAML forbids it even within quotes.
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

/// Returns the new text of a document, or `None` if the document does not change. `check` validates the converted
/// document.
///
/// # Errors
/// The text is not valid YAML, or the result cannot be written.
pub(super) fn convert(
    document: &Document<'_>,
    log: &mut Log<'_>,
    check: &mut DocumentCheck,
) -> Result<Option<String>, Problem> {
    let read = parse(document.text).map_err(Problem::Syntax)?;
    let [source] = &read[..] else {
        return Ok(None);
    };
    let mut node = source.clone();
    objects(&mut node, "", log);
    if log.is_lossy() && !log.has_errors() {
        unknown::remove(&mut node, "", log, check);
    }
    if !log.has_errors() {
        for finding in check.errors(log.file(), &node) {
            log.rejected(finding);
        }
    }
    if !log.has_job {
        log.leave(check.embedded_jobs(log.file(), source));
    }
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
        [new] => placing::restore(&comments(document.text), source, &node, (&text, new), log),
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

/// Converts a job, or the jobs of a list.
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
        let old = versions::find(&api_version, of).filter(|version| version.is_old);
        if let Some(old) = old {
            rename(
                node,
                &api_version,
                (&kind, &format!("{}List", old.kind)),
                path,
                log,
            );
        }
        return;
    }
    path.clone_into(&mut log.prefix);
    let Some(version) = versions::find(&api_version, &kind) else {
        if versions::is_unsupported(&api_version, &kind) {
            let problem = format!("no current kind replaces {kind} of {api_version}");
            let remedy = "leave the job to its operator, or rewrite it as a current kind";
            log.error(node.at, "kind", problem, remedy);
        }
        return;
    };
    log.has_job = true;
    exported::remove(node, log);
    let keeps_version = log.choices.mpi_ssh && version.is_mpi_by_ssh();
    if keeps_version {
        return;
    }
    rename(node, &api_version, (&kind, version.kind), path, log);
    version.convert(node, log);
    if log.choices.mpi_ssh && version.kind == mpi::KIND {
        mpi::start_by_ssh(node, log);
    }
}

/// Gives an object its current API version and kind.
fn rename(node: &mut Node, api_version: &str, (kind, current): (&str, &str), path: &str, log: &mut Log<'_>) {
    path.clone_into(&mut log.prefix);
    for (key, old, new) in [
        ("apiVersion", api_version, CURRENT_VERSION),
        ("kind", kind, current),
    ] {
        if old != new
            && let Some(value) = child(node, key)
        {
            log.note(value.at, key, format!("changed from {old} to {new}"));
            value.content = scalar(new).content;
        }
    }
}

/// The reason why a document has no new text.
pub(super) enum Problem {
    /// The text is not valid YAML.
    Syntax(SyntaxError),
    /// The result cannot be written.
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
