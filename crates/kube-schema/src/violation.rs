//! The violations of a schema, as values.

use serde_json::Value;

use crate::{path::Path, schema::Type};

/// One violation of the schema in one field.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation<'a> {
    /// The path of the field; it may be missing.
    pub path: Path<'a>,
    /// The kind of violation.
    pub kind: ViolationKind<'a>,
}

/// The kinds of violation.
#[derive(Debug, Clone, PartialEq)]
pub enum ViolationKind<'a> {
    /// A required field is missing, or is null where nulls are dropped.
    Missing,
    /// The schema has no such field. An API server drops it silently, unless the request demands strict validation.
    Unknown {
        /// The fields that the schema has instead, in order.
        known: Vec<&'a str>,
    },
    /// A null is an item of a list, or the value of a key that may be any text. A null property is not a violation,
    /// because it equals a missing one. An API server drops such a key. It rejects such an item if the schema gives
    /// it a type. In both places the null is probably a mistake.
    Null {
        /// The type that the schema requires here, if any.
        wanted: Option<Type>,
    },
    /// The value has another type.
    Type {
        /// The value found.
        value: &'a Value,
        /// The type that the schema requires here.
        wanted: Type,
        /// The bits of the schema's format, `int32` or `int64`.
        bits: Option<u32>,
    },
    /// The value is not in the enumeration.
    Unsupported {
        /// The value found.
        value: &'a Value,
        /// The values of the enumeration.
        allowed: &'a [Value],
    },
    /// A number is below the minimum.
    TooSmall {
        /// The number.
        value: &'a Value,
        /// The minimum.
        bound: f64,
        /// True if the minimum itself is too small as well.
        exclusive: bool,
    },
    /// A number is above the maximum.
    TooBig {
        /// The number.
        value: &'a Value,
        /// The maximum.
        bound: f64,
        /// True if the maximum itself is too big as well.
        exclusive: bool,
    },
    /// An integer exceeds the bits of its format, `int32` or `int64`. API servers up to 1.35 accept it; a
    /// program that decodes it as that type cannot.
    Bits {
        /// The number.
        value: &'a Value,
        /// The maximum number of bits.
        bits: u32,
    },
    /// A text, list or map is too short.
    TooFew {
        /// The text, list or map.
        value: &'a Value,
        /// The unit of `found` and `limit`.
        unit: Unit,
        /// The number found.
        found: usize,
        /// The minimum number.
        limit: u64,
    },
    /// A text, list or map is too long.
    TooMany {
        /// The unit of `found` and `limit`.
        unit: Unit,
        /// The number found.
        found: usize,
        /// The maximum number.
        limit: u64,
    },
    /// A text does not match the pattern.
    Pattern {
        /// The text.
        value: &'a Value,
        /// The pattern, a regular expression.
        pattern: &'a str,
    },
    /// Another item of the list equals this item, in a set, or has the same keys, in a list with keys.
    Duplicate {
        /// The item.
        value: &'a Value,
    },
    /// The value violates `anyOf`, `oneOf` or `not`.
    Combined(Combination),
}

/// The unit of a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// The characters of a text.
    Characters,
    /// The items of a list.
    Items,
    /// The entries of a map.
    Entries,
}

/// A combination of schemas. `allOf` is missing, because a violation of one of its schemas is reported by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combination {
    /// At least one schema must fit.
    AnyOf,
    /// Exactly one schema must fit.
    OneOf,
    /// The schema must not fit.
    Not,
}
