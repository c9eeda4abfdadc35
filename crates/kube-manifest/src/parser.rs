//! Converts text to documents, using the events of a YAML parser.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::Value;

use crate::lines::{JSON_COMMENT, is_json_comment};
use crate::node::{Content, Entry, MAX_DEPTH, Node, Position};
use crate::scalar;
use crate::syntax_error::{SyntaxError, position};

/// The greatest number of values in one file, its aliases expanded. Nested aliases grow exponentially; a file with
/// 1,000 big jobs has a tenth of this.
pub const MAX_VALUES: usize = 2_000_000;

/// The memory in bytes that the values of a file may take, aliases expanded, before the length of the text is added.
const BASE_BUDGET_BYTES: usize = 24 << 20;

/// The bytes of memory added to [`BASE_BUDGET_BYTES`] for each byte of the text. A manifest in flow style takes up to
/// 14.
const BUDGET_PER_BYTE: usize = 16;

/// The bytes of memory of one value with a path of usual length, without its text.
const VALUE_BYTES: usize = 96;

/// The length of a path that [`VALUE_BYTES`] covers.
const USUAL_PATH_BYTES: usize = 256;

/// Returns the non-empty documents of a text.
///
/// ```
/// let error = kube_manifest::parse("spec: 1\nspec: 2\n").unwrap_err();
/// assert_eq!(error.to_string(), "2:1: duplicate key spec, first in line 1; keep one");
/// ```
///
/// # Errors
/// The first syntax error, or the first value that JSON cannot represent.
pub fn parse(text: &str) -> Result<Vec<Node>, SyntaxError> {
    match parse_until_error(text) {
        (documents, None) => Ok(documents),
        (_, Some(error)) => Err(error),
    }
}

/// Returns the non-empty documents of a text up to the first error, and that error.
pub fn parse_until_error(text: &str) -> (Vec<Node>, Option<SyntaxError>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = DocumentParser {
        text,
        events: Parser::new_from_str(text),
        anchors: BTreeMap::new(),
        values: 0,
        bytes: 0,
        budget: BASE_BUDGET_BYTES.saturating_add(text.len().saturating_mul(BUDGET_PER_BYTE)),
        depth: 0,
        path: 0,
    };
    let mut documents = Vec::new();
    loop {
        match parser.document() {
            Ok(None) => return (documents, None),
            Ok(Some(node)) if matches!(node.content, Content::Scalar(Value::Null)) => {}
            Ok(Some(node)) => documents.push(node),
            Err(error) => return (documents, Some(error.or_conflict(text))),
        }
    }
}

struct DocumentParser<'t> {
    text: &'t str,
    events: Parser<'t, StrInput<'t>>,
    /// By the YAML parser's numbers; a name that is defined twice has two numbers.
    anchors: BTreeMap<usize, Anchored>,
    values: usize,
    /// The bytes of memory of the values so far, with a path for each.
    bytes: usize,
    /// The upper bound of `bytes`.
    budget: usize,
    /// The number of open lists and mappings.
    depth: usize,
    /// The length of the path to the current value.
    path: usize,
}

/// The value of an anchor, for its aliases.
#[derive(Clone)]
struct Anchored {
    node: Rc<Node>,
    weight: Weight,
}

/// The size of a value, including the values in it.
#[derive(Clone, Copy, Default)]
struct Weight {
    /// The number of values.
    values: usize,
    /// The depth of nesting; 0 for a scalar.
    depth: usize,
    /// The bytes of memory, with a path for each value that begins here.
    bytes: usize,
}

impl Weight {
    /// Returns the weight of a value whose path has this length.
    fn of(node: &Node, path: usize) -> Self {
        let mut weight = Self {
            values: 1,
            depth: 0,
            bytes: value_bytes(path),
        };
        match &node.content {
            Content::Scalar(value) => weight.bytes += value.as_str().map_or(0, str::len),
            Content::List(items) => {
                weight.depth = 1;
                items
                    .iter()
                    .for_each(|item| weight.add(Self::of(item, path + ITEM_PATH_BYTES)));
            }
            Content::Map(entries) => {
                weight.depth = 1;
                for entry in entries {
                    weight.bytes += entry.key.len();
                    weight.add(Self::of(&entry.value, path + entry.key.len() + 1));
                }
            }
        }
        weight
    }

    fn add(&mut self, part: Self) {
        self.values += part.values;
        self.bytes += part.bytes;
        self.depth = self.depth.max(part.depth + 1);
    }
}

/// Returns the bytes of memory of a value whose path has this length.
fn value_bytes(path: usize) -> usize {
    VALUE_BYTES + path.saturating_sub(USUAL_PATH_BYTES)
}

/// The length that a list item adds to a path.
const ITEM_PATH_BYTES: usize = 4;

type Parsed<T> = Result<T, Box<SyntaxError>>;

impl<'t> DocumentParser<'t> {
    fn document(&mut self) -> Parsed<Option<Node>> {
        loop {
            let (event, span) = self.event()?;
            match event {
                Event::StreamEnd => return Ok(None),
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                event => return self.node(event, span).map(Some),
            }
        }
    }

    /// Returns the next event that is not a comment.
    fn event(&mut self) -> Parsed<(Event<'t>, Span)> {
        loop {
            match self.events.next_event() {
                None => return Ok((Event::StreamEnd, Span::default())),
                Some(Err(error)) => return Err(SyntaxError::of(&error, self.text)),
                Some(Ok((Event::Comment(..) | Event::Anchor(..), _))) => {}
                Some(Ok(next)) => return Ok(next),
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span) -> Parsed<Node> {
        let at = position(&span.start);
        let mut written = None;
        let (content, anchor) = match event {
            Event::Alias(id) => {
                let Some(Anchored { node, weight }) = self.anchors.get(&id).cloned() else {
                    return error(at, "the alias is inside its own anchor", "");
                };
                self.count(at, weight.values)?;
                self.charge(
                    at,
                    weight.bytes.saturating_add(
                        weight
                            .values
                            .saturating_mul(self.path.saturating_sub(USUAL_PATH_BYTES)),
                    ),
                )?;
                if self.depth + weight.depth > MAX_DEPTH {
                    return error(
                        at,
                        format!("aliases must be nested at most {MAX_DEPTH} deep"),
                        "replace them by their values",
                    );
                }
                return Ok(Node::clone(&node));
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.charge(at, text.len())?;
                let value = value(&text, style, tag.as_deref(), at)?;
                written = scalar::written(&text, &value);
                (Content::Scalar(value), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.nested(Self::list)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.nested(Self::map)?, anchor),
            event => return error(at, format!("unexpected {event:?}"), ""),
        };
        self.count(at, 1)?;
        self.charge(at, value_bytes(self.path))?;
        let node = Node { at, content, written };
        if anchor > 0 {
            let weight = Weight::of(&node, 0);
            // The anchor keeps a copy.
            self.charge(at, weight.bytes)?;
            let node = Rc::new(node.clone());
            self.anchors.insert(anchor, Anchored { node, weight });
        }
        Ok(node)
    }

    /// Takes memory from the budget. Returns an error if the budget is exceeded.
    fn charge(&mut self, at: Position, bytes: usize) -> Parsed<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.budget {
            let mib = self.budget >> 20;
            if self.anchors.is_empty() {
                let problem = format!("the file must take at most {mib} MiB of memory");
                return error(at, problem, "use shorter keys, or several files");
            }
            return error(
                at,
                format!("the file with its aliases expanded must take at most {mib} MiB of memory"),
                "use fewer aliases, shorter keys, or several files",
            );
        }
        Ok(())
    }

    /// Reads a value whose path is `length` longer than its parent's.
    fn below(&mut self, length: usize, event: Event<'t>, span: Span) -> Parsed<Node> {
        self.path += length;
        let node = self.node(event, span);
        self.path -= length;
        node
    }

    fn count(&mut self, at: Position, values: usize) -> Parsed<()> {
        self.values = self.values.saturating_add(values);
        if self.values > MAX_VALUES {
            return error(
                at,
                format!("the file must have at most {MAX_VALUES} values"),
                "use fewer aliases, or several files",
            );
        }
        Ok(())
    }

    fn nested(&mut self, read: fn(&mut Self) -> Parsed<Content>) -> Parsed<Content> {
        self.depth += 1;
        let content = read(self);
        self.depth -= 1;
        content
    }

    fn list(&mut self) -> Parsed<Content> {
        let mut items = Vec::new();
        loop {
            match self.event()? {
                (Event::SequenceEnd, _) => return Ok(Content::List(items)),
                (event, span) => items.push(self.below(ITEM_PATH_BYTES, event, span)?),
            }
        }
    }

    fn map(&mut self) -> Parsed<Content> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut lines = BTreeMap::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.event()?;
            if event == Event::MappingEnd {
                break;
            }
            let at = position(&span.start);
            let merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            // Only a key within braces has several lines: a comment of JSON, and the key after it.
            let has_lines = span.start.line() != span.end.line();
            let key = self.node(event, span)?;
            let length = match &key.content {
                Content::Scalar(Value::String(text)) if !merge => text.len() + 1,
                _ => 0,
            };
            let (event, span) = self.event()?;
            let value = self.below(length, event, span)?;
            if merge {
                merged.extend(merged_entries(value)?);
                continue;
            }
            let key = key_text(&key)?;
            if has_lines && is_json_comment(&key) {
                return error(at, JSON_COMMENT, "remove the comment");
            }
            if let Some(line) = lines.insert(key.clone(), at.line) {
                return error(
                    at,
                    format!("duplicate key {key}, first in line {line}"),
                    "keep one",
                );
            }
            entries.push(Entry { at, key, value });
        }
        // The mapping's own keys win, then those of the mapping that is merged first.
        let mut known: BTreeSet<String> = lines.into_keys().collect();
        for entry in merged {
            if known.insert(entry.key.clone()) {
                entries.push(entry);
            }
        }
        Ok(Content::Map(entries))
    }
}

fn merged_entries(value: Node) -> Parsed<Vec<Entry>> {
    let at = value.at;
    match value.content {
        Content::Map(entries) => Ok(entries),
        Content::List(items) => {
            let mut all = Vec::new();
            for item in items {
                match item.content {
                    Content::Map(entries) => all.extend(entries),
                    _ => return error(item.at, "the value of '<<' must be mappings", ""),
                }
            }
            Ok(all)
        }
        Content::Scalar(_) => error(at, "the value of '<<' must be a mapping", "write '<<: *anchor'"),
    }
}

/// Returns a key's text. JSON keys must be strings; kubectl writes booleans and numbers as they look in JSON.
fn key_text(key: &Node) -> Parsed<String> {
    match &key.content {
        Content::Scalar(Value::String(text)) => Ok(text.clone()),
        Content::Scalar(value @ (Value::Bool(_) | Value::Number(_))) => Ok(value.to_string()),
        _ => error(
            key.at,
            "a key must be a string",
            "put it in quotes, as any value that begins with '{'",
        ),
    }
}

fn value(text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Position) -> Parsed<Value> {
    let not_json = || {
        error(
            at,
            format!("{text} cannot be represented in JSON"),
            "put it in quotes",
        )
    };
    let Some(tag) = tag else {
        return match style {
            ScalarStyle::Plain => scalar::resolve(text).map_or_else(not_json, Ok),
            _ => Ok(text.into()),
        };
    };
    match tag.core_suffix() {
        Some("int" | "float" | "bool" | "null") => scalar::resolve(text).map_or_else(not_json, Ok),
        None if tag.suffix() == "binary" => error(at, "!!binary is not supported", "write the text itself"),
        _ => Ok(text.into()),
    }
}

fn error<T>(at: Position, problem: impl Into<String>, remedy: &'static str) -> Parsed<T> {
    Err(Box::new(SyntaxError {
        at,
        problem: problem.into(),
        remedy,
    }))
}

#[cfg(test)]
mod tests;
