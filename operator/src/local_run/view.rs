//! What is shown while jobs run: on a terminal a table that changes below the replicas' lines,
//! elsewhere plain lines.

use std::collections::BTreeMap;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use training_job::local::{NodeEvent, Prepared};

use super::board::{Board, News};
use super::summary;

/// Colours of replicas' names: readable on dark and light.
const COLOURS: [u8; 6] = [36, 33, 35, 32, 34, 31];

/// The view of a run.
pub(super) struct View {
    live: Option<Live>,
    why: bool,
}

struct Live {
    progress: MultiProgress,
    header: ProgressBar,
    rows: BTreeMap<String, ProgressBar>,
    coloured: bool,
}

impl View {
    pub(super) fn new(terminal: bool, why: bool) -> Self {
        let live = terminal.then(|| {
            let progress = MultiProgress::new();
            let header = progress.add(line());
            let coloured = std::env::var_os("NO_COLOR").is_none();
            Live {
                progress,
                header,
                rows: BTreeMap::new(),
                coloured,
            }
        });
        Self { live, why }
    }

    /// A word of our own.
    pub(super) fn note(&self, text: &str) {
        self.print(&format!("training-operator: {text}"));
    }

    /// What a process wrote, or how it differs from its pod.
    pub(super) fn output(&self, event: &NodeEvent, board: &Board) {
        match event {
            NodeEvent::Log(log) => {
                let mut name = board.short(&log.pod).to_owned();
                if let Some(container) = &log.container {
                    name = format!("{name}/{container}");
                }
                self.print(&format!("{} | {}", self.coloured(&name), log.text));
            }
            NodeEvent::Prepared(prepared) if self.why => self.print(&why(prepared, board)),
            _ => {}
        }
    }

    /// News of a job or a replica: lines where there is no table.
    pub(super) fn changed(&mut self, news: &[News], board: &Board) {
        if self.live.is_none() {
            for News { who, what } in news {
                println!("{} * {what}", board.short(who));
            }
        }
        self.tick(board);
    }

    /// Brings the table up to date.
    pub(super) fn tick(&mut self, board: &Board) {
        let Some(live) = &mut self.live else { return };
        let now = jiff::Timestamp::now();
        live.header.set_message(summary::header());
        for (name, row) in board.rows() {
            let bar = live
                .rows
                .entry(name.clone())
                .or_insert_with(|| live.progress.add(line()));
            bar.set_message(summary::line(board.short(name), row, now));
        }
    }

    /// Takes the table away.
    pub(super) fn close(&mut self) {
        if let Some(live) = self.live.take() {
            // A terminal that is gone needs no tidying.
            let _ = live.progress.clear();
        }
    }

    fn print(&self, text: &str) {
        match &self.live {
            Some(live) => {
                // A terminal that is gone shows nothing; the run goes on.
                let _ = live.progress.println(text);
            }
            None => println!("{text}"),
        }
    }

    fn coloured(&self, name: &str) -> String {
        if !self.live.as_ref().is_some_and(|live| live.coloured) {
            return name.to_owned();
        }
        let sum = name.bytes().fold(0_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        format!("\u{1b}[{}m{name}\u{1b}[0m", COLOURS[sum % COLOURS.len()])
    }
}

fn line() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    match ProgressStyle::with_template("{msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn why(prepared: &Prepared, board: &Board) -> String {
    let name = board.short(&prepared.pod);
    if prepared.differences.is_empty() {
        return format!("{name} ? as in a cluster");
    }
    let lines = prepared
        .differences
        .iter()
        .map(|difference| format!("{name} ? {difference}"));
    lines.collect::<Vec<_>>().join("\n")
}
