//! What is shown while jobs run: on a terminal a table that changes below the replicas' lines,
//! elsewhere plain lines.

use local_node::{NodeEvent, Prepared};

use crate::machine;

use super::board::{Board, News};
use super::screen::{self, Screen};
use super::summary;

/// Colours of replicas' names: readable on dark and light.
const COLOURS: [u8; 6] = [36, 33, 35, 32, 34, 31];

/// The view of a run.
pub(super) struct View {
    screen: Option<Screen>,
    coloured: bool,
    why: bool,
}

impl View {
    pub(super) fn new(terminal: bool, why: bool) -> Self {
        let screen = Screen::new(terminal);
        // As no-color.org has it: an empty value asks for nothing.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            coloured: screen.is_some() && !no_color,
            screen,
            why,
        }
    }

    /// A word of our own.
    pub(super) fn note(&mut self, text: &str) {
        self.print("training-operator: ", text);
    }

    /// What a process wrote, or how it differs from its pod. On a terminal it is seen at the next [`tick`](Self::tick).
    pub(super) fn output(&mut self, event: &NodeEvent, board: &Board) {
        match event {
            NodeEvent::Log(log) => {
                let name = self.coloured(&machine::speaker(board.short(&log.pod), log));
                self.print(&format!("{name} | "), &log.text);
            }
            NodeEvent::Prepared(prepared) if self.why => self.why(prepared, board),
            _ => {}
        }
    }

    /// News of a job or a replica: lines where there is no table.
    pub(super) fn changed(&mut self, news: Option<&News>, board: &Board) {
        if self.screen.is_none()
            && let Some(News { who, what }) = news
        {
            screen::write(&format!("{} * {what}\n", board.short(who)));
        }
        self.tick(board);
    }

    /// Brings the terminal up to date.
    pub(super) fn tick(&mut self, board: &Board) {
        if let Some(screen) = &mut self.screen {
            screen.show(summary::table(board));
        }
    }

    /// Takes the table away; from here on there are plain lines.
    pub(super) fn close(&mut self) {
        if let Some(screen) = self.screen.take() {
            screen.close();
        }
    }

    fn print(&mut self, name: &str, text: &str) {
        match &mut self.screen {
            Some(screen) => screen.line(name, text),
            None => screen::write(&format!("{name}{text}\n")),
        }
    }

    fn coloured(&self, name: &str) -> String {
        if !self.coloured {
            return name.to_owned();
        }
        let sum = name.bytes().fold(0_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        format!("\u{1b}[{}m{name}\u{1b}[0m", COLOURS[sum % COLOURS.len()])
    }

    fn why(&mut self, prepared: &Prepared, board: &Board) {
        let name = format!("{} ? ", board.short(&prepared.pod));
        for line in machine::why(prepared) {
            self.print(&name, &line);
        }
    }
}
