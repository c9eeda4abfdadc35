//! The comments of a text.

use granit_parser::{Event, Parser, Placement};

use crate::node::Position;

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Where its `#` stands.
    pub at: Position,
    /// All of it, with the `#`.
    pub text: String,
    /// Whether no value and no key begins or ends before it in its line: the dash of an item may.
    pub is_alone: bool,
}

/// The comments of a text, in its order, up to the first place that is no YAML.
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
