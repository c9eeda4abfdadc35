//! The output of processes: split into lines, kept as a tail, written to files.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use jiff::Timestamp;

use super::event::Stream;
use super::output::OutputWriter;

/// The longest line that is sent in one piece, in bytes.
const MAX_LINE_BYTES: usize = 16 * 1024;
/// The size of the log's tail in the status of a failed container, as with a kubelet's `FallbackToLogsOnError`.
const MAX_TAIL_LINES: usize = 80;
const MAX_TAIL_BYTES: usize = 2048;

/// A line without its end, or a piece of one that is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputLine {
    pub(super) bytes: Vec<u8>,
    /// True if a line feed followed.
    pub(super) ended: bool,
    /// The number of bytes at the beginning that were stored before.
    stored: usize,
}

impl OutputLine {
    /// Returns the text for people: of a line that overwrites itself its last state. Bytes that are not UTF-8 are
    /// replaced.
    pub(super) fn text(&self) -> String {
        last_state(&self.bytes)
    }
}

/// Returns what a terminal shows of a line: the part after the last carriage return that is followed by something.
fn last_state(line: &[u8]) -> String {
    let mut states = line.rsplit(|byte| *byte == b'\r');
    let last = states.find(|state| !state.is_empty()).unwrap_or_default();
    String::from_utf8_lossy(last).into_owned()
}

/// Splits a stream of bytes into lines.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    pending: Vec<u8>,
    /// The number of bytes of `pending` that are stored.
    stored: usize,
}

impl LineSplitter {
    /// Adds bytes and returns the lines that they complete.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Vec<OutputLine> {
        let mut lines = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.cut(&mut lines);
            lines.push(OutputLine {
                bytes: std::mem::take(&mut self.pending),
                ended: true,
                stored: std::mem::take(&mut self.stored),
            });
        }
        self.pending.extend_from_slice(bytes);
        self.cut(&mut lines);
        lines
    }

    /// Returns the present state of the unfinished line if it overwrites itself.
    pub(super) fn update(&self) -> Option<String> {
        let overwrites = self.pending.contains(&b'\r');
        Some(last_state(&self.pending)).filter(|state| overwrites && !state.is_empty())
    }

    /// Returns the part of the unfinished line that is not stored yet, which counts as stored from now on.
    pub(super) fn store(&mut self) -> &[u8] {
        let from = std::mem::replace(&mut self.stored, self.pending.len());
        self.pending.get(from..).unwrap_or_default()
    }

    /// Returns the rest after the end of the stream, if it did not end with a line feed.
    pub(super) fn finish(self) -> Option<OutputLine> {
        (!self.pending.is_empty()).then_some(OutputLine {
            bytes: self.pending,
            ended: false,
            stored: self.stored,
        })
    }

    fn cut(&mut self, lines: &mut Vec<OutputLine>) {
        while self.pending.len() > MAX_LINE_BYTES {
            // The line is not cut within a character. Continuation bytes are 10xxxxxx, and there are three at most.
            let back = (0..4)
                .find(|back| self.pending[MAX_LINE_BYTES - back] & 0xC0 != 0x80)
                .unwrap_or(0);
            let rest = self.pending.split_off(MAX_LINE_BYTES - back);
            let stored = self.stored.min(self.pending.len());
            self.stored -= stored;
            lines.push(OutputLine {
                bytes: std::mem::replace(&mut self.pending, rest),
                ended: false,
                stored,
            });
        }
    }
}

/// The last lines of a container's output.
#[derive(Debug, Default)]
pub(super) struct Tail {
    lines: VecDeque<String>,
}

impl Tail {
    pub(super) fn push(&mut self, line: String) {
        if self.lines.len() == MAX_TAIL_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// Returns the last lines, at most 80 lines and 2,048 bytes, or `None` if there was no output.
    pub(super) fn message(&self) -> Option<String> {
        let text = self
            .lines
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("\n");
        let mut start = text.len().saturating_sub(MAX_TAIL_BYTES);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        (!text.is_empty()).then(|| text[start..].to_owned())
    }
}

/// The file for the output of one run of a container. It is created with the first line.
#[derive(Debug)]
pub(super) enum LogFile {
    Missing(PathBuf),
    Open(File),
}

impl LogFile {
    /// Removes the file of an earlier run of the agent.
    pub(super) fn new(path: PathBuf) -> Self {
        // A file that cannot be removed cannot be written either, and the first line reports that.
        let _ = fs::remove_file(&path);
        Self::Missing(path)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Self::Missing(path) = self {
            // Output may be secret, so other users can read neither new directories nor files.
            let mut folders = DirBuilder::new();
            folders
                .recursive(true)
                .mode(0o700)
                .create(path.parent().unwrap_or(path))?;
            let mut options = OpenOptions::new();
            let file = options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(path)?;
            *self = Self::Open(file);
        }
        match self {
            Self::Missing(_) => Ok(()),
            Self::Open(file) => file.write_all(bytes),
        }
    }
}

/// The output of one run of a container: the tail for its status, the file for the user, and the stored output for
/// clients.
#[derive(Debug, Default)]
pub(super) struct RunLog {
    pub(super) tail: Tail,
    pub(super) file: Option<LogFile>,
    pub(super) stored: Option<OutputWriter>,
}

impl RunLog {
    /// Adds a line. After a failed write, the file for the user is closed. Stored output goes on with the first line that
    /// can be written again.
    ///
    /// # Errors
    /// The first failed write to a file.
    pub(super) fn write(&mut self, stream: Stream, line: &OutputLine) -> io::Result<()> {
        self.tail.push(line.text());
        let stored = self.stored.as_mut();
        let stored = stored.map_or(Ok(()), |stored| {
            let new = line.bytes.get(line.stored..).unwrap_or_default();
            stored.write(stream, new, line.ended, Timestamp::now())
        });
        self.write_file(line).and(stored)
    }

    /// Stores a piece of an unfinished line.
    ///
    /// # Errors
    /// The first failed write.
    pub(super) fn store(&mut self, stream: Stream, piece: &[u8]) -> io::Result<()> {
        let stored = self.stored.as_mut();
        stored.map_or(Ok(()), |stored| {
            stored.write(stream, piece, false, Timestamp::now())
        })
    }

    fn write_file(&mut self, line: &OutputLine) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut bytes = line.bytes.clone();
        bytes.extend(line.ended.then_some(b'\n'));
        let written = file.write(&bytes);
        if written.is_err() {
            self.file = None;
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = LineSplitter::default();
        let mut all: Vec<OutputLine> = chunks.iter().flat_map(|chunk| lines.push(chunk)).collect();
        all.extend(lines.finish());
        all.iter().map(OutputLine::text).collect()
    }

    #[test]
    fn lines_are_found_however_the_bytes_arrive() {
        for (chunks, expected) in [
            (&[b"a\nb\n" as &[u8]] as &[&[u8]], &["a", "b"] as &[&str]),
            (&[b"a", b"b\nc", b"\n"], &["ab", "c"]),
            (&[b"no end"], &["no end"]),
            (&[b"\n\nx"], &["", "", "x"]),
            (&[b"dos\r\n"], &["dos"]),
            (&[b"\r10%\r20%", b"\r100%\n"], &["100%"]),
            (&[b"\xff\xfeok\n"], &["\u{fffd}\u{fffd}ok"]),
            (&[b"\xc3", b"\xa9\n"], &["é"]),
            (&[], &[]),
        ] {
            assert_eq!(cut(chunks), expected, "{chunks:?}");
        }
    }

    #[test]
    fn a_line_that_overwrites_itself_has_a_state_before_its_end() {
        let mut lines = LineSplitter::default();
        let mut stored = Vec::new();
        for (chunk, state) in [
            (&b"a line\nand another"[..], None),
            (b"\r10", Some("10")),
            (b"%", Some("10%")),
            (b"\r20%\r", Some("20%")),
            (b"\n", None),
        ] {
            for line in lines.push(chunk) {
                stored.extend_from_slice(&line.bytes[line.stored..]);
            }
            assert_eq!(lines.update().as_deref(), state);
            stored.extend_from_slice(lines.store());
        }
        assert_eq!(
            stored, b"a lineand another\r10%\r20%\r",
            "each byte is stored once"
        );
    }

    #[test]
    fn long_lines_are_cut_between_characters_and_nothing_is_lost() {
        for text in [
            "x".repeat(40_000),
            format!("a{}", "é".repeat(20_000)),
            format!("ab{}", "€".repeat(20_000)),
        ] {
            let lines = cut(&[text.as_bytes(), b"\nnext"]);
            assert!(
                lines
                    .iter()
                    .all(|line| line.len() <= MAX_LINE_BYTES && !line.contains('\u{fffd}'))
            );
            assert_eq!(lines[..lines.len() - 1].concat(), text);
        }
        let binary = vec![0x80; 40_000];
        let mut lines = LineSplitter::default();
        let pieces = lines.push(&binary);
        let rest = lines.finish().unwrap();
        assert_eq!(
            pieces
                .iter()
                .chain([&rest])
                .map(|line| line.bytes.len())
                .sum::<usize>(),
            40_000
        );
    }

    #[test]
    fn the_tail_is_bounded() {
        let mut tail = Tail::default();
        assert_eq!(tail.message(), None);
        for line in 0..200 {
            tail.push(format!("line {line}"));
        }
        let message = tail.message().unwrap();
        assert!(message.starts_with("line 120\n") && message.ends_with("line 199"));
        tail.push("é".repeat(3000));
        let message = tail.message().unwrap();
        assert!(message.len() <= MAX_TAIL_BYTES && message.chars().all(|c| c == 'é'));
    }
}
