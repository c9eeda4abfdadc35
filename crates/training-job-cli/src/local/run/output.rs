//! The output while jobs run: on a terminal a live table below the replicas' lines, elsewhere plain lines.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::time::Instant;

use local_node::{NodeEvent, Prepared};
use training_job_program::program;

use super::progress::{Change, Progress};
use super::silence::Silence;
use super::table::{self, JobLine};
use super::terminal::{self, LiveTable};
use crate::local::processes;

/// Colors of replicas' names, readable on dark and light backgrounds.
const COLORS: [u8; 6] = [36, 33, 35, 32, 34, 31];

/// The output of a run.
pub(super) struct Output {
    /// Present only on a terminal.
    table: Option<LiveTable>,
    /// True if lines go to standard error, because standard output is for the result.
    to_stderr: bool,
    colored: bool,
    why: bool,
    /// The differences between processes and containers that are printed already. Most are those of all replicas.
    differences: BTreeSet<String>,
    /// The pods whose output is printed. `None`: all.
    only: Option<BTreeSet<String>>,
    /// The width of the names before lines; 0 without a table, so that programs that read the lines can rely on
    /// one space.
    width: usize,
    silence: Silence,
    /// The first failed write, except one to a reader that has gone.
    failure: Option<io::Error>,
}

/// The maximum width to which the names before lines are padded.
const MAX_NAME_WIDTH: usize = 32;

impl Output {
    /// `width` is the greatest width of the names before lines.
    pub(super) fn new(terminal: bool, to_stderr: bool, width: usize) -> Self {
        let table = LiveTable::new(terminal);
        // An empty value counts as unset, as no-color.org specifies.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colored: table.is_some() && !no_color,
            width: if table.is_some() {
                width.min(MAX_NAME_WIDTH)
            } else {
                0
            },
            table,
            to_stderr,
            why: false,
            differences: BTreeSet::new(),
            only: None,
            silence: Silence::new(Instant::now()),
            failure: None,
        }
    }

    /// Prints how each process differs from its container. A difference that several replicas have is printed once.
    pub(super) fn with_differences(mut self, why: bool) -> Self {
        self.why = why;
        self
    }

    /// Prints the output of these pods only, if any are given.
    pub(super) fn of_pods(mut self, only: Option<BTreeSet<String>>) -> Self {
        self.only = only;
        self
    }

    /// Prints a line of the program itself.
    pub(super) fn note(&mut self, text: &str) {
        self.print(&format!("{}: ", program().name), text);
    }

    /// Prints the output of a process, or its differences from its container. On a terminal the line appears at the
    /// next [`draw`](Self::draw).
    pub(super) fn node_event(&mut self, event: &NodeEvent, progress: &Progress) {
        match event {
            NodeEvent::Log(log) => {
                let writer = processes::writer(progress.short(&log.pod), log);
                self.silence.wrote(&writer, Instant::now());
                if self.only.as_ref().is_some_and(|only| !only.contains(&log.pod)) {
                    return;
                }
                let name = format!("{} | ", self.padded(&writer));
                match &mut self.table {
                    Some(table) if log.is_update => table.set_update(writer, name + &log.text),
                    Some(table) => {
                        table.end_update(&writer);
                        table.add_line(&name, &log.text);
                    }
                    None => self.print(&name, &log.text),
                }
            }
            NodeEvent::LogLost(lost) => {
                let name = self.padded(progress.short(&lost.pod));
                self.print(&format!("{name} * "), &lost.to_string());
            }
            NodeEvent::Prepared(prepared) if self.why => self.print_differences(prepared, progress),
            _ => {}
        }
    }

    /// Prints a change of a job or a replica as a line if it is news or no table is shown.
    pub(super) fn change(&mut self, change: &Change, progress: &Progress) {
        self.silence.printed(Instant::now());
        if self.table.is_none() || change.is_news {
            let name = self.padded(progress.short(&change.who));
            self.print(&format!("{name} * "), &change.what);
        }
    }

    /// Prints a line if nothing was printed for a minute.
    pub(super) fn note_silence(&mut self) {
        if let Some(line) = self.silence.note(Instant::now()) {
            self.note(&line);
        }
    }

    /// Returns the latest output of a process as a text.
    pub(super) fn last_output(&self) -> String {
        self.silence.last(Instant::now())
    }

    /// Draws the lines and the table on a terminal.
    pub(super) fn draw(&mut self, jobs: &[JobLine], progress: &Progress) {
        if let Some(table) = &mut self.table {
            let (roles, troubled) = (progress.role_rows(), progress.troubled_rows());
            let written = table.draw(|rows, columns| table::live(jobs, &roles, &troubled, rows, columns));
            self.check(written);
        }
    }

    /// Removes the table. Later output is plain lines.
    pub(super) fn close(&mut self) {
        if let Some(table) = self.table.take() {
            let written = table.close();
            self.check(written);
        }
    }

    /// Prints the text at the end of the run. Returns the first failed write of the whole run, if any.
    pub(super) fn finish(mut self, text: &str) -> Option<io::Error> {
        self.write(text);
        self.failure
    }

    fn write(&mut self, text: &str) {
        let written = match self.to_stderr {
            true => io::stderr().write_all(text.as_bytes()),
            false => terminal::write(text),
        };
        self.check(written);
    }

    /// Records a failed write. The run continues, and also without a reader.
    fn check(&mut self, written: io::Result<()>) {
        let failure = written
            .err()
            .filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
        self.failure = self.failure.take().or(failure);
    }

    fn print(&mut self, name: &str, text: &str) {
        match &mut self.table {
            Some(table) => table.add_line(name, text),
            None => self.write(&format!("{name}{text}\n")),
        }
    }

    /// Returns a name in its color, padded to the width of the names before lines.
    fn padded(&self, name: &str) -> String {
        let pad = " ".repeat(self.width.saturating_sub(name.chars().count()));
        if !self.colored {
            return format!("{name}{pad}");
        }
        let sum = name.bytes().fold(0_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        format!("\u{1b}[{}m{name}\u{1b}[0m{pad}", COLORS[sum % COLORS.len()])
    }

    fn print_differences(&mut self, prepared: &Prepared, progress: &Progress) {
        let name = format!("{} ? ", self.padded(progress.short(&prepared.pod)));
        for line in processes::differences(prepared) {
            if self.differences.insert(line.clone()) {
                self.print(&name, &line);
            }
        }
    }
}
