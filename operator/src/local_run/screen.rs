//! A terminal on which lines run by above a table that stays.

use std::io::{self, Write};

use rustix::termios::tcgetwinsize;

/// The size of a terminal that does not tell its own.
const ROWS: usize = 24;
const COLUMNS: usize = 80;

/// Standard output, if it is a terminal that can move its cursor.
pub(super) struct Screen {
    /// The rows of the table that stand above the cursor.
    shown: usize,
    table: Vec<String>,
    /// Lines that are to go above the table.
    lines: String,
}

impl Screen {
    /// `None` where plain lines are wanted.
    pub(super) fn new(terminal: bool) -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        (terminal && !dumb).then(|| Self {
            shown: 0,
            table: Vec::new(),
            lines: String::new(),
        })
    }

    /// Puts a line above the table when it is next drawn. Of a line that was written over and over, as progress bars
    /// are, the last state counts: the others would cover the replica's name.
    pub(super) fn line(&mut self, name: &str, text: &str) {
        let last = text
            .rsplit('\r')
            .find(|part| !part.is_empty())
            .unwrap_or_default();
        self.lines.push_str(name);
        self.lines.push_str(last);
        self.lines.push('\n');
    }

    /// Shows the lines and the table, if anything has changed.
    pub(super) fn show(&mut self, table: Vec<String>) {
        let (rows, columns) = size();
        let table = fitting(table, rows, columns);
        if self.lines.is_empty() && table == self.table {
            return;
        }
        let mut text = self.erasing();
        text.push_str(&std::mem::take(&mut self.lines));
        for row in &table {
            text.push_str(row);
            text.push('\n');
        }
        self.shown = table.len();
        self.table = table;
        write(&text);
    }

    /// Shows the last lines and takes the table away.
    pub(super) fn close(mut self) {
        let text = self.erasing() + &self.lines;
        write(&text);
    }

    fn erasing(&mut self) -> String {
        match std::mem::take(&mut self.shown) {
            0 => String::new(),
            rows => format!("\u{1b}[{rows}A\u{1b}[J"),
        }
    }
}

/// The table without what would not fit: a row that is wrapped, or scrolled away, cannot be erased.
fn fitting(table: Vec<String>, rows: usize, columns: usize) -> Vec<String> {
    let room = rows.saturating_sub(1);
    let rest = (table.len() + 1).saturating_sub(room);
    let hidden = (table.len() > room).then(|| format!("... and {rest} more"));
    let kept = if hidden.is_some() {
        room.saturating_sub(1)
    } else {
        room
    };
    let all = table.into_iter().take(kept).chain(hidden.filter(|_| room > 0));
    all.map(|row| row.chars().take(columns).collect()).collect()
}

fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).ok();
    let or = |number: u16, default| if number == 0 { default } else { number.into() };
    size.map_or((ROWS, COLUMNS), |size| {
        (or(size.ws_row, ROWS), or(size.ws_col, COLUMNS))
    })
}

/// Writes to standard output in one piece, so that nothing half-drawn is seen. A reader that is gone sees nothing; the
/// run goes on.
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
        let fitted = |rows, columns| fitting(table(), rows, columns).join("|");
        assert_eq!(fitted(5, 80), "head|one|two|three");
        assert_eq!(fitted(4, 80), "head|one|... and 2 more");
        assert_eq!(fitted(3, 80), "head|... and 3 more");
        assert_eq!(fitted(1, 80), "");
        assert_eq!(fitted(5, 3), "hea|one|two|thr");
    }
}
