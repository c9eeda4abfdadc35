//! Ages, as kubectl prints them: `5s`, `3m20s`, `2d`.

use jiff::Timestamp;
use serde_json::Value;

/// Returns the time since a timestamp of an object: `<unknown>` if it is missing, `<invalid>` if it is not one.
pub(super) fn since(time: &Value, now: Timestamp) -> String {
    match time.as_str() {
        None => "<unknown>".to_owned(),
        Some(text) => match text.parse::<Timestamp>() {
            Ok(time) => age(now.as_second() - time.as_second()),
            Err(_) => "<invalid>".to_owned(),
        },
    }
}

/// Formats a number of seconds with at most two units.
pub(super) fn age(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let two = |first: i64, unit: &str, second: i64, small: &str| match second {
        0 => format!("{first}{unit}"),
        _ => format!("{first}{unit}{second}{small}"),
    };
    match seconds {
        // Clocks of two machines may differ by a second.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => two(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_at_most_two_units() {
        const HOUR: i64 = 3600;
        const DAY: i64 = 24 * HOUR;
        for (seconds, expected) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (600, "10m"),
            (179 * 60, "179m"),
            (3 * HOUR + 60, "3h1m"),
            (9 * HOUR, "9h"),
            (49 * HOUR, "2d1h"),
            (9 * DAY + HOUR, "9d"),
            (800 * DAY, "2y70d"),
            (3000 * DAY, "8y"),
        ] {
            assert_eq!(age(seconds), expected, "{seconds}");
        }
    }
}
