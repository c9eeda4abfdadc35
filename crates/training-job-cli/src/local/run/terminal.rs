//! A table that stays at the bottom of the terminal while lines scroll above it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustix::termios::tcgetwinsize;

/// The maximum number of lines that overwrite themselves above the table, and their share of the screen's rows.
const MAX_UPDATES: usize = 8;
const UPDATES_SHARE: usize = 3;

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
    /// Returns `None` if standard output is not a terminal, or is a terminal that cannot move its cursor.
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
    pub(super) fn set_update(&mut self, writer: String, line: String) {
        self.updates.insert(writer, line);
    }

    /// Removes the state of a writer's line, because the line has ended.
    pub(super) fn end_update(&mut self, writer: &str) {
        self.updates.remove(writer);
    }

    /// Draws the new lines and the table if anything has changed. `table` gets the numbers of rows and columns of the
    /// terminal.
    pub(super) fn draw(&mut self, table: impl Fn(usize, usize) -> Vec<String>) -> io::Result<()> {
        let (rows, columns) = size();
        let updates = self.updates.values().take(MAX_UPDATES.min(rows / UPDATES_SHARE));
        let updates = updates.map(|line| line.chars().take(columns).collect());
        let table: Vec<String> = updates.chain(table(rows, columns)).collect();
        if self.lines.is_empty() && table == self.rows {
            return Ok(());
        }
        let mut text = self.erase();
        text.push_str(&std::mem::take(&mut self.lines));
        for row in &table {
            text.push_str(row);
            text.push('\n');
        }
        self.drawn = table.len();
        self.rows = table;
        write(&text)
    }

    /// Draws the last lines and removes the table.
    pub(super) fn close(mut self) -> io::Result<()> {
        let text = self.erase() + &self.lines;
        write(&text)
    }

    /// Returns the escape sequence that erases the table, and the `^C` that the terminal may have written after it.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => "\r\u{1b}[J".to_owned(),
            rows => format!("\r\u{1b}[{rows}A\u{1b}[J"),
        }
    }
}

fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).ok();
    let or = |number: u16, default| if number == 0 { default } else { number.into() };
    size.map_or((DEFAULT_ROWS, DEFAULT_COLUMNS), |size| {
        (or(size.ws_row, DEFAULT_ROWS), or(size.ws_col, DEFAULT_COLUMNS))
    })
}

/// Writes to standard output in one piece, so that no half-drawn table is visible.
pub(super) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}
