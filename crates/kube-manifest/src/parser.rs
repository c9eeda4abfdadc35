//! Text → documents, by way of the events of a YAML parser.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::Value;

use crate::node::{Content, Entry, Node, Position};
use crate::scalar;

/// The most values that one file may hold, its aliases written out. Nested aliases grow exponentially; a file with 1,000
/// big jobs has a tenth of this.
pub const MAX_VALUES: usize = 2_000_000;

/// How deep values may be nested, aliases written out. The YAML parser has the same bound for a file without aliases.
/// [`Node::positions`] costs the square of the depth, because each value has a path of that length.
pub const MAX_DEPTH: usize = 256;

/// Why a text is no manifest.
///
/// It is displayed as `line:column: problem; remedy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub at: Position,
    /// What is wrong.
    pub problem: String,
    /// What to do about it; may be empty.
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

/// The documents of a text that are not empty.
///
/// ```
/// let error = kube_manifest::parse("spec: 1\nspec: 2\n").unwrap_err();
/// assert_eq!(error.to_string(), "2:1: spec is here twice, first in line 1; keep one");
/// ```
///
/// # Errors
/// The first place that is no YAML, or that JSON cannot hold.
pub fn parse(text: &str) -> Result<Vec<Node>, SyntaxError> {
    match parse_until_error(text) {
        (documents, None) => Ok(documents),
        (_, Some(error)) => Err(error),
    }
}

/// The documents of a text that are not empty, up to the first error; and that error.
pub fn parse_until_error(text: &str) -> (Vec<Node>, Option<SyntaxError>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = DocumentParser {
        text,
        events: Parser::new_from_str(text),
        anchors: BTreeMap::new(),
        values: 0,
        depth: 0,
    };
    let mut documents = Vec::new();
    loop {
        match parser.document() {
            Ok(None) => return (documents, None),
            Ok(Some(node)) if matches!(node.content, Content::Scalar(Value::Null)) => {}
            Ok(Some(node)) => documents.push(node),
            Err(error) => return (documents, Some(*error)),
        }
    }
}

struct DocumentParser<'t> {
    text: &'t str,
    events: Parser<'t, StrInput<'t>>,
    /// By the parser's numbers; a name that is used twice has two.
    anchors: BTreeMap<usize, Anchored>,
    values: usize,
    /// How many lists and mappings are open.
    depth: usize,
}

/// What an alias stands for.
#[derive(Clone)]
struct Anchored {
    node: Rc<Node>,
    size: usize,
    depth: usize,
}

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

    /// The next event that is no comment.
    fn event(&mut self) -> Parsed<(Event<'t>, Span)> {
        loop {
            match self.events.next_event() {
                None => return Ok((Event::StreamEnd, Span::default())),
                Some(Err(error)) => return Err(syntax_error(&error, self.text)),
                Some(Ok((Event::Comment(..) | Event::Anchor(..), _))) => {}
                Some(Ok(next)) => return Ok(next),
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span) -> Parsed<Node> {
        let at = position(&span.start);
        let (content, anchor) = match event {
            Event::Alias(id) => {
                let Some(Anchored { node, size, depth }) = self.anchors.get(&id).cloned() else {
                    return error(at, "the alias stands inside its own anchor", "");
                };
                self.count(at, size)?;
                if self.depth + depth > MAX_DEPTH {
                    return error(
                        at,
                        format!("the aliases lie more than {MAX_DEPTH} deep in each other"),
                        "write out what they stand for",
                    );
                }
                return Ok(Node::clone(&node));
            }
            Event::Scalar(text, style, anchor, tag) => {
                (Content::Scalar(value(&text, style, tag.as_deref(), at)?), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.nested(Self::list)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.nested(Self::map)?, anchor),
            event => return error(at, format!("{event:?} was not expected here"), ""),
        };
        self.count(at, 1)?;
        let node = Node { at, content };
        if anchor > 0 {
            let (size, depth) = (node.size(), node.depth());
            let node = Rc::new(node.clone());
            self.anchors.insert(anchor, Anchored { node, size, depth });
        }
        Ok(node)
    }

    fn count(&mut self, at: Position, values: usize) -> Parsed<()> {
        self.values = self.values.saturating_add(values);
        if self.values > MAX_VALUES {
            return error(
                at,
                format!("the file has more than {MAX_VALUES} values"),
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
                (event, span) => items.push(self.node(event, span)?),
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
            let key = self.node(event, span)?;
            let (event, span) = self.event()?;
            let value = self.node(event, span)?;
            if merge {
                merged.extend(merged_entries(value)?);
                continue;
            }
            let key = key_text(&key)?;
            if let Some(line) = lines.insert(key.clone(), at.line) {
                return error(
                    at,
                    format!("{key} is here twice, first in line {line}"),
                    "keep one",
                );
            }
            entries.push(Entry { at, key, value });
        }
        // The mapping's own keys win, then those of what is merged first.
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
                    _ => return error(item.at, "only a mapping can be merged", ""),
                }
            }
            Ok(all)
        }
        Content::Scalar(_) => error(at, "only a mapping can be merged", "write << : *anchor"),
    }
}

/// JSON has no keys but strings; kubectl writes other keys as they look in JSON.
fn key_text(key: &Node) -> Parsed<String> {
    match &key.content {
        Content::Scalar(Value::String(text)) => Ok(text.clone()),
        Content::Scalar(value @ (Value::Bool(_) | Value::Number(_))) => Ok(value.to_string()),
        _ => error(
            key.at,
            "a key must be a string",
            "put it in quotes; a value that begins with '{' as well",
        ),
    }
}

fn value(text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Position) -> Parsed<Value> {
    let not_json = || {
        error(
            at,
            format!("{text} is no number that JSON can hold"),
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

fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

fn error<T>(at: Position, problem: impl Into<String>, remedy: &'static str) -> Parsed<T> {
    Err(Box::new(SyntaxError {
        at,
        problem: problem.into(),
        remedy,
    }))
}

/// The YAML parser's messages are about its own internals; the usual mistakes get plainer words.
fn syntax_error(error: &ScanError, text: &str) -> Box<SyntaxError> {
    let mut at = position(error.marker());
    let (problem, remedy) = match error.kind() {
        ErrorKind::TabInIndentation
        | ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => {
            at = indenting_tab(text, at.line).unwrap_or(at);
            ("there is a tab in the indentation".to_owned(), "use spaces")
        }
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (
            "this is no key: there is no ':' behind it".to_owned(),
            "add one, or indent the line as part of the value above it",
        ),
        ErrorKind::MappingValueNotAllowed => (
            "there is a second ':' where a value should be".to_owned(),
            "put the value in quotes, or check the indentation",
        ),
        ErrorKind::ExpectedBlockMappingKey | ErrorKind::InvalidIndentation => (
            "the line does not fit the lines above it".to_owned(),
            "check its indentation",
        ),
        ErrorKind::InvalidColonPlacement => (
            "a ':' does not fit here".to_owned(),
            "check for a missing bracket or quotation mark above",
        ),
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => (
            "the quoted text above does not end".to_owned(),
            "add the quotation mark, or indent the line",
        ),
        ErrorKind::UnknownAnchor => (
            "the alias has no anchor above it".to_owned(),
            "define it with '&' first",
        ),
        kind => (without_context(&kind.to_string()).to_owned(), ""),
    };
    Box::new(SyntaxError { at, problem, remedy })
}

/// The first tab in the indentation of `line` or of a line below it.
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

/// `while parsing a node, found …` → `found …`
fn without_context(message: &str) -> &str {
    match message.strip_prefix("while ").and_then(|m| m.split_once(", ")) {
        Some((_, problem)) => problem,
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Vec<Value> {
        parse(text).unwrap().iter().map(Node::to_json).collect()
    }

    #[test]
    fn documents_anchors_and_merges_are_read() {
        let text = "\u{feff}# head\n---\na: &a {x: 1, z: [2, 0644]}\nb: {<<: *a, x: 3}\n---\n---\n{\n\t\"on\": on,\n\t5: '5'\n}\n...\n";
        let a = json!({"x": 1, "z": [2, 420]});
        assert_eq!(
            read(text),
            [
                json!({"a": a, "b": {"x": 3, "z": [2, 420]}}),
                json!({"on": true, "5": "5"})
            ]
        );
        let text = "a: &a {x: 1}\nb: &b {x: 2, w: 2}\nc: {<<: [*a, *b], z: 3}\n";
        assert_eq!(read(text)[0]["c"], json!({"x": 1, "w": 2, "z": 3}));
        assert_eq!(
            read("a: !!str 5\nb: !!int '5'\nc: !mine yes\n"),
            [json!({"a": "5", "b": 5, "c": "yes"})]
        );
    }

    #[test]
    fn every_field_knows_its_place() {
        let (documents, _) = parse_until_error("# x\n\na:\n  b.c: 1\n  d:\n  - e: 2\n");
        let positions = documents[0].positions();
        let at = |path: &str| positions.get(path).map(|p| (p.line, p.column));
        assert_eq!(at("a"), Some((3, 1)));
        assert_eq!(at("a[b.c]"), Some((4, 3)));
        assert_eq!(at("a.d[0].e"), Some((6, 5)));
    }

    #[test]
    fn documents_before_an_error_are_kept() {
        let (documents, error) = parse_until_error("a: 1\n---\nb: 1\nb: 2\n");
        assert_eq!(documents.len(), 1);
        assert_eq!(error.unwrap().at, Position { line: 4, column: 1 });
    }

    #[test]
    fn aliases_do_not_explode() {
        let mut text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
        for n in 1..20 {
            let alias = format!("*a{}", n - 1);
            text.push_str(&format!("a{n}: &a{n} [{}]\n", vec![alias; 10].join(", ")));
        }
        assert!(parse(&text).unwrap_err().problem.contains("values"));
    }

    #[test]
    fn aliases_do_not_nest_without_end() {
        let mut text = "a0: &a0 [1]\n".to_owned();
        for n in 1..1000 {
            text.push_str(&format!("a{n}: &a{n} [*a{}]\n", n - 1));
        }
        let error = parse(&text).unwrap_err();
        assert!(error.problem.contains("deep"), "{error:?}");
        assert_eq!(error.at.line, MAX_DEPTH);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-c:?,*&<!|>{}\\[\\]'\"#%@~ \t\n-]{0,40}") {
            let (documents, _) = parse_until_error(&text);
            documents.iter().for_each(|d| drop(d.positions()));
        }
    }
}
