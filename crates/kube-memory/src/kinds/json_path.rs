//! The simple JSON paths of printer columns.

use serde_json::Value;

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
enum PathStep {
    Field(String),
    /// An element; a negative index counts from the end.
    Index(i64),
    /// The elements from the first index to before the second.
    Slice(Option<i64>, Option<i64>),
    All,
    /// The elements in which the value at the path is, or with `false` is not, equal to the literal.
    Filter(JsonPath, bool, Value),
    /// The elements in which the value at the path exists.
    Exists(JsonPath),
}

/// A path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<PathStep>,
}

impl JsonPath {
    /// Parses a path. Returns `None` for a path that is not a simple one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let end = closing_bracket(inner)?;
                let inside = inner.get(..end)?.trim();
                match literal(inside) {
                    // As in the API server, a dot in a name in quotes separates two names.
                    Some(Value::String(name)) => steps.extend(Self::parse(&format!(".{name}"))?.steps),
                    _ => steps.push(bracket(inside)?),
                }
                rest = inner.get(end + 1..)?;
                continue;
            }
            let inner = rest.strip_prefix('.')?;
            let (name, length) = field_name(inner);
            match name.as_str() {
                "" if steps.is_empty() && inner.is_empty() => {}
                "" => return None,
                "*" => steps.push(PathStep::All),
                _ => steps.push(PathStep::Field(name)),
            }
            rest = inner.get(length..)?;
        }
        Some(Self { steps })
    }

    /// Returns the first value at the path.
    pub(crate) fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found.into_iter().flat_map(|value| step.apply(value)).collect();
        }
        found.first().copied()
    }
}

impl PathStep {
    fn apply<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::All => match value {
                Value::Object(members) => members.values().collect(),
                _ => items.iter().collect(),
            },
            Self::Index(index) => items.get(place(*index, items.len())).into_iter().collect(),
            Self::Slice(from, to) => {
                let from = from.map_or(0, |from| place(from, items.len()));
                let to = to
                    .map_or(items.len(), |to| place(to, items.len()))
                    .min(items.len());
                items.get(from..to).unwrap_or_default().iter().collect()
            }
            Self::Filter(path, equal, literal) => {
                let is_equal = |item: &&Value| path.first(item).map(|found| found == literal);
                items
                    .iter()
                    .filter(|item| is_equal(item) == Some(*equal))
                    .collect()
            }
            Self::Exists(path) => items.iter().filter(|item| path.first(item).is_some()).collect(),
        }
    }
}

/// Returns the place of an index that counts from the end if it is negative.
fn place(index: i64, length: usize) -> usize {
    let from_end = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    match usize::try_from(index) {
        Ok(index) => index,
        Err(_) => length.saturating_sub(from_end),
    }
}

/// Returns a field's name without escapes, and its length in the text.
fn field_name(text: &str) -> (String, usize) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '.' | '[' => return (name, at),
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => name.push(character),
        }
    }
    (name, text.len())
}

/// Returns the place of the bracket that ends a step. Brackets within quotes and filters do not count.
fn closing_bracket(text: &str) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(text: &str) -> Option<PathStep> {
    if text == "*" {
        return Some(PathStep::All);
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return parse_filter(filter);
    }
    let bound = |text: &str| match text.trim() {
        "" => Some(None),
        number => number.parse().ok().map(Some),
    };
    match text.split_once(':') {
        Some((from, to)) => Some(PathStep::Slice(bound(from)?, bound(to)?)),
        None => text.parse().ok().map(PathStep::Index),
    }
}

fn parse_filter(text: &str) -> Option<PathStep> {
    let path = |text: &str| JsonPath::parse(text.trim().strip_prefix('@')?);
    for (operator, equal) in [("==", true), ("!=", false)] {
        if let Some((left, right)) = text.split_once(operator) {
            return Some(PathStep::Filter(path(left)?, equal, literal(right.trim())?));
        }
    }
    Some(PathStep::Exists(path(text)?))
}

/// Parses a number, a truth value, or a text in single or double quotes.
fn literal(text: &str) -> Option<Value> {
    let quoted = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    match quoted {
        Some(quoted) => Some(Value::from(quoted)),
        None => serde_json::from_str(text)
            .ok()
            .filter(|value: &Value| !value.is_array()),
    }
    .filter(|value| text.starts_with(['\'', '"']) || !value.is_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_path_is_not_parsed() {
        for path in ["status", ".status..ready", ".a[", ".a[?(b)]", ".a[x]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
