//! Moves the comments of a document to the same fields of its new text.

use std::collections::BTreeMap;

use kube_manifest::{Comment, Content, Node, Position};

use super::log::Log;

/// The position of a value in the original document.
struct FieldPosition {
    at: Position,
    /// True if the value has a key.
    has_key: bool,
}

/// Returns the positions of all fields and items, in the file's order. Of several that begin at one position, only
/// the outermost is kept.
fn positions(document: &Node) -> Vec<FieldPosition> {
    let mut positions = Vec::new();
    collect(document, &mut positions);
    positions.sort_by_key(|place| place.at);
    positions.dedup_by_key(|place| place.at);
    positions
}

fn collect(node: &Node, positions: &mut Vec<FieldPosition>) {
    match &node.content {
        Content::Scalar(_) => {}
        Content::List(items) => {
            for item in items {
                // A mapping in a list begins with its first key.
                let has_key = matches!(item.content, Content::Map(_));
                positions.push(FieldPosition { at: item.at, has_key });
                collect(item, positions);
            }
        }
        Content::Map(entries) => {
            for entry in entries {
                positions.push(FieldPosition {
                    at: entry.at,
                    has_key: true,
                });
                collect(&entry.value, positions);
            }
        }
    }
}

/// Maps positions of the old document to lines of the new text. `new` is the document parsed from that text.
fn lines(old: &Node, new: &Node) -> BTreeMap<Position, usize> {
    let mut lines = BTreeMap::new();
    pair(old, new, &mut lines);
    lines
}

fn pair(old: &Node, new: &Node, lines: &mut BTreeMap<Position, usize>) {
    match (&old.content, &new.content) {
        (Content::List(old), Content::List(new)) => {
            for (old, new) in old.iter().zip(new) {
                // The target of an alias occurs several times. Its comment stays with the first.
                lines.entry(old.at).or_insert(new.at.line);
                pair(old, new, lines);
            }
        }
        (Content::Map(old), Content::Map(new)) => {
            for (old, new) in old.iter().zip(new) {
                lines.entry(old.at).or_insert(new.at.line);
                pair(&old.value, &new.value, lines);
            }
        }
        _ => {}
    }
}

/// Returns the new text with the comments of the old one.
///
/// `source` is the original document. `old` is the converted document, with the positions of `source`. `new` is the
/// document parsed from `text`. A comment whose field was removed is reported.
pub(super) fn restore(
    comments: &[Comment],
    source: &Node,
    old: &Node,
    (text, new): (&str, &Node),
    log: &mut Log<'_>,
) -> String {
    let positions = positions(source);
    let lines = lines(old, new);
    let mut above: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut behind: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut last = Vec::new();
    for comment in comments {
        let line = comment.at.line;
        let next = || positions.iter().find(|place| place.at.line > line);
        let field = if comment.is_alone {
            next()
        } else {
            let of_line = || positions.iter().filter(|place| place.at.line == line);
            let before = || positions.iter().rev().find(|place| place.at.line < line);
            let with_key = of_line().find(|place| place.has_key);
            with_key.or_else(|| of_line().next()).or_else(before)
        };
        match field {
            None => last.push(&*comment.text),
            Some(place) => match lines.get(&place.at) {
                Some(line) if comment.is_alone => above.entry(*line).or_default().push(&comment.text),
                Some(line) => behind.entry(*line).or_default().push(&comment.text),
                None => {
                    let lost = format!("the comment was removed with its field: {}", comment.text);
                    log.note(comment.at, "", lost);
                }
            },
        }
    }
    let mut out = String::new();
    for (n, line) in (1..).zip(text.lines()) {
        let indent = &line[..line.len() - line.trim_start_matches(' ').len()];
        for comment in above.remove(&n).into_iter().flatten() {
            out += &format!("{indent}{comment}\n");
        }
        out += line;
        for comment in behind.remove(&n).into_iter().flatten() {
            out += &format!("  {comment}");
        }
        out.push('\n');
    }
    for comment in last {
        out += &format!("{comment}\n");
    }
    out
}
