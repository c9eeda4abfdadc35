//! What is wrong with a job, field by field: the path, the problem, the remedy.

use std::fmt;

use crate::api::Word;

use super::nearest::nearest;

/// One thing wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldError {
    /// The field, such as `spec.runPolicy.backoffLimit` or `spec.replicaSpecs.Worker.template.spec.containers[0].image`;
    /// empty if the object as a whole is wrong.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do about it; empty if the problem says so.
    pub remedy: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.problem)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

/// Everything that is wrong with a job.
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

    /// Adds that `word` is none of the `known` ones that the field at `path` may have.
    pub fn unknown_word(&mut self, path: impl Into<String>, word: &str, known: &[&str]) {
        let remedy = match known {
            [only] => format!("use {only}, or leave it out"),
            _ => one_of(word, known),
        };
        self.push(path, format!("{word:?} is not known"), remedy);
    }

    /// Adds that a policy at `path` is a word that the API does not know, if it is.
    pub fn check_word<W: Word>(&mut self, path: impl Into<String>, policy: Option<&W>) {
        if let Some(unknown) = policy.and_then(W::unknown) {
            self.unknown_word(path, unknown, W::WORDS);
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The errors, in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.0.iter()
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
    /// All errors, separated by line breaks.
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

/// The remedy for a word that is none of the `known`.
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
    fn errors_are_told_line_by_line() {
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
