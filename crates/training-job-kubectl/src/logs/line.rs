//! Lines of logs: their times, their order, and their colors.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use anstyle::{AnsiColor, Style};
use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::Timestamp;
use training_job_review::write;

/// A line of one log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    pub(super) time: Timestamp,
    /// The position of its replica in the painter.
    pub(super) replica: usize,
    pub(super) text: String,
}

impl Line {
    /// Reads a line that begins with its time. A line without a time, such as the rest of a very long one, has that of
    /// the line before.
    pub(super) fn parse(text: &str, replica: usize, before: Timestamp) -> Self {
        let text = text.trim_end_matches(['\n', '\r']);
        let (time, rest) = text.split_once(' ').unwrap_or((text, ""));
        match time.parse() {
            Ok(time) => Self {
                time,
                replica,
                text: rest.to_owned(),
            },
            Err(_) => Self {
                time: before,
                replica,
                text: text.to_owned(),
            },
        }
    }
}

const COLORS: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Yellow,
    AnsiColor::Blue,
    AnsiColor::Magenta,
    AnsiColor::Red,
];

/// Formats lines with the names of their replicas.
#[derive(Debug)]
pub(super) struct Painter {
    names: Vec<String>,
    width: usize,
    has_times: bool,
}

impl Painter {
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>, has_times: bool) -> Self {
        let names: Vec<String> = names.map(str::to_owned).collect();
        Self {
            width: names.iter().map(String::len).max().unwrap_or(0),
            names,
            has_times,
        }
    }

    /// Returns the position of a replica, which is added if it is new.
    pub(super) fn position(&mut self, name: &str) -> usize {
        if let Some(position) = self.names.iter().position(|own| own == name) {
            return position;
        }
        self.width = self.width.max(name.len());
        self.names.push(name.to_owned());
        self.names.len() - 1
    }

    /// Returns a line with terminal styles.
    pub(super) fn paint(&self, line: &Line) -> String {
        let name = self.names.get(line.replica).map_or("", String::as_str);
        let color = COLORS.get(line.replica % COLORS.len()).copied();
        let style = color.map_or_else(Style::new, AnsiColor::on_default);
        let time = if self.has_times {
            format!("{} ", line.time)
        } else {
            String::new()
        };
        format!(
            "{style}{name:width$} |{style:#} {time}{}\n",
            line.text,
            width = self.width
        )
    }

    /// Prints lines. Returns false if the reader of the output is gone.
    pub(super) fn print<'a>(&self, lines: impl IntoIterator<Item = &'a Line>) -> io::Result<bool> {
        let text: String = lines.into_iter().map(|line| self.paint(line)).collect();
        write::print_lines(&text)
    }
}

/// The lines of one log, in their order.
pub(super) type Lines = BoxStream<'static, anyhow::Result<Line>>;

/// Prints the lines of all logs, ordered by time. The lines of one log keep their order.
///
/// # Errors
/// A log or the output failed.
pub(super) async fn merge(mut streams: Vec<Lines>, painter: &Painter) -> anyhow::Result<()> {
    let mut heads = BinaryHeap::new();
    for (n, stream) in streams.iter_mut().enumerate() {
        if let Some(line) = stream.next().await {
            heads.push(Reverse((line?, n)));
        }
    }
    while let Some(Reverse((line, n))) = heads.pop() {
        if !painter.print([&line])? {
            return Ok(());
        }
        let next = match streams.get_mut(n) {
            Some(stream) => stream.next().await,
            None => None,
        };
        if let Some(next) = next {
            let next = next?;
            // The clock of a node may be set back.
            heads.push(Reverse((
                Line {
                    time: next.time.max(line.time),
                    ..next
                },
                n,
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
