//! Syntax of Kubernetes resource quantities, such as `500m`, `1.5Gi` or `1e3`.

/// Whether the API server takes `text` as a quantity.
pub fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let after_number = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &unsigned[..unsigned.len() - after_number.len()];
    number.contains(|c: char| c.is_ascii_digit())
        && number.matches('.').count() <= 1
        && (is_suffix(after_number) || is_exponent(after_number))
}

/// The number that a quantity stands for.
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
        // 12 or 12e6: no unit.
        _ => return text.parse().ok(),
    };
    Some(number.parse::<f64>().ok()? * factor)
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
