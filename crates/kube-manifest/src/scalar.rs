//! Plain scalars as kubectl reads them: YAML 1.1 booleans, octal numbers with a leading 0, and numbers converted to
//! JSON numbers.
//!
//! YAML libraries follow the YAML 1.2 core schema or a mix of their own. A file must mean the same here and in
//! `kubectl apply`, so this module follows the rules of the Go library behind kubectl (yaml.v2).

use serde_json::{Number, Value};

/// Returns the value of a scalar without quotes and tag, or `None` if JSON cannot represent it.
pub(crate) fn resolve(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Some(true.into());
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Some(false.into());
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf"
        | "-.Inf" | "-.INF" => return None,
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Some(text.into());
    }
    let digits = text.replace('_', "");
    if let Some(integer) = integer(&digits) {
        return Some(integer);
    }
    if is_float(&digits)
        && let Ok(float) = digits.parse()
    {
        return number(float);
    }
    Some(text.into())
}

/// Returns the text of a boolean or number if JSON has another text for it.
pub(crate) fn written(text: &str, value: &Value) -> Option<Box<str>> {
    let json = value.to_string();
    let is_other = match value {
        Value::Bool(_) => !text.eq_ignore_ascii_case(&json),
        Value::Number(_) => text != json,
        _ => false,
    };
    is_other.then(|| text.into())
}

/// Returns a floating-point number as JSON prints it: as an integer if it has no fraction.
pub(crate) fn number(float: f64) -> Option<Value> {
    // Beyond 2^53 the integer would show digits that the float does not have.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.fract() == 0.0 && float.abs() <= EXACT {
        return Some(Value::Number((float as i64).into()));
    }
    Number::from_f64(float).map(Value::Number)
}

fn integer(text: &str) -> Option<Value> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        0_i64.checked_sub_unsigned(magnitude).map(Value::from)
    } else {
        Some(magnitude.into())
    }
}

/// True if the text matches `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_float(text: &str) -> bool {
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|e| {
            let digits = e.strip_prefix(['+', '-']).unwrap_or(e);
            !digits.is_empty() && all_digits(digits)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The values are the output of `kubectl annotate --local -o json`.
    #[test]
    fn scalars_are_read_as_by_kubectl() {
        for (text, value) in [
            ("yes", json!(true)),
            ("On", json!(true)),
            ("n", json!(false)),
            ("yEs", json!("yEs")),
            ("~", json!(null)),
            ("nULL", json!("nULL")),
            ("0", json!(0)),
            ("-0", json!(0)),
            ("0644", json!(420)),
            ("-017", json!(-15)),
            ("0o17", json!(15)),
            ("0x1F", json!(31)),
            ("-0b11", json!(-3)),
            ("1_000", json!(1000)),
            ("1__0", json!(10)),
            ("_1", json!("_1")),
            ("0_7", json!(7)),
            ("1e-7", json!(1e-7)),
            ("09.5", json!(9.5)),
            ("+5", json!(5)),
            ("08", json!(8)),
            ("1e3", json!(1000)),
            ("2.0", json!(2)),
            ("5.", json!(5)),
            (".5", json!(0.5)),
            ("-1.25", json!(-1.25)),
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("99999999999999999999", json!(1e20)),
            ("1:30", json!("1:30")),
            ("2026-01-01", json!("2026-01-01")),
            ("1.2.3", json!("1.2.3")),
            ("+", json!("+")),
            (".", json!(".")),
            ("1e", json!("1e")),
            ("0x", json!("0x")),
            ("0x+5", json!("0x+5")),
            ("infinity", json!("infinity")),
            ("500m", json!("500m")),
        ] {
            assert_eq!(resolve(text), Some(value), "{text}");
        }
        assert_eq!(resolve(".inf"), None);
        assert_eq!(resolve("1e999"), None);
    }

    #[test]
    fn a_text_that_json_has_otherwise_is_kept() {
        for text in ["yes", "1e3", "010", "2.50", "99999999999999999999"] {
            let value = resolve(text).unwrap();
            assert_eq!(written(text, &value).as_deref(), Some(text));
        }
        for text in ["true", "True", "3", "2.5", "main"] {
            assert_eq!(written(text, &resolve(text).unwrap()), None, "{text}");
        }
    }
}
