//! Errors of a job by field: path, problem and remedy.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use crate::api::Word;

use super::nearest::nearest;

/// An error of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldError {
    /// The path of the field, such as `spec.runPolicy.backoffLimit` or
    /// `spec.replicaSpecs.Worker.template.spec.containers[0].image`; empty if the object as a whole is wrong.
    pub path: String,
    /// The problem with the field.
    pub problem: String,
    /// The remedy; empty if the problem implies it.
    pub remedy: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&joined(&self.problem, &self.remedy))
    }
}

/// The text of an error as a constant, for a [`Check`](super::Check) or for [`FieldErrors::push_complaint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// The problem with the field.
    pub problem: &'static str,
    /// The remedy; empty if the problem implies it.
    pub remedy: &'static str,
}

impl Complaint {
    /// Returns the message of a rule: the problem and the remedy, joined by `"; "`, or only the problem if the remedy
    /// is empty.
    pub(crate) fn message(&self) -> String {
        joined(self.problem, self.remedy)
    }
}

/// Returns the problem and the remedy as one text.
pub(super) fn joined(problem: &str, remedy: &str) -> String {
    match remedy {
        "" => problem.to_owned(),
        remedy => format!("{problem}; {remedy}"),
    }
}

/// All errors of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    /// Adds an error.
    pub fn push(&mut self, path: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) {
        self.0.push(FieldError {
            path: path.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        });
    }

    /// Adds an error with a constant text.
    pub(crate) fn push_complaint(&mut self, path: impl Into<String>, complaint: &Complaint) {
        self.push(path, complaint.problem, complaint.remedy);
    }

    /// Adds the error that `word` is not one of the `known` words for the field at `path`.
    pub fn unknown_word(&mut self, path: impl Into<String>, word: &str, known: &[&str]) {
        let remedy = match known {
            [only] => format!("use {only}, or remove it"),
            _ => one_of(word, known),
        };
        self.push(path, format!("unknown value {word:?}"), remedy);
    }

    /// Adds an error if the policy at `path` is a word that the API does not define.
    pub fn check_word<W: Word>(&mut self, path: impl Into<String>, policy: Option<&W>) {
        if let Some(unknown) = policy.and_then(W::unknown) {
            self.unknown_word(path, unknown, W::WORDS);
        }
    }

    /// Adds an error if the number at `path` is not in `range`. The text is that of the rule that the definition has
    /// for a field with `#[schemars(range(...))]`. A missing number is in every range.
    ///
    /// ```
    /// use training_job::FieldErrors;
    ///
    /// let mut errors = FieldErrors::default();
    /// errors.check_range("spec.gpus", Some(65), 1..=64);
    /// errors.check_range("spec.rounds", Some(0), 1..);
    /// errors.check_range("spec.seed", None::<i32>, 0..);
    /// assert_eq!(
    ///     errors.to_string(),
    ///     "spec.gpus: must be at most 64 (is 65)\nspec.rounds: must be at least 1 (is 0)"
    /// );
    /// ```
    pub fn check_range(
        &mut self,
        path: impl Into<String>,
        value: Option<impl Into<i64>>,
        range: impl RangeBounds<i64>,
    ) {
        let Some(value) = value.map(Into::into) else {
            return;
        };
        let min = match range.start_bound() {
            Bound::Included(min) => Some(*min),
            Bound::Excluded(below) => Some(below.saturating_add(1)),
            Bound::Unbounded => None,
        };
        let max = match range.end_bound() {
            Bound::Included(max) => Some(*max),
            Bound::Excluded(above) => Some(above.saturating_sub(1)),
            Bound::Unbounded => None,
        };
        if let Some(min) = min.filter(|min| value < *min) {
            self.too_small(path, value, min as f64);
        } else if let Some(max) = max.filter(|max| value > *max) {
            self.too_big(path, value, max as f64);
        }
    }

    /// Returns true if there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the errors in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.0.iter()
    }
}

/// An error without a path, for an object that does not have the shape of its type.
impl From<serde_json::Error> for FieldErrors {
    fn from(error: serde_json::Error) -> Self {
        let mut errors = Self::default();
        errors.push("", error.to_string(), "");
        errors
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for FieldErrors {
    /// Formats all errors, separated by line breaks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for FieldErrors {}

/// Returns the remedy for a word that is not one of the `known` words.
pub(crate) fn one_of(word: &str, known: &[&str]) -> String {
    let use_one = format!("use one of {}", known.join(", "));
    match nearest(word, known.iter().copied()) {
        Some(meant) => format!("did you mean {meant}? {use_one}"),
        None => use_one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_formatted_line_by_line() {
        let mut errors = FieldErrors::default();
        assert!(errors.is_empty() && errors.to_string().is_empty());
        errors.push("a", "it is bad", "mend it");
        errors.push("b", "it is worse", "");
        errors.push("c", "it is bad", "mend it");
        assert_eq!(
            errors.to_string(),
            "a: it is bad; mend it\nb: it is worse\nc: it is bad; mend it"
        );
        let paths = |errors: &mut dyn Iterator<Item = FieldError>| errors.map(|e| e.path).collect::<Vec<_>>();
        assert_eq!(paths(&mut errors.iter().cloned()), ["a", "b", "c"]);
        assert_eq!(paths(&mut errors.into_iter()), ["a", "b", "c"]);
    }
}
