//! What is wrong with an object, as values.

use serde_json::Value;

use crate::{path::Path, schema::Type};

/// One thing wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub struct Breach<'a> {
    /// Where the field is, or should be.
    pub path: Path<'a>,
    /// What is wrong with it.
    pub wrong: Wrong<'a>,
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Wrong<'a> {
    /// It is required and not there, or null where a null is dropped.
    Missing,
    /// The schema has no such field. An API server drops it without a word, unless it is asked to be strict.
    Unknown {
        /// The fields that there are in its place, in order.
        known: Vec<&'a str>,
    },
    /// A null is an item of a list, or the value of a key that may be any text. Nulls of properties are no breach: they
    /// are as good as absent. An API server drops the key, and refuses the item if it is of a type; whoever wrote a null
    /// in such a place meant something.
    Null {
        /// What should be there.
        wanted: Option<Type>,
    },
    /// It is of another type.
    Type {
        /// What is there.
        value: &'a Value,
        /// What should be there.
        wanted: Type,
    },
    /// It is not among the values of an enumeration.
    Word {
        /// What is there.
        value: &'a Value,
        /// What may be there.
        allowed: &'a [Value],
    },
    /// A number is below the minimum.
    TooSmall {
        /// The number.
        value: &'a Value,
        /// The minimum.
        bound: f64,
        /// Whether the minimum itself is too small as well.
        exclusive: bool,
    },
    /// A number is above the maximum.
    TooBig {
        /// The number.
        value: &'a Value,
        /// The maximum.
        bound: f64,
        /// Whether the maximum itself is too big as well.
        exclusive: bool,
    },
    /// An integer is beyond the bits of its format, `int32` or `int64`. An API server takes it; a program that decodes it
    /// as that type cannot.
    Bits {
        /// The number.
        value: &'a Value,
        /// How many bits it may have.
        bits: u32,
    },
    /// A text is too short, a list or map has too few in it.
    TooFew {
        /// The text, list or map.
        value: &'a Value,
        /// What was counted.
        unit: Unit,
        /// How many there are.
        found: usize,
        /// How many there must be at least.
        limit: u64,
    },
    /// A text is too long, a list or map has too many in it.
    TooMany {
        /// What was counted.
        unit: Unit,
        /// How many there are.
        found: usize,
        /// How many there may be.
        limit: u64,
    },
    /// A text does not match the pattern.
    Pattern {
        /// The text.
        value: &'a Value,
        /// The pattern, a regular expression.
        pattern: &'a str,
    },
    /// An item of a set, or one of a list with keys, is there a second time.
    Duplicate {
        /// The item.
        value: &'a Value,
    },
    /// It does not fit the combined schemas as it should.
    Combined(Combination),
}

/// What a text, a list or a map has many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A text has characters.
    Characters,
    /// A list has items.
    Items,
    /// A map has entries.
    Entries,
}

/// How schemas are combined. There is none for `allOf`: what breaks one of those is a breach by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combination {
    /// At least one must fit.
    AnyOf,
    /// Exactly one must fit.
    OneOf,
    /// It must not fit.
    Not,
}
