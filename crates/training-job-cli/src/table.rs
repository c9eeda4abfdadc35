//! A table of text, with columns as wide as their contents.

use std::fmt;

/// Rows below headings. Empty columns are omitted.
pub(crate) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(headings: &[&str; N]) -> Self {
        Self {
            rows: vec![headings.map(str::to_owned)],
        }
    }

    pub(crate) fn row(&mut self, row: [String; N]) {
        self.rows.push(row);
    }
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
