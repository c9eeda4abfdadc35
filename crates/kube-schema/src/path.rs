//! The path of a value in an object.

use std::fmt;

/// One step from a value to a value in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// To the member with this key.
    Member(&'a str),
    /// To the item with this index.
    Item(usize),
}

/// The steps from the checked value to a field. As text it has the form of an API server's messages:
/// `spec.containers[0].image`, and `metadata.labels.example.com/app` for a key that is not a plain word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path<'a>(Vec<Step<'a>>);

impl<'a> Path<'a> {
    /// Returns the steps, the outermost first.
    pub fn steps(&self) -> &[Step<'a>] {
        &self.0
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in self.0.iter().enumerate() {
            match step {
                Step::Member(key) if n == 0 => f.write_str(key)?,
                Step::Member(key) => write!(f, ".{key}")?,
                Step::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The path of the current value. Each step is on the stack; a [`Path`] is allocated only for a violation.
#[derive(Clone, Copy)]
pub(crate) enum At<'p, 'a> {
    Here,
    In(&'p At<'p, 'a>, Step<'a>),
}

impl<'p, 'a> At<'p, 'a> {
    pub(crate) fn member(&'p self, key: &'a str) -> Self {
        Self::In(self, Step::Member(key))
    }

    pub(crate) fn item(&'p self, index: usize) -> Self {
        Self::In(self, Step::Item(index))
    }

    pub(crate) fn path(self) -> Path<'a> {
        let mut steps = Vec::new();
        let mut at = self;
        while let At::In(parent, step) = at {
            steps.push(step);
            at = *parent;
        }
        steps.reverse();
        Path(steps)
    }
}
