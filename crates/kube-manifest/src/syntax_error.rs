//! Syntax errors with plain messages.

use std::fmt;

use granit_parser::{ErrorKind, Marker, ScanError};

use crate::node::Position;

/// A syntax error in a manifest.
///
/// It is displayed as `line:column: problem; remedy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The place of the error.
    pub at: Position,
    /// The problem.
    pub problem: String,
    /// The remedy; may be empty.
    pub remedy: &'static str,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.at.line, self.at.column, self.problem)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for SyntaxError {}

impl SyntaxError {
    /// Converts an error of the YAML parser. Common mistakes get plainer messages, because the parser's messages are
    /// about its internals.
    pub(crate) fn of(error: &ScanError, text: &str) -> Box<Self> {
        let mut at = position(error.marker());
        let (problem, remedy) = match error.kind() {
            ErrorKind::TabInIndentation
            | ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInPlainScalar => {
                at = indenting_tab(text, at.line).unwrap_or(at);
                ("a tab in the indentation".to_owned(), "use spaces")
            }
            ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (
                "missing ':' after a key".to_owned(),
                "add one, or indent the line as part of the value above it",
            ),
            ErrorKind::MappingValueNotAllowed => (
                "unexpected second ':' in the line".to_owned(),
                "put the value in quotes, or check the indentation",
            ),
            ErrorKind::ExpectedBlockMappingKey | ErrorKind::InvalidIndentation => (
                "the line does not match the structure of the lines above".to_owned(),
                "check its indentation",
            ),
            ErrorKind::InvalidColonPlacement => (
                "unexpected ':'".to_owned(),
                "check for a missing bracket or quotation mark above",
            ),
            ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => (
                "the quoted text above has no closing quotation mark".to_owned(),
                "add it, or indent the line",
            ),
            ErrorKind::UnknownAnchor => (
                "the alias refers to an unknown anchor".to_owned(),
                "define the anchor with '&' before it",
            ),
            kind => (without_context(&kind.to_string()).to_owned(), ""),
        };
        Box::new(Self { at, problem, remedy })
    }
}

pub(crate) fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// Returns the place of the first tab in the indentation of `line` or of a line below it.
fn indenting_tab(text: &str, line: usize) -> Option<Position> {
    let lines = text.lines().enumerate().skip(line.saturating_sub(1));
    lines
        .filter_map(|(n, text)| {
            let column = text.find(|c| c != ' ')?;
            text[column..].starts_with('\t').then_some(Position {
                line: n + 1,
                column: column + 1,
            })
        })
        .next()
}

/// Removes the context: `while parsing a node, found …` becomes `found …`.
fn without_context(message: &str) -> &str {
    match message.strip_prefix("while ").and_then(|m| m.split_once(", ")) {
        Some((_, problem)) => problem,
        None => message,
    }
}
