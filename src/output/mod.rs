//! The output of replicas: the numbers in its lines, and how long it has shown no progress. Pure.

mod forms;
mod pattern;
mod record;

pub use forms::{Numbers, Pair, STEP_WORDS, pairs};
pub use pattern::{Pattern, PatternError};
pub use record::{OutputRecord, Unread};

/// Returns a number with this many significant digits.
pub fn rounded(number: f64, digits: usize) -> f64 {
    format!("{number:.*e}", digits.saturating_sub(1))
        .parse()
        .unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_digits() {
        for (number, expected) in [
            (0.123_456, 0.123_5),
            (1_234.56, 1_235.0),
            (-2e-9, -2e-9),
            (0.0, 0.0),
        ] {
            assert_eq!(rounded(number, 4), expected);
        }
    }
}
