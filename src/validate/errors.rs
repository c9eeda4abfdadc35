//! What is wrong with a job, field by field.

use std::fmt;

/// The path of `key` below `path`: `path.key`, or `path[key]` if the key is not a plain word, as the
/// keys of labels are.
pub fn field(path: &str, key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if key.is_empty() || !key.chars().all(plain) {
        format!("{path}[{key}]")
    } else if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// The path of item `n` of the list at `path`.
pub fn item(path: &str, n: usize) -> String {
    format!("{path}[{n}]")
}

/// One thing wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field, such as `spec.runPolicy.backoffLimit` or `spec.replicaSpecs.Worker.template.spec.containers[0].image`.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do about it; empty if the problem says so.
    pub remedy: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_back_without_doubt() {
        for (path, key, expected) in [
            ("", "spec", "spec"),
            ("spec", "a-b_C1", "spec.a-b_C1"),
            ("spec", "example.com/a", "spec[example.com/a]"),
            ("spec", "", "spec[]"),
            ("", "a.b", "[a.b]"),
        ] {
            assert_eq!(field(path, key), expected);
        }
    }

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
