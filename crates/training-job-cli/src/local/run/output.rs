//! The output while jobs run: on a terminal a live table below the replicas' lines, elsewhere plain lines.

use local_node::{NodeEvent, Prepared};
use training_job_controller::process::program;

use super::progress::{Change, Progress};
use super::summary;
use super::terminal::{self, LiveTable};
use crate::local::processes;

/// Colors of replicas' names, readable on dark and light backgrounds.
const COLORS: [u8; 6] = [36, 33, 35, 32, 34, 31];

/// The output of a run.
pub(super) struct Output {
    /// Present only on a terminal.
    table: Option<LiveTable>,
    colored: bool,
    why: bool,
}

impl Output {
    pub(super) fn new(terminal: bool, why: bool) -> Self {
        let table = LiveTable::new(terminal);
        // An empty value counts as unset, as no-color.org specifies.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colored: table.is_some() && !no_color,
            table,
            why,
        }
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
                let name = self.colored(&writer);
                match &mut self.table {
                    Some(table) if log.is_update => table.set_update(writer, &log.text),
                    Some(table) => {
                        table.end_update(&writer);
                        table.add_line(&format!("{name} | "), &log.text);
                    }
                    None => self.print(&format!("{name} | "), &log.text),
                }
            }
            NodeEvent::Prepared(prepared) if self.why => self.print_differences(prepared, progress),
            _ => {}
        }
    }

    /// Prints a change of a job or a replica as a line if there is no table. Redraws the table otherwise.
    pub(super) fn change(&mut self, change: Option<&Change>, progress: &Progress) {
        if let Some(Change { who, what, is_news }) = change
            && (self.table.is_none() || *is_news)
        {
            self.print(&format!("{} * ", progress.short(who)), what);
        }
        self.draw(progress);
    }

    /// Draws the lines and the table on a terminal.
    pub(super) fn draw(&mut self, progress: &Progress) {
        if let Some(table) = &mut self.table {
            table.draw(summary::table(progress));
        }
    }

    /// Removes the table. Later output is plain lines.
    pub(super) fn close(&mut self) {
        if let Some(table) = self.table.take() {
            table.close();
        }
    }

    fn print(&mut self, name: &str, text: &str) {
        match &mut self.table {
            Some(table) => table.add_line(name, text),
            None => terminal::write(&format!("{name}{text}\n")),
        }
    }

    fn colored(&self, name: &str) -> String {
        if !self.colored {
            return name.to_owned();
        }
        let sum = name.bytes().fold(0_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        format!("\u{1b}[{}m{name}\u{1b}[0m", COLORS[sum % COLORS.len()])
    }

    fn print_differences(&mut self, prepared: &Prepared, progress: &Progress) {
        let name = format!("{} ? ", progress.short(&prepared.pod));
        for line in processes::differences(prepared) {
            self.print(&name, &line);
        }
    }
}
