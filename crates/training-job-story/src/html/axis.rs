//! Ticks of axes.

/// The steps between ticks of a time axis, in seconds.
const TIME_STEPS: [f64; 20] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0,
    7_200.0, 14_400.0, 43_200.0, 86_400.0,
];

/// Returns at most nine ticks from 0 to `length` seconds.
pub(super) fn time_ticks(length: f64) -> Vec<f64> {
    let step = TIME_STEPS.into_iter().find(|step| length / step <= 8.0);
    multiples(0.0, length, step.unwrap_or_else(|| nice_step(length)))
}

/// Returns at most nine ticks between two numbers.
pub(super) fn ticks(from: f64, to: f64) -> Vec<f64> {
    if from == to {
        return vec![from];
    }
    multiples(from, to, nice_step(to - from))
}

/// Returns a step of 1, 2 or 5 times a power of ten.
fn nice_step(length: f64) -> f64 {
    let rough = (length / 5.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().find(|n| n * power >= rough);
    step.unwrap_or(10.0) * power
}

fn multiples(from: f64, to: f64, step: f64) -> Vec<f64> {
    let first = (from / step).ceil();
    if !(first.is_finite() && step.is_finite() && step > 0.0) {
        return Vec::new();
    }
    (0..9_u8)
        .map(|n| (first + f64::from(n)) * step)
        .take_while(|tick| *tick <= to + step * 1e-9)
        .collect()
}

/// Returns a number for people, without digits that are noise.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e6).contains(&size) {
        return format!("{value:.2e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(time_ticks(45.0), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(ticks(0.0, 1_000.0), [0.0, 200.0, 400.0, 600.0, 800.0, 1_000.0]);
        assert_eq!(ticks(5.0, 5.0), [5.0]);
        assert!(ticks(0.0, f64::INFINITY).is_empty());
        assert_eq!(
            [0.53, 1_000.0, 0.0, 1.5e-7].map(number),
            ["0.53", "1000", "0", "1.50e-7"]
        );
    }
}
