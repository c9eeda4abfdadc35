//! The names in a query of Prometheus. Prometheus itself checks the syntax: `make test-alerts`.

use std::collections::BTreeSet;

/// A comparison of a label with a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Matcher {
    pub(crate) label: String,
    pub(crate) value: String,
}

/// A metric in a query, with its matchers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Selector {
    pub(crate) metric: String,
    pub(crate) matchers: Vec<Matcher>,
}

/// The names in a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) selectors: BTreeSet<Selector>,
    /// The labels by which series are grouped or joined.
    pub(crate) grouping: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

const OPERATORS: [&str; 5] = ["and", "or", "unless", "offset", "bool"];

/// Returns the tokens of a query, without its durations and numbers.
fn tokens(query: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_in_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let end = match first {
            '"' => rest[1..].find('"').expect("a closed string") + 2,
            '[' => rest.find(']').expect("a closed range") + 1,
            c if is_in_word(c) => rest.find(|c| !is_in_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(end);
        match first {
            '"' => found.push(Token::Text(token.trim_matches('"').to_owned())),
            c if c.is_ascii_alphabetic() || c == '_' => found.push(Token::Word(token.to_owned())),
            '[' | '0'..='9' => {}
            sign => found.push(Token::Sign(sign)),
        }
        rest = after.trim_start();
    }
    found
}

/// Returns the tokens up to a closing sign, and removes them and the sign.
fn take_until(tokens: &mut &[Token], end: char) -> Vec<Token> {
    let all = *tokens;
    let length = all.iter().position(|token| *token == Token::Sign(end));
    let length = length.expect("a closed parenthesis");
    *tokens = &all[length + 1..];
    all[1..length].to_vec()
}

fn words(tokens: &[Token]) -> impl Iterator<Item = &String> {
    tokens.iter().filter_map(|token| match token {
        Token::Word(word) => Some(word),
        _ => None,
    })
}

fn texts(tokens: &[Token]) -> impl Iterator<Item = &String> {
    tokens.iter().filter_map(|token| match token {
        Token::Text(text) => Some(text),
        _ => None,
    })
}

/// Returns the names in a query.
pub(crate) fn names(query: &str) -> Names {
    let mut names = Names::default();
    let tokens = tokens(query);
    let mut rest = &tokens[..];
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        let Token::Word(word) = token else { continue };
        let is_grouped = matches!(rest.first(), Some(Token::Word(next)) if GROUPING.contains(&&**next));
        match rest.first() {
            _ if OPERATORS.contains(&&**word) => {}
            Some(Token::Sign('(')) if GROUPING.contains(&&**word) => {
                let labels = take_until(&mut rest, ')');
                names.grouping.extend(words(&labels).cloned());
            }
            // A function, or an aggregation before or after its labels.
            Some(Token::Sign('(')) => {}
            _ if is_grouped => {}
            next => {
                let inside = match next {
                    Some(Token::Sign('{')) => take_until(&mut rest, '}'),
                    _ => Vec::new(),
                };
                let matchers = words(&inside).zip(texts(&inside));
                names.selectors.insert(Selector {
                    metric: word.clone(),
                    matchers: matchers
                        .map(|(label, value)| Matcher {
                            label: label.clone(),
                            value: value.clone(),
                        })
                        .collect(),
                });
            }
        }
    }
    names
}

#[test]
fn a_query_has_its_metrics_matchers_and_grouping_labels() {
    let query = r#"histogram_quantile(0.9, sum by (le, verb) (rate(a_bucket{code=~"5..|429", ns!="x"}[5m])))
        > 1e3 and on (job) time() - b offset 5m unless sum(c) without (d) == 1"#;
    let found = names(query);
    let metrics: Vec<_> = found.selectors.iter().map(|s| &*s.metric).collect();
    assert_eq!(metrics, ["a_bucket", "b", "c"]);
    let grouping: Vec<_> = found.grouping.iter().collect();
    assert_eq!(grouping, ["d", "job", "le", "verb"]);
    let matchers = &found.selectors.first().unwrap().matchers;
    let matchers: Vec<_> = matchers.iter().map(|m| (&*m.label, &*m.value)).collect();
    assert_eq!(matchers, [("code", "5..|429"), ("ns", "x")]);
}
