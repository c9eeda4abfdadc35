//! Times and durations for people.

use jiff::Timestamp;
use maud::{Markup, html};

/// Returns a duration with units: `0.4 s`, `12 s`, `4 min 10 s`, `1 h 02 min`, `3 d 04 h`.
pub(super) fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    // Durations of jobs are far below the limit of i64.
    let whole = seconds.round() as i64;
    match whole {
        ..60 => format!("{whole} s"),
        60..3_600 => format!("{} min {:02} s", whole / 60, whole % 60),
        3_600..172_800 => format!("{} h {:02} min", whole / 3_600, whole % 3_600 / 60),
        _ => format!("{} d {:02} h", whole / 86_400, whole % 86_400 / 3_600),
    }
}

pub(super) fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

/// Returns a time relative to the creation of the job, such as `+12 s`.
pub(super) fn relative(from: Timestamp, at: Timestamp) -> String {
    let seconds = seconds_between(from, at);
    let sign = if seconds < 0.0 { "−" } else { "+" };
    format!("{sign}{}", duration(seconds.abs()))
}

fn absolute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Returns a time, absolute and relative to the creation of the job.
pub(super) fn time(from: Timestamp, at: Option<Timestamp>) -> Markup {
    html! {
        @match at {
            Some(at) => { time datetime=(at) { (absolute(at)) } " " span.soft { "(" (relative(from, at)) ")" } },
            None => { span.soft { "unknown" } },
        }
    }
}

/// Returns a time relative to the creation of the job.
pub(super) fn short_time(from: Timestamp, at: Option<Timestamp>) -> Markup {
    html! {
        @match at {
            Some(at) => { time datetime=(at) { (relative(from, at)) } },
            None => { span.soft { "–" } },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn a_duration_has_units() {
        let texts = [0.04, 9.94, 9.96, 59.4, 59.6, 250.0, 3_720.0, 275_000.0].map(duration);
        assert_eq!(
            texts,
            [
                "0.0 s",
                "9.9 s",
                "10 s",
                "59 s",
                "1 min 00 s",
                "4 min 10 s",
                "1 h 02 min",
                "3 d 04 h"
            ]
        );
    }
}
