//! Parts of Markdown documents, as GitHub and GitLab render them.

/// Returns text for a cell of a table, on one line.
pub(crate) fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => cell.push(' '),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '~' | '#' => cell.extend(['\\', c]),
            c => cell.push(c),
        }
    }
    cell
}

/// Returns text as code for a cell of a table, on one line.
pub(crate) fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ").replace('|', "\\|");
    let marks = "`".repeat(longest_run_of_backticks(&text) + 1);
    let edge = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{marks}{edge}{text}{edge}{marks}")
}

/// Returns a table. The cells must be escaped.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut text = format!("| {} |\n|{}\n", headings.join(" | "), "---|".repeat(N));
    for row in rows {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text
}

/// Returns text as a block of a language. The fence is longer than any fence in the text.
pub(crate) fn block(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run_of_backticks(text).max(2) + 1);
    format!("{fence}{language}\n{text}{fence}\n")
}

fn longest_run_of_backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_job_stays_text() {
        assert_eq!(cell("a|b\n<img>*"), r"a\|b \<img\>\*");
        assert_eq!(code("a|b"), r"`a\|b`");
        assert_eq!(code("`a``b`"), "``` `a``b` ```");
        assert_eq!(block("diff", "+```\n"), "````diff\n+```\n````\n");
        let rows = [["a".to_owned(), "b".to_owned()]];
        assert_eq!(
            table(["A", "B"], rows.into_iter()),
            "| A | B |\n|---|---|\n| a | b |\n"
        );
    }
}
