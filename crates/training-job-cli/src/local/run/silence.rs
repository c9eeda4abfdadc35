//! Decides when a line says that a run prints nothing (pure).

use std::time::{Duration, Instant};

use training_job_review::duration::short_time;

/// The time without output after which it is mentioned, and the time between two such lines.
const SILENCE: Duration = Duration::from_secs(60);

/// The latest output of a run.
#[derive(Debug)]
pub(super) struct Silence {
    started: Instant,
    /// The replica that wrote last, and the time.
    last: Option<(String, Instant)>,
    /// The time of the last line of any kind.
    printed: Instant,
}

impl Silence {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            started: now,
            last: None,
            printed: now,
        }
    }

    /// Records output of a process.
    pub(super) fn wrote(&mut self, writer: &str, now: Instant) {
        self.printed = now;
        match &mut self.last {
            // A process may write many lines, and its name rarely changes.
            Some((last, at)) if last == writer => *at = now,
            last => *last = Some((writer.to_owned(), now)),
        }
    }

    /// Records a line of the program itself.
    pub(super) fn printed(&mut self, now: Instant) {
        self.printed = now;
    }

    /// Returns the line to print if nothing was printed for a minute.
    pub(super) fn note(&mut self, now: Instant) -> Option<String> {
        (now.duration_since(self.printed) >= SILENCE).then(|| {
            self.printed = now;
            format!(
                "running {}; {}",
                time(now.duration_since(self.started)),
                self.last(now)
            )
        })
    }

    /// Returns the latest output as a text: `worker-0 last wrote 12s ago`.
    pub(super) fn last(&self, now: Instant) -> String {
        match &self.last {
            Some((writer, at)) => format!("{writer} last wrote {} ago", time(now.duration_since(*at))),
            None => "no output yet".to_owned(),
        }
    }
}

fn time(time: Duration) -> String {
    short_time(time.as_secs().try_into().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_run_is_mentioned_once_a_minute() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut silence = Silence::new(start);
        assert_eq!(silence.note(at(59)), None);
        assert_eq!(
            silence.note(at(60)).as_deref(),
            Some("running 1m00s; no output yet")
        );
        assert_eq!(silence.note(at(119)), None);
        silence.wrote("master-0", at(119));
        assert_eq!(silence.note(at(178)), None);
        let line = silence.note(at(179));
        assert_eq!(
            line.as_deref(),
            Some("running 2m59s; master-0 last wrote 1m00s ago")
        );
        assert_eq!(silence.note(at(180)), None);
        let line = silence.note(at(240));
        assert_eq!(
            line.as_deref(),
            Some("running 4m00s; master-0 last wrote 2m01s ago")
        );
    }

    #[test]
    fn a_change_of_a_job_is_output() {
        let start = Instant::now();
        let mut silence = Silence::new(start);
        silence.printed(start + Duration::from_secs(30));
        assert_eq!(silence.note(start + Duration::from_secs(89)), None);
        assert!(silence.note(start + Duration::from_secs(90)).is_some());
    }

    #[test]
    fn the_latest_writer_counts() {
        let start = Instant::now();
        let mut silence = Silence::new(start);
        silence.wrote("worker-0", start);
        silence.wrote("worker-1", start + Duration::from_secs(5));
        assert_eq!(
            silence.last(start + Duration::from_secs(17)),
            "worker-1 last wrote 12s ago"
        );
    }
}
