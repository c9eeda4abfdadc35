//! Differences between two texts, line by line.

use std::fmt::Write as _;

use anstyle::AnsiColor;
use similar::TextDiff;

/// Returns the unified diff of two texts: hunks of changed lines with three lines of context. Returns an empty string
/// if the texts are equal.
///
/// Uses `similar`, which finds the shortest edit script in nearly linear time. A table of longest common subsequences
/// would need a gigabyte for two jobs of a thousand replicas.
pub(crate) fn unified(old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let diff = TextDiff::from_lines(old, new);
    diff.unified_diff().missing_newline_hint(false).to_string()
}

/// Returns a diff with terminal styles.
pub(crate) fn styled(diff: &str) -> String {
    let mut text = String::with_capacity(diff.len());
    for line in diff.lines() {
        let color = match line.as_bytes().first() {
            Some(b'+') => Some(AnsiColor::Green),
            Some(b'-') => Some(AnsiColor::Red),
            Some(b'@') => Some(AnsiColor::Cyan),
            _ => None,
        };
        // Writing to a string cannot fail.
        let _ = match color.map(AnsiColor::on_default) {
            Some(style) => writeln!(text, "{style}{line}{style:#}"),
            None => writeln!(text, "{line}"),
        };
    }
    text
}
