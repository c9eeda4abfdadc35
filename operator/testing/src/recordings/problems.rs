//! Collects unexpected results, so that one run reports them all.

use std::fmt::{Debug, Display};

#[derive(Default)]
pub struct Problems(Vec<String>);

impl Problems {
    /// Records a result unless it is the expected one.
    pub fn expect<T: PartialEq<E> + Debug, E: Debug>(
        &mut self,
        reader: &str,
        of: impl Display,
        found: T,
        expected: E,
    ) {
        if found != expected {
            self.0.push(format!(
                "{of}: {reader} concludes {found:?}, expected {expected:?}"
            ));
        }
    }

    /// Fails the test if there are any.
    pub fn expect_none(self) {
        assert!(
            self.0.is_empty(),
            "{} wrong conclusions:\n{}",
            self.0.len(),
            self.0.join("\n")
        );
    }
}
