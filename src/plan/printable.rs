//! Escapes texts from outside the operator, so that they are safe to print.

use std::fmt::Write;

/// Escapes characters that a terminal would interpret instead of print, as `\u{1b}`: control characters, and marks
/// that reorder a line. New lines and tabs stay, so that a traceback can be read.
///
/// It is for texts that containers, nodes and servers wrote, and that become part of a status, an event or a log.
pub fn printable(text: String) -> String {
    if !text.chars().any(commands) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if commands(character) {
            // Writing to a string does not fail.
            let _ = write!(escaped, "{}", character.escape_unicode());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Returns true for a character that a terminal interprets.
fn commands(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_characters_that_a_terminal_interprets_are_escaped() {
        for (text, expected) in [
            ("Traceback:\n\tline 1 é 漢 🦀", "Traceback:\n\tline 1 é 漢 🦀"),
            ("\x1b[2Jgone\x07", r"\u{1b}[2Jgone\u{7}"),
            ("50%\r100%\0", r"50%\u{d}100%\u{0}"),
            ("\u{9b}31m\u{7f}", r"\u{9b}31m\u{7f}"),
            ("a\u{202e}b\u{2069}", r"a\u{202e}b\u{2069}"),
        ] {
            assert_eq!(printable(text.to_owned()), expected);
        }
    }
}
