//! The comments of a text.

use granit_parser::{Event, Parser, Placement};

use crate::node::Position;

/// A comment of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The place of its `#`.
    pub at: Position,
    /// The whole comment, with the `#`.
    pub text: String,
    /// True if no key and no value stands before the comment in its line. The dash of a list item may stand there.
    pub is_alone: bool,
}

/// Returns the comments of a text in order, up to the first syntax error.
///
/// ```
/// let comments = kube_manifest::comments("# the job\nname: a # its name\ntext: 'a # b'\n");
/// assert_eq!(comments.len(), 2);
/// assert_eq!((comments[1].at.line, &*comments[1].text), (2, "# its name"));
/// assert!(comments[0].is_alone && !comments[1].is_alone);
/// ```
pub fn comments(text: &str) -> Vec<Comment> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser::new_from_str(text);
    let mut comments = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    while let Some(Ok((event, span))) = parser.next_event() {
        if let Event::Comment(text, placement) = event {
            let at = Position {
                line: span.start.line(),
                column: span.start.col() + 1,
            };
            let line = lines.get(at.line - 1).copied().unwrap_or_default();
            let mut before = line.chars().take(at.column - 1);
            comments.push(Comment {
                at,
                text: format!("#{text}"),
                is_alone: placement != Placement::Right || before.all(|c| matches!(c, '-' | ' ')),
            });
        }
    }
    comments
}
