//! Printable, bounded texts.

/// The maximum length of a message, in characters.
pub(crate) const MAX_MESSAGE: usize = 2_048;

/// The maximum length of a line or a value, in characters.
pub(crate) const MAX_LINE: usize = 500;

/// Returns a text without control characters and without those that change the direction of text, cut to `max` characters.
/// Line ends and tabs remain. Colors of terminals are removed.
pub(crate) fn printable(text: &str, max: usize) -> String {
    let mut printable = String::with_capacity(text.len().min(max));
    let mut length = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            skip_escape_sequence(&mut chars);
            continue;
        }
        if is_hidden(c) {
            continue;
        }
        if length == max {
            printable.push('…');
            break;
        }
        printable.push(c);
        length += 1;
    }
    printable
}

/// Returns true for characters that are invisible or change the direction of text, other than line ends and tabs.
pub(crate) fn is_hidden(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\n' | '\t');
    is_control
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
        || matches!(c, '\u{fdd0}'..='\u{fdef}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// Skips the rest of a sequence such as `ESC [ 1 ; 31 m`.
fn skip_escape_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    if chars.next_if_eq(&'[').is_some() {
        while chars
            .next_if(|c| c.is_ascii_digit() || matches!(c, ';' | '?'))
            .is_some()
        {}
        chars.next_if(char::is_ascii_alphabetic);
    }
}

/// Returns a printable message.
pub(crate) fn message(text: &str) -> String {
    printable(text, MAX_MESSAGE)
}

/// Returns a printable line or value.
pub(crate) fn line(text: &str) -> String {
    printable(text, MAX_LINE)
}
