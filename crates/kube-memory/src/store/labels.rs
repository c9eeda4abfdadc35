//! Label selectors: their grammar, and the server's messages for invalid texts.

use std::collections::BTreeSet;

use serde_json::Value;

use kube_schema::names;

use crate::store::object::Object;

/// One requirement of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelRequirement {
    key: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    Exists,
    Missing,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl LabelRequirement {
    pub(crate) fn matches(&self, object: &Object) -> bool {
        let label = object
            .meta("labels")
            .and_then(|labels| labels.get(&self.key))
            .and_then(Value::as_str);
        let number = || label.and_then(|label| label.parse::<i64>().ok());
        match (&self.operator, label) {
            (Operator::Exists, found) => found.is_some(),
            (Operator::Missing, found) => found.is_none(),
            (Operator::In(values), found) => found.is_some_and(|label| values.contains(label)),
            (Operator::NotIn(values), found) => found.is_none_or(|label| !values.contains(label)),
            (Operator::Above(bound), _) => number().is_some_and(|number| number > *bound),
            (Operator::Below(bound), _) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// Parses a selector.
///
/// # Errors
///
/// The server's message for the first mistake.
pub(crate) fn parse(text: &str) -> Result<Vec<LabelRequirement>, String> {
    let tokens = tokens(text);
    let mut reader = Reader {
        tokens: &tokens,
        place: 0,
    };
    let mut requirements = Vec::new();
    loop {
        match reader.peek() {
            Token::End => return Ok(requirements),
            Token::Word(_) | Token::Sign("!") => {
                let requirement = reader
                    .requirement()
                    .map_err(|why| format!("unable to parse requirement: {why}"))?;
                requirements.push(requirement);
                match reader.next() {
                    Token::End => return Ok(requirements),
                    Token::Sign(",") => {
                        if !matches!(reader.peek(), Token::Word(_) | Token::Sign("!")) {
                            let found = reader.peek().text();
                            return Err(format!("found '{found}', expected: identifier after ','"));
                        }
                    }
                    other => {
                        return Err(format!(
                            "found '{}', expected: ',' or 'end of string'",
                            other.text()
                        ));
                    }
                }
            }
            other => {
                let found = other.text();
                return Err(format!(
                    "found '{found}', expected: !, identifier, or 'end of string'"
                ));
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Sign(&'t str),
    /// Signs that are not an operator.
    Nonsense(&'t str),
    End,
}

impl Token<'_> {
    fn text(&self) -> String {
        match self {
            Self::Word(text) | Self::Sign(text) => (*text).to_owned(),
            Self::Nonsense(text) => format!("error expected: keyword found '{text}'"),
            Self::End => String::new(),
        }
    }
}

const SIGNS: [&str; 9] = [")", ",", "!", "==", "=", ">", "<", "!=", "("];

fn is_sign(letter: char) -> bool {
    matches!(letter, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_sign(first) {
            // The longest sign that starts here.
            let signs = SIGNS.iter().filter(|sign| rest.starts_with(**sign));
            let longest = signs.map(|sign| sign.len()).max();
            let length = longest.unwrap_or(1);
            let sign = rest.get(..length).unwrap_or_default();
            tokens.push(if longest.is_some() {
                Token::Sign(sign)
            } else {
                Token::Nonsense(sign)
            });
            length
        } else {
            let length = rest
                .find(|letter: char| is_sign(letter) || letter.is_whitespace())
                .unwrap_or(rest.len());
            tokens.push(Token::Word(rest.get(..length).unwrap_or_default()));
            length
        };
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    tokens
}

struct Reader<'t> {
    tokens: &'t [Token<'t>],
    place: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Token<'t> {
        self.tokens.get(self.place).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        self.place += 1;
        token
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let mut token = self.next();
        let negated = token == Token::Sign("!");
        if negated {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.text()));
        };
        let wrong = names::qualified(key);
        if !wrong.is_empty() {
            return Err(format!("<nil>: Invalid value: {key:?}: {}", wrong.join("; ")));
        }
        let key = key.to_owned();
        let alone = matches!(self.peek(), Token::End | Token::Sign(","));
        if negated || alone {
            let operator = if negated {
                Operator::Missing
            } else {
                Operator::Exists
            };
            return Ok(LabelRequirement { key, operator });
        }
        let operator = match self.next() {
            Token::Word("in") => Operator::In(checked(&key, self.values()?)?),
            Token::Word("notin") => Operator::NotIn(checked(&key, self.values()?)?),
            Token::Sign("=" | "==") => Operator::In(checked(&key, self.value()?)?),
            Token::Sign("!=") => Operator::NotIn(checked(&key, self.value()?)?),
            Token::Sign(">") => Operator::Above(bound(self.value()?)?),
            Token::Sign("<") => Operator::Below(bound(self.value()?)?),
            other => {
                let known = "in, notin, =, ==, !=, gt, lt";
                return Err(format!("found '{}', expected: {known}", other.text()));
            }
        };
        Ok(LabelRequirement { key, operator })
    }

    /// Reads the value after a comparison, which may be empty.
    fn value(&mut self) -> Result<BTreeSet<String>, String> {
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            return Ok(BTreeSet::from([String::new()]));
        }
        match self.next() {
            Token::Word(value) => Ok(BTreeSet::from([value.to_owned()])),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// Reads values in parentheses.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let open = self.next();
        if open != Token::Sign("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let mut values = BTreeSet::new();
        match self.peek() {
            Token::Sign(")") => {
                values.insert(String::new());
            }
            Token::Word(_) | Token::Sign(",") => {}
            other => {
                return Err(format!(
                    "found '{}', expected: ',', ')' or identifier",
                    other.text()
                ));
            }
        }
        // An empty value stands between two commas, and before the first or after the last comma.
        let mut empty = true;
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.insert(value.to_owned());
                    empty = false;
                    if !matches!(self.peek(), Token::Sign("," | ")")) {
                        let found = self.peek().text();
                        return Err(format!("found '{found}', expected: ',' or ')'"));
                    }
                }
                Token::Sign(",") => {
                    if empty {
                        values.insert(String::new());
                    }
                    empty = true;
                }
                Token::Sign(")") => {
                    if empty {
                        values.insert(String::new());
                    }
                    return Ok(values);
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
    }
}

fn checked(key: &str, values: BTreeSet<String>) -> Result<BTreeSet<String>, String> {
    let wrong: Vec<String> = values
        .iter()
        .enumerate()
        .filter_map(|(index, value)| {
            let why = names::label_value(value)?;
            Some(format!("values[{index}][{key}]: Invalid value: {value:?}: {why}"))
        })
        .collect();
    match wrong.as_slice() {
        [] => Ok(values),
        [only] => Err(only.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

fn bound(values: BTreeSet<String>) -> Result<i64, String> {
    let value = values.into_iter().next().unwrap_or_default();
    value.parse().map_err(|_| {
        format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
    })
}
