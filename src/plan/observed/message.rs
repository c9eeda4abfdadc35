//! Bounds of the messages that containers and nodes write.

use crate::plan::printable::printable;

/// The maximum size of a stored message, in bytes.
pub const MAX_MESSAGE: usize = 2_048;

/// Returns the end of a message, with at most `bound` bytes. The end is kept because it has the most information.
pub(crate) fn last_words(message: String, bound: usize) -> String {
    let mut from = message.len().saturating_sub(bound);
    while !message.is_char_boundary(from) {
        from += 1;
    }
    if from == 0 {
        message
    } else {
        message[from..].to_owned()
    }
}

/// Returns the end of a text that a container or a node wrote, printable.
pub(super) fn cut(message: String) -> String {
    last_words(printable(last_words(message, MAX_MESSAGE)), MAX_MESSAGE)
}
