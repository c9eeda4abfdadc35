//! Help texts with the name of the program.

use training_job_program::program;

/// Returns a help text with the program's name in the place of each `{program}`. The lines of a paragraph, and of an
/// item that begins with `*`, are joined, so that they are wrapped once, to the width of the terminal. Other indented
/// lines stay as they are.
pub fn help(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut in_item = false;
    for line in text.lines() {
        let is_indented = line.starts_with(' ');
        let continues = match in_item {
            true => is_indented,
            false => !is_indented,
        };
        let last = joined.lines().next_back().unwrap_or_default();
        if !line.is_empty()
            && !line.starts_with("* ")
            && !last.is_empty()
            && !last.starts_with("  ")
            && continues
        {
            joined.pop();
            joined.push(' ');
            joined.push_str(line.trim_start());
        } else {
            joined.push_str(line);
            in_item = line.starts_with("* ");
        }
        joined.push('\n');
    }
    joined.truncate(joined.trim_end().len());
    joined.replace("{program}", &program().name)
}

#[cfg(test)]
mod tests {
    use super::help;

    #[test]
    fn paragraphs_and_items_are_joined_and_examples_are_not() {
        let text =
            "One\nparagraph.\n\n* An item\n  of two lines.\n* Another.\n\nExamples:\n  a job\n  a shop\nEnd.";
        let expected =
            "One paragraph.\n\n* An item of two lines.\n* Another.\n\nExamples:\n  a job\n  a shop\nEnd.";
        assert_eq!(help(text), expected);
    }
}
