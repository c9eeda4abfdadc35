//! The syntax of Kubernetes resource quantities, such as `500m`, `1.5Gi` or `1e3`.

/// Returns true if the API server accepts `text` as a quantity.
pub fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let after_number = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &unsigned[..unsigned.len() - after_number.len()];
    number.contains(|c: char| c.is_ascii_digit())
        && number.matches('.').count() <= 1
        && (is_suffix(after_number) || is_exponent(after_number))
}

/// Returns the number that a quantity stands for.
pub fn amount(text: &str) -> Option<f64> {
    let text = text.trim();
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let factor = match suffix {
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0f64.powi(3),
        "Ti" => 1024.0f64.powi(4),
        "Pi" => 1024.0f64.powi(5),
        "Ei" => 1024.0f64.powi(6),
        // No unit, as in 12 or 12e6.
        _ => return text.parse().ok(),
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// An amount that can be added to others without loss. It is written as Go's `resource.Quantity` writes it.
///
/// ```
/// use kube_schema::quantity::Quantity;
///
/// let [a, b] = ["500m", "1.7"].map(|text| Quantity::parse(text).unwrap());
/// assert_eq!((a + b).to_string(), "2200m");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    /// The amount in billionths; smaller fractions are rounded up.
    nano: i128,
    notation: Notation,
}

/// The form of a quantity's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Notation {
    /// A suffix such as `M`, or none.
    #[default]
    Decimal,
    /// A suffix such as `Mi`.
    Binary,
    /// An exponent such as `e6`.
    Exponent,
}

const NANO: i128 = 1_000_000_000;
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const EXPONENTS: [&str; 10] = ["e-9", "e-6", "e-3", "e0", "e3", "e6", "e9", "e12", "e15", "e18"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The largest amount, as in Go; larger amounts are reduced to it.
const LARGEST: i128 = i64::MAX as i128 * NANO;

impl Quantity {
    /// Parses a quantity. Returns `None` if the API server would reject the text.
    pub fn parse(text: &str) -> Option<Self> {
        if !is_quantity(text) {
            return None;
        }
        let negative = text.starts_with('-');
        let unsigned = text.trim_start_matches(['+', '-']);
        let after_number = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = &unsigned[..unsigned.len() - after_number.len()];
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // Only about the first 36 digits are significant. Digits after the ninth decimal place are rounded up.
        let mut numerator = 0i128;
        let mut scale = 0i32;
        for (n, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
            if numerator < i128::MAX / 1_000 {
                numerator = numerator * 10 + i128::from(digit - b'0');
                scale -= i32::from(n >= whole.len());
            } else {
                scale += i32::from(n < whole.len());
            }
        }
        let binary = BINARY.iter().skip(1).position(|suffix| *suffix == after_number);
        let decimal = DECIMAL.iter().position(|suffix| *suffix == after_number);
        let (notation, nano) = match (binary, decimal) {
            (Some(power), _) => {
                let unit = 1i128 << (10 * (power + 1));
                let nano = scaled(numerator.saturating_mul(unit), scale.saturating_add(9));
                (Notation::Binary, nano)
            }
            (None, decimal) => {
                let (notation, power) = match decimal {
                    Some(place) => (Notation::Decimal, 3 * i32::try_from(place).ok()? - 9),
                    None => (Notation::Exponent, after_number[1..].parse().ok()?),
                };
                let nano = scaled(numerator, scale.saturating_add(power).saturating_add(9));
                (notation, nano)
            }
        };
        let nano = nano.min(LARGEST);
        Some(Self {
            nano: if negative { -nano } else { nano },
            notation,
        })
    }

    /// Returns the larger of two amounts, in its own notation.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if other > self { other } else { self }
    }

    /// Returns true if the amount is a whole number of `unit`s. No amount is a multiple of zero.
    pub fn is_multiple_of(self, unit: Self) -> bool {
        self.nano.checked_rem(unit.nano) == Some(0)
    }
}

/// Amounts are compared without regard to their notation: `1Ki` equals `1024`.
impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.nano.partial_cmp(&other.nano)
    }
}

/// Returns `number` times ten to the power of `exponent`, rounded up.
fn scaled(number: i128, exponent: i32) -> i128 {
    let factor = 10i128.checked_pow(exponent.unsigned_abs());
    match (exponent < 0, factor) {
        (false, Some(factor)) => number.saturating_mul(factor),
        (false, None) => number.signum() * LARGEST,
        (true, Some(factor)) => number / factor + i128::from(number % factor != 0),
        (true, None) => number.signum(),
    }
}

/// The sum has the notation of the first operand that is not zero.
impl std::ops::Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            nano: (self.nano + other.nano).clamp(-LARGEST, LARGEST),
            notation: if self.nano == 0 {
                other.notation
            } else {
                self.notation
            },
        }
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let written = |mut number: i128, base: i128, suffixes: &[&str]| {
            let mut place = 0;
            while number != 0 && number % base == 0 && place + 1 < suffixes.len() {
                number /= base;
                place += 1;
            }
            format!("{number}{}", suffixes[place])
        };
        let text = if self.nano == 0 {
            "0".to_owned()
        } else if self.notation == Notation::Binary && self.nano.abs() >= 1024 * NANO {
            let whole = self.nano / NANO + i128::from(self.nano % NANO > 0);
            written(whole, 1024, &BINARY)
        } else if self.notation == Notation::Exponent {
            written(self.nano, 1000, &EXPONENTS)
        } else {
            written(self.nano, 1000, &DECIMAL)
        };
        f.write_str(&text)
    }
}

fn is_suffix(text: &str) -> bool {
    matches!(
        text,
        "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei"
    )
}

fn is_exponent(text: &str) -> bool {
    let Some(exponent) = text.strip_prefix(['e', 'E']) else {
        return false;
    };
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_stands_for_a_number() {
        for (text, number) in [
            ("2", 2.0),
            (" -1.5 ", -1.5),
            ("+3", 3.0),
            ("2n", 2e-9),
            ("2u", 2e-6),
            ("250m", 0.25),
            ("2k", 2e3),
            ("2M", 2e6),
            ("2G", 2e9),
            ("2T", 2e12),
            ("2P", 2e15),
            ("2E", 2e18),
            ("2Ki", 2048.0),
            ("2Mi", 2_097_152.0),
            ("0.5Gi", 536_870_912.0),
            ("2Ti", 2_199_023_255_552.0),
            ("1Pi", 1_125_899_906_842_624.0),
            ("1Ei", 1_152_921_504_606_846_976.0),
            ("12e6", 12e6),
            ("1E-3", 1e-3),
        ] {
            let found = amount(text).unwrap_or(f64::NAN);
            assert!((found - number).abs() <= number.abs() * 1e-12, "{text}: {found}");
        }
        for nonsense in ["", "Gi", "1.2.3", "many", "1 Gi"] {
            assert_eq!(amount(nonsense), None, "{nonsense:?}");
        }
    }

    fn parsed(text: &str) -> Quantity {
        Quantity::parse(text).unwrap_or_else(|| panic!("{text} is a quantity"))
    }

    #[test]
    fn quantities_are_written_as_go_writes_them() {
        for (text, written) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("1", "1"),
            ("+1.50", "1500m"),
            ("0.1", "100m"),
            ("2000", "2k"),
            ("1500", "1500"),
            ("1e3", "1e3"),
            ("12E-1", "1200e-3"),
            ("1500e0", "1500e0"),
            (".5", "500m"),
            ("1.", "1"),
            ("1024", "1024"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("1.5Gi", "1536Mi"),
            ("2048Mi", "2Gi"),
            ("0.0001Ki", "102400u"),
            ("1.00001Ki", "1025"),
            ("-1.5", "-1500m"),
            ("-2Gi", "-2Gi"),
            ("0.0000000001", "1n"),
            ("1e-40", "1e-9"),
            ("8Ei", "9223372036854775807"),
            ("1e400", "9223372036854775807e0"),
            ("0e400", "0"),
            ("0.0015Ki", "1536m"),
            ("1.000000000000", "1"),
            (
                "1234567890123456789012345678901234567890e-30",
                "1234567890123456790e-9",
            ),
            ("0.1234567890123456789012345678901234567890123", "123456790n"),
            (
                "123456789012345678901234567890123456789012345",
                "9223372036854775807",
            ),
        ] {
            assert_eq!(parsed(text).to_string(), written, "{text}");
        }
        for nonsense in ["", "m", "1.2.3", "1gb", "١"] {
            assert!(Quantity::parse(nonsense).is_none(), "{nonsense:?}");
        }
    }

    #[test]
    fn a_sum_is_exact_and_has_the_notation_of_its_first_part() {
        for (parts, sum) in [
            (&["500m", "100m", "1", "600m"][..], "2200m"),
            (&["1Gi", "512Mi"], "1536Mi"),
            (&["1G", "1Gi"], "2073741824"),
            (&["0", "1Gi"], "1Gi"),
            (&["0.1", "0.2"], "300m"),
            (&["9E", "9E"], "9223372036854775807"),
        ] {
            let all = parts.iter().map(|part| parsed(part));
            let found = all.fold(Quantity::default(), |a, b| a + b);
            assert_eq!(found.to_string(), sum, "{parts:?}");
        }
        assert_eq!(parsed("1Gi").max(parsed("1G")).to_string(), "1Gi");
        assert_eq!(parsed("1Ki").max(parsed("1024")).to_string(), "1Ki");
        assert_eq!(parsed("1500m").max(parsed("1")).to_string(), "1500m");
    }

    #[test]
    fn amounts_are_compared_without_their_notation() {
        assert!(parsed("1Ki") == parsed("1024") && parsed("1.0") == parsed("1000m"));
        assert!(parsed("1G") < parsed("1Gi") && parsed("-1") < parsed("0"));
        for (amount, unit, is_multiple) in [
            ("2", "1", true),
            ("1500m", "1", false),
            ("2000m", "1", true),
            ("4Mi", "2Mi", true),
            ("3Mi", "2Mi", false),
            ("0", "1Gi", true),
            ("1", "0", false),
        ] {
            assert_eq!(
                parsed(amount).is_multiple_of(parsed(unit)),
                is_multiple,
                "{amount}"
            );
        }
    }

    #[test]
    fn quantities_are_read_as_by_the_api_server() {
        for good in [
            "0", "1", "-1", "1.5Gi", ".5", "1.", "500m", "2k", "1e3", "1E-3", "1E", "+4Ti",
        ] {
            assert!(is_quantity(good), "{good}");
        }
        for bad in [
            "", "m", "1 Gi", "1gb", "4GB", "1K", "1.2.3", "e3", "1e", "0x10", "1_000", "١",
        ] {
            assert!(!is_quantity(bad), "{bad}");
        }
    }
}
