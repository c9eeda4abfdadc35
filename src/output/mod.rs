//! The output of replicas: the numbers in its lines, and how long it has shown no progress. Pure.

mod forms;
mod pattern;
mod record;

pub use forms::{Numbers, Pair, STEP_WORDS, pairs};
pub use pattern::{Pattern, PatternError};
pub use record::{OutputRecord, Unread};
