//! A table that stays at the bottom of the terminal while lines scroll above it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustix::termios::tcgetwinsize;

/// The maximum number of lines that overwrite themselves above the table.
const MAX_UPDATES: usize = 8;

/// The height and width of a terminal whose size is unknown.
const DEFAULT_ROWS: usize = 24;
const DEFAULT_COLUMNS: usize = 80;

/// The table at the bottom of standard output. Standard output must be a terminal that can move its cursor.
pub(super) struct LiveTable {
    /// The number of rows of the table above the cursor.
    drawn: usize,
    rows: Vec<String>,
    /// Lines to print above the table when it is next drawn.
    lines: String,
    /// The present states of lines that overwrite themselves, by the name of their writer. They stand above the table.
    updates: BTreeMap<String, String>,
}

impl LiveTable {
    /// Returns `None` if standard output is no terminal, or is a terminal that cannot move its cursor.
    pub(super) fn new(terminal: bool) -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        (terminal && !dumb).then(|| Self {
            drawn: 0,
            rows: Vec::new(),
            lines: String::new(),
            updates: BTreeMap::new(),
        })
    }

    /// Adds a line above the table for the next [`draw`](Self::draw).
    pub(super) fn add_line(&mut self, name: &str, text: &str) {
        self.lines.push_str(name);
        self.lines.push_str(text);
        self.lines.push('\n');
    }

    /// Sets the present state of a writer's line that overwrites itself.
    pub(super) fn set_update(&mut self, writer: String, text: &str) {
        self.updates.insert(writer, text.to_owned());
    }

    /// Removes the state of a writer's line, because the line has ended.
    pub(super) fn end_update(&mut self, writer: &str) {
        self.updates.remove(writer);
    }

    /// Draws the new lines and the table if anything has changed.
    pub(super) fn draw(&mut self, table: Vec<String>) {
        let (rows, columns) = size();
        let updates = self.updates.iter().take(MAX_UPDATES);
        let updates = updates.map(|(writer, text)| format!("{writer} | {text}"));
        let table = cut(updates.chain(table).collect(), rows, columns);
        if self.lines.is_empty() && table == self.rows {
            return;
        }
        let mut text = self.erase();
        text.push_str(&std::mem::take(&mut self.lines));
        for row in &table {
            text.push_str(row);
            text.push('\n');
        }
        self.drawn = table.len();
        self.rows = table;
        write(&text);
    }

    /// Draws the last lines and removes the table.
    pub(super) fn close(mut self) {
        let text = self.erase() + &self.lines;
        write(&text);
    }

    /// Returns the escape sequence that erases the table.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            rows => format!("\u{1b}[{rows}A\u{1b}[J"),
        }
    }
}

/// Returns the table cut to the terminal's size. A row that is wrapped or scrolled away cannot be erased.
fn cut(table: Vec<String>, rows: usize, columns: usize) -> Vec<String> {
    let height = rows.saturating_sub(1);
    let rest = (table.len() + 1).saturating_sub(height);
    let hidden = (table.len() > height).then(|| format!("... and {rest} more"));
    let kept = if hidden.is_some() {
        height.saturating_sub(1)
    } else {
        height
    };
    let all = table.into_iter().take(kept).chain(hidden.filter(|_| height > 0));
    all.map(|row| row.chars().take(columns).collect()).collect()
}

fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).ok();
    let or = |number: u16, default| if number == 0 { default } else { number.into() };
    size.map_or((DEFAULT_ROWS, DEFAULT_COLUMNS), |size| {
        (or(size.ws_row, DEFAULT_ROWS), or(size.ws_col, DEFAULT_COLUMNS))
    })
}

/// Writes to standard output in one piece, so that no half-drawn table is visible. Errors are ignored, because the
/// run continues without a reader.
pub(super) fn write(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_cut_to_the_terminal() {
        let table = || ["head", "one", "two", "three"].map(str::to_owned).to_vec();
        let cut_to = |rows, columns| cut(table(), rows, columns).join("|");
        assert_eq!(cut_to(5, 80), "head|one|two|three");
        assert_eq!(cut_to(4, 80), "head|one|... and 2 more");
        assert_eq!(cut_to(3, 80), "head|... and 3 more");
        assert_eq!(cut_to(1, 80), "");
        assert_eq!(cut_to(5, 3), "hea|one|two|thr");
    }
}
