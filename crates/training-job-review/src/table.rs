//! A table of text, with columns as wide as their contents.

use std::fmt;

/// Rows below headings. Empty columns are omitted.
pub struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// Creates a table without rows.
    pub fn new(headings: &[&str; N]) -> Self {
        Self {
            rows: vec![headings.map(str::to_owned)],
        }
    }

    /// Adds a row. Texts of the cluster may have any characters, and a cell is one line.
    pub fn row(&mut self, row: [String; N]) {
        self.rows.push(row.map(|cell| one_line(&cell)));
    }
}

/// Returns a text in one line, with a space for each control character: an escape sequence must not reach a terminal.
pub fn one_line(text: &str) -> String {
    text.trim().replace(char::is_control, " ")
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used: Vec<usize> = (0..N)
            .filter(|c| self.rows.iter().skip(1).any(|row| !row[*c].is_empty()))
            .collect();
        let width = |c: usize| {
            self.rows
                .iter()
                .map(|row| row[c].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = used.iter().map(|c| width(*c)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (c, width) in used.iter().zip(&widths) {
                let cell = if row[*c].is_empty() { "-" } else { row[*c].as_str() };
                line.push_str(&format!("{cell:width$}  "));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line_without_escape_sequences() {
        let mut table = Table::new(&["A", "B"]);
        table.row(["one\r\n\ttwo\n".to_owned(), "\u{1b}[31mred\u{9b}m".to_owned()]);
        assert_eq!(table.to_string(), "A          B\none   two   [31mred m\n");
    }
}
