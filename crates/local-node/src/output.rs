//! The stored output of containers, as a kubelet keeps it for `kubectl logs`.
//!
//! Each run of a container has files of its own in the pod's folder. A line of such a file is an entry: time, stream,
//! `F` for a full line or `P` for a piece of one, and the text. The files of a run are bounded: the oldest is removed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::event::Stream;

/// The size at which the next file of a run begins, as with a kubelet's `containerLogMaxSize`.
const MAX_FILE_BYTES: u64 = 10 * 1024 * 1024;

/// The number of files of one run, as with a kubelet's `containerLogMaxFiles`.
const MAX_FILES: u32 = 5;

/// The number of bytes that a reader takes at a time.
const READ_BYTES: usize = 64 * 1024;

/// The length of a time in an entry: `2026-01-01T00:00:00.000000000Z`.
const TIME_BYTES: usize = 30;

/// The extent of the output of one run.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    first_file: u32,
    last_file: u32,
    /// The size of the last file. It ends with a complete entry.
    bytes: u64,
    ended: bool,
}

/// The output of one run of a container.
#[derive(Debug)]
pub(super) struct StoredOutput {
    /// The path of the files without their numbers.
    stem: PathBuf,
    extent: watch::Sender<Extent>,
    max_file_bytes: u64,
}

impl StoredOutput {
    pub(super) fn new(stem: PathBuf) -> Arc<Self> {
        Self::with_file_size(stem, MAX_FILE_BYTES)
    }

    fn with_file_size(stem: PathBuf, max_file_bytes: u64) -> Arc<Self> {
        let extent = watch::Sender::new(Extent::default());
        Arc::new(Self {
            stem,
            extent,
            max_file_bytes,
        })
    }

    /// Returns the output of a run of an earlier agent, in these files.
    fn found(stem: PathBuf, first_file: u32, last_file: u32) -> Arc<Self> {
        let output = Self::new(stem);
        // An agent that was killed may have left the beginning of an entry.
        let last = fs::read(output.path(last_file)).unwrap_or_default();
        let end = last.iter().rposition(|byte| *byte == b'\n');
        output.extent.send_replace(Extent {
            first_file,
            last_file,
            bytes: end.map_or(0, |end| end as u64 + 1),
            ended: true,
        });
        output
    }

    fn path(&self, number: u32) -> PathBuf {
        let mut path = self.stem.clone();
        path.as_mut_os_string().push(format!(".{number}"));
        path
    }

    pub(super) fn remove(&self) {
        let Extent {
            first_file,
            last_file,
            ..
        } = *self.extent.borrow();
        for number in first_file..=last_file {
            // A run without output has no file.
            let _ = fs::remove_file(self.path(number));
        }
    }
}

/// Returns the outputs in a pod's directory, by container and by number of the run.
pub(super) fn find_runs(folder: &Path) -> BTreeMap<String, BTreeMap<u64, Arc<StoredOutput>>> {
    let mut files: BTreeMap<(String, u64), (u32, u32)> = BTreeMap::new();
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name();
        // Names of containers have no dots.
        let parts: Vec<_> = name.to_str().unwrap_or_default().split('.').collect();
        let [container, run, number] = parts[..] else {
            continue;
        };
        let (Ok(run), Ok(number)) = (run.parse(), number.parse()) else {
            continue;
        };
        let (first, last) = files
            .entry((container.to_owned(), run))
            .or_insert((number, number));
        (*first, *last) = (number.min(*first), number.max(*last));
    }
    let mut found: BTreeMap<String, BTreeMap<u64, Arc<StoredOutput>>> = BTreeMap::new();
    for ((container, run), (first, last)) in files {
        let output = StoredOutput::found(folder.join(format!("{container}.{run}")), first, last);
        found.entry(container).or_default().insert(run, output);
    }
    found
}

/// Writes the output of a run. Dropping it marks the end of the output.
#[derive(Debug)]
pub(super) struct OutputWriter {
    output: Arc<StoredOutput>,
    file: Option<File>,
    /// True if the last write failed.
    fails: bool,
}

impl OutputWriter {
    pub(super) fn new(output: Arc<StoredOutput>) -> Self {
        Self {
            output,
            file: None,
            fails: false,
        }
    }

    /// Adds a line, or with `ended` false a piece of one. A line that cannot be written is dropped.
    ///
    /// # Errors
    /// The file cannot be written, for the first time or after a line that could be.
    pub(super) fn write(
        &mut self,
        stream: Stream,
        text: &[u8],
        ended: bool,
        now: Timestamp,
    ) -> io::Result<()> {
        let written = self.append(stream, text, ended, now);
        let failed_before = std::mem::replace(&mut self.fails, written.is_err());
        if written.is_err() {
            // A part of the entry may be in the file.
            if let Some(file) = self.file.take() {
                let _ = file.set_len(self.output.extent.borrow().bytes);
            }
        }
        if failed_before { Ok(()) } else { written }
    }

    fn append(&mut self, stream: Stream, text: &[u8], ended: bool, now: Timestamp) -> io::Result<()> {
        let stream = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        let tag = if ended { 'F' } else { 'P' };
        let mut entry = format!("{now:.9} {stream} {tag} ").into_bytes();
        entry.extend_from_slice(text);
        entry.push(b'\n');
        let mut extent = *self.output.extent.borrow();
        if extent.bytes >= self.output.max_file_bytes {
            self.file = None;
            extent.last_file += 1;
            extent.bytes = 0;
            if extent.last_file - extent.first_file >= MAX_FILES {
                let _ = fs::remove_file(self.output.path(extent.first_file));
                extent.first_file += 1;
            }
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let path = self.output.path(extent.last_file);
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder)?;
                }
                let mut options = OpenOptions::new();
                options.create(true).write(true).truncate(false).mode(0o600);
                let mut file = options.open(path)?;
                file.set_len(extent.bytes)?;
                file.seek(SeekFrom::Start(extent.bytes))?;
                self.file.insert(file)
            }
        };
        file.write_all(&entry)?;
        extent.bytes += entry.len() as u64;
        self.output.extent.send_replace(extent);
        Ok(())
    }
}

impl Drop for OutputWriter {
    fn drop(&mut self) {
        self.output.extent.send_modify(|extent| extent.ended = true);
    }
}

/// An entry of a container's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputEntry {
    /// The time at which the output was read.
    pub time: Timestamp,
    /// The stream that the process wrote to.
    pub stream: Stream,
    /// The bytes, with the line feed of a complete line.
    pub bytes: Vec<u8>,
}

fn parse(entry: &[u8]) -> Option<OutputEntry> {
    let (time, rest) = entry.split_at_checked(TIME_BYTES)?;
    let time = std::str::from_utf8(time).ok()?.parse().ok()?;
    let rest = rest.strip_prefix(b" std")?;
    let (stream, rest) = match rest.strip_prefix(b"out ") {
        Some(rest) => (Stream::Stdout, rest),
        None => (Stream::Stderr, rest.strip_prefix(b"err ")?),
    };
    let (ended, text) = match rest.strip_prefix(b"F ") {
        Some(text) => (true, text),
        None => (false, rest.strip_prefix(b"P ")?),
    };
    let mut bytes = text.to_vec();
    bytes.extend(ended.then_some(b'\n'));
    Some(OutputEntry { time, stream, bytes })
}

/// Reads the output of one run of a container.
#[derive(Debug)]
pub struct OutputReader {
    output: Arc<StoredOutput>,
    extent: watch::Receiver<Extent>,
    follow: bool,
    file_number: u32,
    offset: u64,
    file: Option<File>,
    /// The beginning of an entry whose end was not read yet.
    partial: Vec<u8>,
}

impl OutputReader {
    /// Makes a reader that begins with the last `tail` entries, or with the first if `tail` is `None`. With `follow` it
    /// waits for further output until the run ends.
    pub(super) async fn open(output: Arc<StoredOutput>, tail: Option<u64>, follow: bool) -> io::Result<Self> {
        let mut reader = Self {
            extent: output.extent.subscribe(),
            output,
            follow,
            file_number: 0,
            offset: 0,
            file: None,
            partial: Vec::new(),
        };
        let extent = *reader.extent.borrow();
        (reader.file_number, reader.offset) = match tail {
            None => (extent.first_file, 0),
            Some(0) => (extent.last_file, extent.bytes),
            Some(entries) => {
                let output = Arc::clone(&reader.output);
                let found = spawn_blocking(move || tail_start(&output, extent, entries)).await;
                found.map_err(io::Error::other)??
            }
        };
        Ok(reader)
    }

    /// Returns the next entries, or `None` at the end.
    ///
    /// # Errors
    /// A file cannot be read.
    pub async fn next(&mut self) -> io::Result<Option<Vec<OutputEntry>>> {
        loop {
            let extent = *self.extent.borrow_and_update();
            if self.file_number < extent.first_file {
                // The writer was faster than this reader by all files.
                (self.file_number, self.offset, self.file) = (extent.first_file, 0, None);
                self.partial.clear();
            }
            let is_last = self.file_number == extent.last_file;
            let limit = if is_last { extent.bytes } else { u64::MAX };
            let chunk = self.read(limit.saturating_sub(self.offset)).await?;
            if !chunk.is_empty() {
                let entries = self.split(&chunk);
                if !entries.is_empty() {
                    return Ok(Some(entries));
                }
            } else if !is_last {
                (self.file_number, self.offset, self.file) = (self.file_number + 1, 0, None);
            } else if extent.ended || !self.follow || self.extent.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    /// Reads at most `limit` bytes. A file that was removed is empty.
    async fn read(&mut self, limit: u64) -> io::Result<Vec<u8>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let (file, path, offset) = (self.file.take(), self.output.path(self.file_number), self.offset);
        let read = move || -> io::Result<(Option<File>, Vec<u8>)> {
            let mut file = match file {
                Some(file) => file,
                None => match File::open(path) {
                    Ok(mut file) => {
                        file.seek(SeekFrom::Start(offset))?;
                        file
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, Vec::new())),
                    Err(error) => return Err(error),
                },
            };
            let mut chunk = Vec::new();
            let limit = limit.min(READ_BYTES as u64);
            (&mut file).take(limit).read_to_end(&mut chunk)?;
            Ok((Some(file), chunk))
        };
        let (file, chunk) = spawn_blocking(read).await.map_err(io::Error::other)??;
        self.file = file;
        self.offset += chunk.len() as u64;
        Ok(chunk)
    }

    fn split(&mut self, chunk: &[u8]) -> Vec<OutputEntry> {
        self.partial.extend_from_slice(chunk);
        let end = self.partial.iter().rposition(|byte| *byte == b'\n');
        let rest = self.partial.split_off(end.map_or(0, |end| end + 1));
        let whole = std::mem::replace(&mut self.partial, rest);
        whole.split(|byte| *byte == b'\n').filter_map(parse).collect()
    }
}

/// Returns the place, by file and offset, of the last `entries` entries.
fn tail_start(output: &StoredOutput, extent: Extent, entries: u64) -> io::Result<(u32, u64)> {
    // One line feed more than the entries, because the first of them begins after one.
    let mut missing = entries.saturating_add(1);
    for number in (extent.first_file..=extent.last_file).rev() {
        let mut file = match File::open(output.path(number)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let mut end = if number == extent.last_file {
            extent.bytes
        } else {
            file.metadata()?.len()
        };
        while end > 0 {
            let start = end.saturating_sub(READ_BYTES as u64);
            file.seek(SeekFrom::Start(start))?;
            let mut chunk = Vec::new();
            (&mut file).take(end - start).read_to_end(&mut chunk)?;
            for (index, _) in chunk.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
                missing -= 1;
                if missing == 0 {
                    return Ok((number, start + index as u64 + 1));
                }
            }
            end = start;
        }
    }
    Ok((extent.first_file, 0))
}

/// The part of a container's output that a reader wants: the options of `kubectl logs`.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// Wait for further output until the run ends.
    pub follow: bool,
    /// Put the time in front of each line.
    pub timestamps: bool,
    /// Begin with this number of lines before the end. Default: the first line.
    pub tail_lines: Option<u64>,
    /// Leave out what was written before this time.
    pub since: Option<Timestamp>,
    /// End after this number of bytes.
    pub limit_bytes: Option<u64>,
}

/// Formats entries as text.
#[derive(Debug)]
pub struct LogFormatter {
    timestamps: bool,
    since: Option<Timestamp>,
    remaining: Option<u64>,
    at_line_start: bool,
}

impl LogFormatter {
    /// Makes a formatter for the beginning of an output.
    #[must_use]
    pub fn new(options: &LogOptions) -> Self {
        Self {
            timestamps: options.timestamps,
            since: options.since,
            remaining: options.limit_bytes,
            at_line_start: true,
        }
    }

    /// Returns the text of further entries.
    pub fn format(&mut self, entries: &[OutputEntry]) -> Vec<u8> {
        let mut text = Vec::new();
        let is_wanted = |entry: &&OutputEntry| self.since.is_none_or(|since| entry.time >= since);
        for entry in entries.iter().filter(is_wanted) {
            if self.timestamps && self.at_line_start {
                text.extend_from_slice(format!("{:.9} ", entry.time).as_bytes());
            }
            text.extend_from_slice(&entry.bytes);
            self.at_line_start = entry.bytes.ends_with(b"\n");
        }
        if let Some(remaining) = &mut self.remaining {
            text.truncate(usize::try_from(*remaining).unwrap_or(usize::MAX));
            *remaining -= text.len() as u64;
        }
        text
    }

    /// Returns true once the limit in bytes is reached.
    pub fn is_full(&self) -> bool {
        self.remaining == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("output-{name}-{}", std::process::id()))
    }

    async fn texts(reader: &mut OutputReader) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(entries) = reader.next().await.unwrap() {
            texts.extend(
                entries
                    .into_iter()
                    .map(|entry| String::from_utf8(entry.bytes).unwrap()),
            );
        }
        texts
    }

    #[tokio::test]
    async fn a_reader_begins_at_the_tail_and_follows_to_the_end_of_the_run() {
        let folder = folder("follow");
        let output = StoredOutput::new(folder.join("main.0"));
        let mut writer = OutputWriter::new(Arc::clone(&output));
        let now = Timestamp::UNIX_EPOCH;
        for text in ["a", "b", "c"] {
            writer.write(Stream::Stdout, text.as_bytes(), true, now).unwrap();
        }
        for (tail, expected) in [
            (None, &["a\n", "b\n", "c\n"][..]),
            (Some(2), &["b\n", "c\n"]),
            (Some(3), &["a\n", "b\n", "c\n"]),
            (Some(9), &["a\n", "b\n", "c\n"]),
            (Some(0), &[]),
        ] {
            let mut reader = OutputReader::open(Arc::clone(&output), tail, false)
                .await
                .unwrap();
            assert_eq!(texts(&mut reader).await, expected, "{tail:?}");
        }
        let mut reader = OutputReader::open(Arc::clone(&output), Some(1), true)
            .await
            .unwrap();
        let followed = tokio::spawn(async move { texts(&mut reader).await });
        writer.write(Stream::Stderr, b"no end", false, now).unwrap();
        drop(writer);
        assert_eq!(followed.await.unwrap(), ["c\n", "no end"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn the_oldest_file_is_removed_and_a_tail_spans_files() {
        let folder = folder("files");
        let output = StoredOutput::with_file_size(folder.join("main.0"), 100);
        let mut writer = OutputWriter::new(Arc::clone(&output));
        let mut slow = OutputReader::open(Arc::clone(&output), None, false)
            .await
            .unwrap();
        for number in 0..100 {
            writer
                .write(
                    Stream::Stdout,
                    number.to_string().as_bytes(),
                    true,
                    Timestamp::UNIX_EPOCH,
                )
                .unwrap();
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), MAX_FILES as usize);
        let left = texts(&mut slow).await;
        assert!(left.len() < 20 && left.last().unwrap() == "99\n", "{left:?}");
        let mut tail = OutputReader::open(Arc::clone(&output), Some(7), false)
            .await
            .unwrap();
        assert_eq!(
            texts(&mut tail).await,
            ["93\n", "94\n", "95\n", "96\n", "97\n", "98\n", "99\n"]
        );
        output.remove();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn entries_are_formatted_as_by_a_kubelet() {
        let entry = |second, text: &str| OutputEntry {
            time: Timestamp::from_second(second).unwrap(),
            stream: Stream::Stdout,
            bytes: text.as_bytes().to_vec(),
        };
        let entries = [entry(0, "old\n"), entry(5, "a"), entry(6, "b\n"), entry(7, "c\n")];
        let format = |options| {
            let mut formatter = LogFormatter::new(&options);
            String::from_utf8(formatter.format(&entries)).unwrap()
        };
        assert_eq!(format(LogOptions::default()), "old\nab\nc\n");
        let since = Timestamp::from_second(5).ok();
        let timestamps = LogOptions {
            since,
            timestamps: true,
            ..LogOptions::default()
        };
        assert_eq!(
            format(timestamps),
            "1970-01-01T00:00:05.000000000Z ab\n1970-01-01T00:00:07.000000000Z c\n"
        );
        let limited = LogOptions {
            limit_bytes: Some(5),
            ..LogOptions::default()
        };
        assert_eq!(format(limited), "old\na");
    }
}
