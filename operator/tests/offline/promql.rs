//! The names in a query of Prometheus. Prometheus itself checks the syntax: `make test-alerts`.

use std::collections::BTreeSet;

/// A metric in a query, with the labels and the values of its matchers.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Selector {
    pub(crate) metric: String,
    pub(crate) matchers: Vec<(String, String)>,
}

/// The names in a query.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) selectors: BTreeSet<Selector>,
    /// The labels by which series are grouped or joined.
    pub(crate) grouping: BTreeSet<String>,
}

const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

const OPERATORS: [&str; 5] = ["and", "or", "unless", "offset", "bool"];

/// Returns the words, texts and signs of a query, without its durations and numbers.
fn tokens(query: &str) -> Vec<&str> {
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
        if first != '[' && !first.is_ascii_digit() {
            found.push(&rest[..end]);
        }
        rest = rest[end..].trim_start();
    }
    found
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Returns the names in a query.
pub(crate) fn names(query: &str) -> Names {
    let mut names = Names::default();
    let tokens = tokens(query);
    let mut rest = &tokens[..];
    while let Some((word, after)) = rest.split_first() {
        let next = after.first().copied().unwrap_or_default();
        let end = match next {
            "{" => "}",
            "(" if GROUPING.contains(word) => ")",
            _ => next,
        };
        let length = after.iter().position(|token| *token == end).unwrap_or_default();
        let (inside, after) = after.split_at(length);
        rest = after;
        let words = inside
            .iter()
            .filter(|token| is_word(token))
            .map(|word| (*word).to_owned());
        if GROUPING.contains(word) {
            names.grouping.extend(words);
        // An aggregation comes before or after its labels. A word before a parenthesis is a function.
        } else if is_word(word) && !OPERATORS.contains(word) && !GROUPING.contains(&next) && next != "(" {
            let texts = inside.iter().filter(|token| token.starts_with('"'));
            let texts = texts.map(|text| text.trim_matches('"').to_owned());
            names.selectors.insert(Selector {
                metric: (*word).to_owned(),
                matchers: words.zip(texts).collect(),
            });
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
    let matchers: Vec<_> = matchers
        .iter()
        .map(|(label, value)| (&**label, &**value))
        .collect();
    assert_eq!(matchers, [("code", "5..|429"), ("ns", "x")]);
}
