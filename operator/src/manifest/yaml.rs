//! YAML events → documents.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::Value;

use super::node::{Content, Entry, Node, Position};
use super::scalar;

/// The most values that one file may hold with its aliases written out. Nested aliases grow as a
/// power; 1,000 big jobs have a tenth of this.
const MAX_VALUES: usize = 2_000_000;

/// How deep values may lie in each other with aliases written out; the parser's own bound for a file without any.
/// What is deeper costs the square of its depth: the place of each value has a path of that length.
const MAX_DEPTH: usize = 256;

/// What is wrong with a file as YAML.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Where.
    pub(crate) at: Position,
    /// What.
    pub(crate) problem: String,
    /// What to do about it; may be empty.
    pub(crate) remedy: &'static str,
}

/// The documents of a file that are not empty, and what keeps the rest from being read.
pub(crate) fn documents(text: &str) -> (Vec<Node>, Option<Fault>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        text,
        parser: Parser::new_from_str(text),
        anchors: BTreeMap::new(),
        values: 0,
        depth: 0,
    };
    let mut documents = Vec::new();
    loop {
        match reader.document() {
            Ok(None) => return (documents, None),
            Ok(Some(node)) if matches!(node.content, Content::Scalar(Value::Null)) => {}
            Ok(Some(node)) => documents.push(node),
            Err(fault) => return (documents, Some(*fault)),
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
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

type Read<T> = Result<T, Box<Fault>>;

impl<'t> Reader<'t> {
    fn document(&mut self) -> Read<Option<Node>> {
        loop {
            let (event, span) = self.event()?;
            match event {
                Event::StreamEnd => return Ok(None),
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                event => return self.node(event, span).map(Some),
            }
        }
    }

    /// The next event that means something.
    fn event(&mut self) -> Read<(Event<'t>, Span)> {
        loop {
            match self.parser.next_event() {
                None => return Ok((Event::StreamEnd, Span::default())),
                Some(Err(error)) => return Err(syntax(&error, self.text)),
                Some(Ok((Event::Comment(..) | Event::Anchor(..), _))) => {}
                Some(Ok(next)) => return Ok(next),
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span) -> Read<Node> {
        let at = position(&span.start);
        let (content, anchor) = match event {
            Event::Alias(id) => {
                let Some(Anchored { node, size, depth }) = self.anchors.get(&id).cloned() else {
                    return fault(at, "the alias stands inside its own anchor", "");
                };
                self.count(at, size)?;
                if self.depth + depth > MAX_DEPTH {
                    return fault(
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
            Event::SequenceStart(_, anchor, _) => (self.within(Self::list)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.within(Self::map)?, anchor),
            event => return fault(at, format!("{event:?} was not expected here"), ""),
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

    fn count(&mut self, at: Position, values: usize) -> Read<()> {
        self.values = self.values.saturating_add(values);
        if self.values > MAX_VALUES {
            return fault(
                at,
                format!("the file has more than {MAX_VALUES} values"),
                "use fewer aliases, or several files",
            );
        }
        Ok(())
    }

    fn within(&mut self, read: fn(&mut Self) -> Read<Content>) -> Read<Content> {
        self.depth += 1;
        let content = read(self);
        self.depth -= 1;
        content
    }

    fn list(&mut self) -> Read<Content> {
        let mut items = Vec::new();
        loop {
            match self.event()? {
                (Event::SequenceEnd, _) => return Ok(Content::List(items)),
                (event, span) => items.push(self.node(event, span)?),
            }
        }
    }

    fn map(&mut self) -> Read<Content> {
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
                merged.extend(sources_of_merge(value)?);
                continue;
            }
            let key = key_text(&key)?;
            if let Some(line) = lines.insert(key.clone(), at.line) {
                return fault(
                    at,
                    format!("{key} is here twice, first in line {line}"),
                    "keep one",
                );
            }
            entries.push(Entry { at, key, value });
        }
        // What the mapping says itself counts, then what is merged first.
        let mut known: BTreeSet<String> = lines.into_keys().collect();
        for entry in merged {
            if known.insert(entry.key.clone()) {
                entries.push(entry);
            }
        }
        Ok(Content::Map(entries))
    }
}

fn sources_of_merge(value: Node) -> Read<Vec<Entry>> {
    let at = value.at;
    match value.content {
        Content::Map(entries) => Ok(entries),
        Content::List(items) => {
            let mut all = Vec::new();
            for item in items {
                match item.content {
                    Content::Map(entries) => all.extend(entries),
                    _ => return fault(item.at, "only a mapping can be merged", ""),
                }
            }
            Ok(all)
        }
        Content::Scalar(_) => fault(at, "only a mapping can be merged", "write << : *anchor"),
    }
}

/// JSON has no keys but strings; kubectl writes others as they look in JSON.
fn key_text(key: &Node) -> Read<String> {
    match &key.content {
        Content::Scalar(Value::String(text)) => Ok(text.clone()),
        Content::Scalar(value @ (Value::Bool(_) | Value::Number(_))) => Ok(value.to_string()),
        _ => fault(
            key.at,
            "a key must be a string",
            "put it in quotes; a value that begins with '{' as well",
        ),
    }
}

fn value(text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Position) -> Read<Value> {
    let not_json = || {
        fault(
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
        None if tag.suffix() == "binary" => fault(at, "!!binary is not supported", "write the text itself"),
        _ => Ok(text.into()),
    }
}

fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

fn fault<T>(at: Position, problem: impl Into<String>, remedy: &'static str) -> Read<T> {
    Err(Box::new(Fault {
        at,
        problem: problem.into(),
        remedy,
    }))
}

/// The parser's messages speak of its own workings; the usual mistakes get plainer words.
fn syntax(error: &ScanError, text: &str) -> Box<Fault> {
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
    Box::new(Fault { at, problem, remedy })
}

/// The first tab in the indentation of a line from `line` on.
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
        let (documents, fault) = documents(text);
        assert!(fault.is_none(), "{fault:?}");
        documents.iter().map(Node::to_json).collect()
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
        let (documents, _) = documents("# x\n\na:\n  b.c: 1\n  d:\n  - e: 2\n");
        let positions = documents[0].positions();
        let at = |path: &str| positions.get(path).map(|p| (p.line, p.column));
        assert_eq!(at("a"), Some((3, 1)));
        assert_eq!(at("a[b.c]"), Some((4, 3)));
        assert_eq!(at("a.d[0].e"), Some((6, 5)));
    }

    #[test]
    fn documents_before_a_fault_are_kept() {
        let (documents, fault) = documents("a: 1\n---\nb: 1\nb: 2\n");
        assert_eq!(documents.len(), 1);
        assert_eq!(fault.unwrap().at, Position { line: 4, column: 1 });
    }

    #[test]
    fn aliases_do_not_explode() {
        let mut text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
        for n in 1..20 {
            let alias = format!("*a{}", n - 1);
            text.push_str(&format!("a{n}: &a{n} [{}]\n", vec![alias; 10].join(", ")));
        }
        assert!(documents(&text).1.unwrap().problem.contains("values"));
    }

    #[test]
    fn aliases_do_not_nest_without_end() {
        let mut text = "a0: &a0 [1]\n".to_owned();
        for n in 1..1000 {
            text.push_str(&format!("a{n}: &a{n} [*a{}]\n", n - 1));
        }
        let (_, fault) = documents(&text);
        let fault = fault.unwrap();
        assert!(fault.problem.contains("deep"), "{fault:?}");
        assert_eq!(fault.at.line, MAX_DEPTH);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-c:?,*&<!|>{}\\[\\]'\"#%@~ \t\n-]{0,40}") {
            let (documents, _) = documents(&text);
            documents.iter().for_each(|d| drop(d.positions()));
        }
    }
}
