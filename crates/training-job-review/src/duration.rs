//! Times for people.

/// Returns a time in at most two units: `45s`, `4m10s`, `1h02m`, `3d04h`.
pub fn short_time(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..172_800 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::short_time;

    #[test]
    fn a_time_has_at_most_two_units() {
        assert_eq!(
            [45, 250, 3_720, 275_000].map(short_time),
            ["45s", "4m10s", "1h02m", "3d04h"]
        );
    }
}
