//! Syntax errors with plain messages.

use std::fmt;

use granit_parser::{ErrorKind, Marker, ScanError};

use crate::lines::{JSON_COMMENT, Lines};
use crate::node::{MAX_DEPTH, Position};

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
    /// Converts an error of the YAML parser, whose messages are about its internals. The cause is often in the line
    /// above the place that the parser reports.
    pub(crate) fn of(error: &ScanError, text: &str) -> Box<Self> {
        let at = position(error.marker());
        let lines = Lines::new(text, at);
        let by_lines = lines.look_alike().or_else(|| match error.kind() {
            ErrorKind::TabInIndentation
            | ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::InvalidBlockEntryWhitespace
            | ErrorKind::InvalidMappingValueWhitespace
            | ErrorKind::TabInPlainScalar => Some(lines.tab()),
            ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => Some(lines.missing_colon()),
            ErrorKind::MappingValueNotAllowed => Some(lines.unexpected_colon()),
            ErrorKind::UnexpectedCharacter { character } => Some(lines.unexpected_character(*character)),
            _ if lines.is_json_comment() => Some((at, JSON_COMMENT.to_owned(), "remove the comment")),
            _ => None,
        });
        let (at, problem, remedy) = by_lines.unwrap_or_else(|| {
            let (problem, remedy) = by_kind(error.kind());
            (at, problem, remedy)
        });
        Box::new(Self { at, problem, remedy })
    }

    /// Returns the conflict of a merge if the text has one, because its markers cause other errors.
    pub(crate) fn or_conflict(self, text: &str) -> Self {
        let mut lines = text.lines().zip(1..);
        let is_marker = |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
        match lines.find(|(line, _)| is_marker(line)) {
            Some((_, line)) => Self {
                at: Position { line, column: 1 },
                problem: "a conflict marker of a merge".to_owned(),
                remedy: "resolve the conflict and remove the markers",
            },
            None => self,
        }
    }
}

/// Returns the problem and the remedy of a class of errors.
fn by_kind(kind: &ErrorKind) -> (String, &'static str) {
    let (problem, remedy) = match kind {
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::InvalidIndentation
        | ErrorKind::InvalidFlowScalarIndent
        | ErrorKind::InvalidBlockScalarIndent => (
            "the line does not match the structure of the lines above",
            "check its indentation",
        ),
        ErrorKind::InvalidColonPlacement => (
            "unexpected ':'",
            "check for a missing bracket or quotation mark above",
        ),
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::DocumentIndicatorInQuotedScalar => (
            "the quoted text above has no closing quotation mark",
            "add it, or indent the line",
        ),
        ErrorKind::InvalidTrailingSingleQuotedScalar => (
            "unexpected text after the closing quotation mark",
            "write '' for a ' within single quotes",
        ),
        ErrorKind::InvalidTrailingDoubleQuotedScalar => (
            "unexpected text after the closing quotation mark",
            "write \\\" for a \" within double quotes",
        ),
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidLowSurrogateHexEscape
        | ErrorKind::InvalidLowSurrogate
        | ErrorKind::MissingLowSurrogate
        | ErrorKind::UnpairedLowSurrogate
        | ErrorKind::InvalidUnicodeEscape => (
            "a backslash in double quotes begins an escape, and this one is not valid",
            "use single quotes",
        ),
        ErrorKind::UnknownAnchor => (
            "the alias refers to an unknown anchor",
            "define the anchor with '&' before it",
        ),
        ErrorKind::MissingAnchorOrAliasName => (
            "a value that begins with '*' or '&' is an alias or anchor, and this one has no name",
            "put the value in quotes",
        ),
        ErrorKind::ExpectedTagBang
        | ErrorKind::UndeclaredTagHandle
        | ErrorKind::InvalidTagTerminator
        | ErrorKind::InvalidGlobalTagCharacter
        | ErrorKind::MissingTagUri
        | ErrorKind::UnclosedVerbatimTag
        | ErrorKind::InvalidTagEscape
        | ErrorKind::InvalidTagUtf8LeadingByte
        | ErrorKind::InvalidTagUtf8TrailingByte
        | ErrorKind::InvalidTagUtf8 => (
            "a value that begins with '!' is a tag, and this one is not valid",
            "put the value in quotes",
        ),
        ErrorKind::MissingDocumentEndBeforeDirective
        | ErrorKind::DuplicateVersionDirective
        | ErrorKind::UnsupportedYamlMajorVersion
        | ErrorKind::DuplicateTagDirective
        | ErrorKind::InvalidDirectiveTerminator
        | ErrorKind::InvalidDirectiveName
        | ErrorKind::MissingDirectiveName
        | ErrorKind::MissingYamlVersion
        | ErrorKind::MissingYamlVersionSeparator
        | ErrorKind::YamlVersionTooLong => (
            "a line that begins with '%' is a directive of YAML, and this one is not valid here",
            "remove the line",
        ),
        ErrorKind::ExpectedDocumentStart | ErrorKind::InvalidDocumentEnd => (
            "unexpected text after the end of the document",
            "separate documents by a line ---",
        ),
        ErrorKind::ExpectedFlowMappingSeparator => {
            ("missing ',' or '}'", "add it, or put the text in quotes")
        }
        ErrorKind::ExpectedFlowSequenceSeparator => {
            ("missing ',' or ']'", "add it, or put the text in quotes")
        }
        ErrorKind::ExpectedNodeContent => ("missing value", "add one"),
        ErrorKind::UnclosedFlowCollection { open } => {
            return (format!("'{open}' has no closing bracket"), "add it");
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            return (
                format!("'{open}' is closed by '{close}'"),
                "use brackets of one sort",
            );
        }
        ErrorKind::MisplacedFlowCollectionEnd => ("a closing bracket without its opening one", "remove it"),
        ErrorKind::UnexpectedEof
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::UnexpectedEofBlockSequence
        | ErrorKind::UnexpectedEofBlockMapping => ("the text ends within a value", "complete it"),
        ErrorKind::BlockEntryInFlowCollection
        | ErrorKind::BlockSequenceEntryNotAllowed
        | ErrorKind::PlainScalarStartsWithDashFlowIndicator => {
            ("unexpected '-'", "begin each item of a list in its own line")
        }
        ErrorKind::MappingKeyNotAllowed => ("unexpected '?'", "put the value in quotes"),
        ErrorKind::InvalidBlockScalarHeader | ErrorKind::ZeroBlockScalarIndent => (
            "unexpected text after '|' or '>'",
            "begin the text in the next line",
        ),
        ErrorKind::CommentInterceptedScalar => (
            "a comment within a text of several lines",
            "move it above the text",
        ),
        ErrorKind::CommentNotSeparated => ("missing space before '#'", "add one"),
        ErrorKind::ExpectedWhitespace | ErrorKind::FlowMappingValueAdjacentCollection => {
            ("missing space", "add one")
        }
        ErrorKind::BomInsideDocument => ("U+FEFF (a byte order mark) within the text", "remove it"),
        ErrorKind::RecursionLimitExceeded => {
            let problem = format!("values must be nested at most {MAX_DEPTH} deep");
            return (problem, "use several objects");
        }
        kind => return (without_context(&kind.to_string()).to_owned(), ""),
    };
    (problem.to_owned(), remedy)
}

pub(crate) fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// Removes the context: `while parsing a node, found …` becomes `found …`.
fn without_context(message: &str) -> &str {
    match message.strip_prefix("while ").and_then(|m| m.split_once(", ")) {
        Some((_, problem)) => problem,
        None => message,
    }
}
