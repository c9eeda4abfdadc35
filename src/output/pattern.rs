//! Patterns of users for lines that show progress.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};

use super::forms::Numbers;
use crate::api::MAX_PATTERN_BYTES;

/// The maximum size of a compiled pattern, in bytes. It bounds the time of a match as well, which is linear in the line.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// A pattern that compiles and has a named group.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    has_step: bool,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for Pattern {}

/// The problem of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is longer than [`MAX_PATTERN_BYTES`].
    #[error("must be at most {MAX_PATTERN_BYTES} bytes (has {0})")]
    TooLong(usize),
    /// It cannot be parsed, or could not be matched in linear time.
    #[error("must be a regular expression: {0}")]
    Syntax(String),
    /// It has no named group.
    #[error("must have a named group")]
    NoGroup,
}

impl PatternError {
    /// Returns the remedy.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::TooLong(_) => "match only the part of the line that has the numbers",
            Self::Syntax(_) => {
                "use the syntax of RE2, which has no look-around and no backreferences, because their time can grow \
                 exponentially"
            }
            Self::NoGroup => r"name the number of the step, as in step (?P<step>\d+)",
        }
    }
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// It is too long, does not compile, or has no named group.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLong(text.len()));
        }
        let regex = RegexBuilder::new(text).size_limit(MAX_COMPILED_BYTES).build();
        let regex = regex.map_err(|error| PatternError::Syntax(explained(&error.to_string())))?;
        let mut names = regex.capture_names().flatten().peekable();
        if names.peek().is_none() {
            return Err(PatternError::NoGroup);
        }
        let has_step = names.any(|name| name == "step");
        Ok(Self { regex, has_step })
    }

    /// Returns true if the pattern has the group `step`, so that only a change of the step is progress.
    pub fn has_step(&self) -> bool {
        self.has_step
    }

    /// Returns the numbers of a line, and those of other names, if the line matches and has a step. A loss of `nan` is left out.
    pub(super) fn read(&self, line: &str) -> Option<(Numbers, BTreeMap<String, f64>)> {
        let found = self.regex.captures(line)?;
        let mut values = BTreeMap::new();
        for name in self.regex.capture_names().flatten() {
            let value = found
                .name(name)
                .and_then(|text| text.as_str().trim().parse::<f64>().ok());
            if let Some(value) = value.filter(|value| value.is_finite()) {
                values.insert(name.to_owned(), value);
            }
        }
        let numbers = Numbers {
            step: values.remove("step"),
            total: values.remove("total"),
            loss: values.remove("loss"),
        };
        (!self.has_step || numbers.step.is_some()).then_some((numbers, values))
    }
}

/// Returns the problem and its place from the text of an error, which draws the pattern with a mark below.
fn explained(text: &str) -> String {
    let problem = text.lines().last().unwrap_or_default();
    let problem = problem.strip_prefix("error: ").unwrap_or(problem);
    let is_mark = |line: &&str| !line.trim().is_empty() && line.trim().chars().all(|c| c == '^');
    match text.lines().find(is_mark).and_then(|line| line.find('^')) {
        // The drawing is indented by four columns.
        Some(column) => format!("{problem} at character {}", column.saturating_sub(3)),
        None => problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_groups_are_numbers() {
        let pattern =
            Pattern::new(r"it (?P<step>\d+) of (?P<total>\d+)( l=(?<loss>\S+))?( t=(?P<t>\S+))?").unwrap();
        let (numbers, values) = pattern.read("x it 3 of 10 l=0.5 t=7").unwrap();
        assert_eq!(
            (numbers.step, numbers.total, numbers.loss),
            (Some(3.0), Some(10.0), Some(0.5))
        );
        assert_eq!(values, [("t".to_owned(), 7.0)].into());
        assert!(pattern.read("it 3 of 10").is_some(), "a group may be missing");
        assert!(pattern.read("it x of 10").is_none());
        let (numbers, _) = pattern.read("it 3 of 10 l=nan").unwrap();
        assert_eq!((numbers.step, numbers.loss), (Some(3.0), None));
    }

    #[test]
    fn a_pattern_that_cannot_be_used_has_a_problem_with_its_place() {
        for (text, problem) in [
            (
                r"step (?P<step>\d+",
                "must be a regular expression: unclosed group at character 6",
            ),
            (
                r"(?P<step>\d+)(?=x)",
                "must be a regular expression: look-around, including look-ahead and look-behind, is not supported at \
                 character 14",
            ),
            (
                r"(?P<step>\d+)\1",
                "must be a regular expression: backreferences are not supported at character 14",
            ),
            (r"step (\d+)", "must have a named group"),
        ] {
            let error = Pattern::new(text).unwrap_err();
            assert_eq!(error.to_string(), problem, "{text}");
        }
        let large = Pattern::new(r"(?P<step>\d{1000}){1000}").unwrap_err();
        assert!(matches!(large, PatternError::Syntax(_)), "{large}");
        let long = "x".repeat(MAX_PATTERN_BYTES + 1);
        assert_eq!(
            Pattern::new(&long),
            Err(PatternError::TooLong(MAX_PATTERN_BYTES + 1))
        );
    }
}
