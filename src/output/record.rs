//! The record of a replica's output, which grows with each read of its log.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use super::forms::{self, Numbers};
use super::pattern::Pattern;

/// The number of latest lines that are kept, for the record of a failure.
const MAX_LINES: usize = 5;

/// The maximum size of a kept line, in bytes.
const MAX_LINE_BYTES: usize = 200;

/// The maximum part of a line in which numbers are looked for, in bytes.
const MAX_READ_BYTES: usize = 2_000;

/// The output of a container of a replica, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputRecord {
    /// The UID of the pod.
    pub uid: String,
    /// The number of restarts of the container before this run.
    pub restarts: i32,
    /// For how long the container has made no progress, up to the last complete read: since the progress before, or since
    /// the controller first saw that the container ran. The controller measures it itself, so that no clock matters.
    pub silent_for: Duration,
    /// When that silence began, on the controller's own clock: since it began to read output. The replica with the latest
    /// time has made progress last.
    pub silent_since: Duration,
    /// True if the container has made progress since its start.
    pub has_begun: bool,
    /// True if the controller has seen progress after its first read.
    pub has_advanced: bool,
    /// The latest numbers.
    pub numbers: Numbers,
    /// The latest other numbers of a pattern.
    pub values: BTreeMap<String, f64>,
    /// The latest line that counts as progress.
    pub line: String,
    /// The time of the latest line that counts as progress, by the clock of the node.
    pub at: Option<Timestamp>,
    /// The latest lines, at most five.
    pub lines: VecDeque<String>,
    /// The problem of the last read, if it failed.
    pub unread: Option<Unread>,
    /// The last line that was read.
    mark: Option<Mark>,
    /// True after the first read.
    pub is_read: bool,
}

/// A line of a log, by which the next read finds what is new. A line without its end can grow.
#[derive(Clone, Debug, Default, PartialEq)]
struct Mark {
    /// The time as in the log.
    time: String,
    /// The beginning of the line.
    text: String,
    /// The length of the line in bytes.
    length: usize,
}

/// The problem of a read that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The operator lacks the right to read logs. The text is the remedy.
    Denied(String),
    /// The node does not answer, for example.
    Unavailable(String),
}

impl OutputRecord {
    /// Creates the record of a container that has run after this number of restarts.
    pub fn of(pod_uid: &str, restarts: i32) -> Self {
        Self {
            uid: pod_uid.to_owned(),
            restarts,
            ..Self::default()
        }
    }

    /// Returns the time of the last line that was read, from which the next read may begin.
    pub fn mark(&self) -> Option<Timestamp> {
        self.mark.as_ref()?.time.parse().ok()
    }

    /// Adds the last lines of a log: lines that begin with their times, as with `timestamps=true`. Returns
    /// true if they show progress, or if lines before them may be missing, which may have a new step: on the first read,
    /// because the log may have been rotated before it, and if the last line of the read before is not among them.
    ///
    /// Lines are compared with the last one of the read before, and never by their times, because clocks of nodes change.
    pub fn add(&mut self, log: &str, pattern: Option<&Pattern>) -> bool {
        let mut lines: Vec<(&str, &str)> = log.lines().map(split_time).collect();
        let last = lines.last().map(|(time, text)| Mark {
            time: (*time).to_owned(),
            text: shortened(text, MAX_READ_BYTES).to_owned(),
            length: text.len(),
        });
        let known = self.mark.as_ref().and_then(|mark| {
            let is_it = |(time, text): &(&str, &str)| *time == mark.time && text.starts_with(&mark.text);
            lines.iter().rposition(is_it).map(|at| (at, mark.length))
        });
        let begin = known.map_or(0, |(at, length)| match lines.get_mut(at) {
            Some((_, text)) if text.len() > length => {
                *text = text.get(length..).unwrap_or_default();
                at
            }
            _ => at + 1,
        });
        let new = lines.get(begin..).unwrap_or_default();
        let mut is_seen = false;
        for (time, text) in new {
            // A bar rewrites its line.
            let mut parts = text.split('\r').filter(|part| !part.trim().is_empty());
            let mut is_progress = false;
            for part in parts.clone() {
                is_progress |= self.read(shortened(part, MAX_READ_BYTES), pattern);
            }
            let Some(last) = parts.next_back() else { continue };
            let last = shortened(last.trim_end(), MAX_LINE_BYTES);
            self.lines.push_back(last.to_owned());
            if self.lines.len() > MAX_LINES {
                self.lines.pop_front();
            }
            if is_progress {
                last.clone_into(&mut self.line);
                self.at = time.parse().ok();
                is_seen = true;
            }
        }
        let has_advanced = is_seen || known.is_none() && !new.is_empty();
        self.mark = last.or(self.mark.take());
        self.has_begun |= is_seen;
        self.has_advanced |= has_advanced && self.is_read;
        self.is_read = true;
        self.unread = None;
        has_advanced
    }

    /// Reads the numbers of a line. Returns true if the line shows progress.
    fn read(&mut self, line: &str, pattern: Option<&Pattern>) -> bool {
        let Some(pattern) = pattern else {
            let found = forms::read(line);
            if found.step.is_some() {
                self.numbers.step = found.step;
                self.numbers.total = found.total;
            }
            self.numbers.loss = found.loss.or(self.numbers.loss);
            return true;
        };
        let Some((numbers, values)) = pattern.read(line) else {
            return false;
        };
        let is_progress = !pattern.has_step() || numbers.step != self.numbers.step;
        self.numbers = numbers;
        self.values = values;
        is_progress
    }
}

/// Splits a line into its time and its text. A line without a time is all text.
fn split_time(line: &str) -> (&str, &str) {
    let (time, text) = line.split_once(' ').unwrap_or((line, ""));
    match time.parse::<Timestamp>() {
        Ok(_) => (time, text),
        Err(_) => ("", line),
    }
}

/// Returns the beginning of a text, with at most `bound` bytes.
fn shortened(text: &str, bound: usize) -> &str {
    let mut end = bound.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "2026-01-01T10:00:00.1Z step 1/9 loss=3\n2026-01-01T10:00:01.2Z step 2/9 loss=2\n";

    fn record(log: &str, pattern: Option<&Pattern>) -> OutputRecord {
        let mut record = OutputRecord::default();
        record.add(log, pattern);
        record
    }

    #[test]
    fn output_is_progress_once() {
        let mut record = record(FIRST, None);
        assert!(record.has_begun);
        assert_eq!(
            (record.numbers.step, record.numbers.total),
            (Some(2.0), Some(9.0))
        );
        assert_eq!(record.line, "step 2/9 loss=2");
        // The API server sends the last second again.
        let again = "2026-01-01T10:00:01.2Z step 2/9 loss=2\n";
        assert!(!record.add(again, None) && !record.add("", None));
        let more = format!("{again}2026-01-01T10:00:01.2Z step 2/9 loss=1\n");
        assert!(record.add(&more, None));
        assert_eq!(record.numbers.loss, Some(1.0));
    }

    #[test]
    fn the_clock_of_a_node_may_go_back_and_a_log_may_be_rotated() {
        let mut record = record(FIRST, None);
        assert!(!record.add("", None), "the new file is empty");
        assert!(record.add("2026-01-01T09:00:00Z step 3/9\n", None));
        assert_eq!(record.numbers.step, Some(3.0));
    }

    #[test]
    fn with_a_pattern_only_a_new_step_is_progress() {
        let pattern = Pattern::new(r"^step (?P<step>\d+)").unwrap();
        let mut record = record(FIRST, Some(&pattern));
        let mut log = FIRST.to_owned();
        let mut add = |line: &str| {
            log += line;
            record.add(&log, Some(&pattern))
        };
        assert!(!add("2026-01-01T10:00:02Z alive\n2026-01-01T10:00:03Z step 2\n"));
        assert!(add("2026-01-01T10:00:04Z step 1\n"), "it began again");
        assert!(!add("2026-01-01T10:00:05Z alive\n"));
        assert_eq!(record.lines.back().map(String::as_str), Some("alive"));
        let alive = "2026-01-01T10:00:06Z alive\n";
        let cut_off = record.add(&alive.repeat(20), Some(&pattern));
        assert!(cut_off, "the part that was not read may have a step");
        assert!(!record.add(&alive.repeat(20), Some(&pattern)), "nothing is new");
    }

    #[test]
    fn a_step_may_be_in_the_file_before_a_rotation() {
        let pattern = Pattern::new(r"^step (?P<step>\d+)").unwrap();
        let mut record = record(FIRST, Some(&pattern));
        let alive = "2026-01-01T10:00:09Z alive\n";
        assert!(record.add(alive, Some(&pattern)), "it begins after the last line");
        let mut late = OutputRecord::default();
        assert!(
            late.add(alive, Some(&pattern)),
            "no read came before the rotation"
        );
        assert!(!late.has_begun, "the limit is that of the start");
        assert!(!record.add(&alive.repeat(2), Some(&pattern)));
    }

    #[test]
    fn a_bar_that_rewrites_its_line_is_read_to_its_end() {
        let bar = "2026-01-01T10:00:00Z \r  0%|  | 0/9 [00:00<?]\r 33%|# | 3/9 [00:01<00:02, 3it/s]\r\n";
        let record = record(bar, None);
        assert_eq!(
            (record.numbers.step, record.numbers.total),
            (Some(3.0), Some(9.0))
        );
        assert_eq!(record.line, " 33%|# | 3/9 [00:01<00:02, 3it/s]");
    }

    #[test]
    fn a_line_without_an_end_grows() {
        let pattern = Pattern::new(r"(?P<step>\d+)/9").unwrap();
        let first = "2026-01-01T10:00:00Z \r1/9\r2/9";
        let mut record = record(first, Some(&pattern));
        assert!(!record.add(first, Some(&pattern)));
        assert!(
            !record.add(&format!("{first}\ralive"), Some(&pattern)),
            "the step is the same"
        );
        assert!(record.add(&format!("{first}\ralive\r3/9"), Some(&pattern)));
    }

    #[test]
    fn lines_are_bounded() {
        let log: String = (0..9)
            .map(|n| format!("2026-01-01T10:00:0{n}Z {n}{}\n", "é".repeat(2_000)))
            .collect();
        let record = record(&log, None);
        assert_eq!(record.lines.len(), MAX_LINES);
        assert!(
            record.lines.iter().all(|line| line.len() <= MAX_LINE_BYTES),
            "{:?}",
            record.lines
        );
        assert!(!record.clone().add(&log, None), "the mark is found again");
    }
}
