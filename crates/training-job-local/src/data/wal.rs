//! Checks the write-ahead log of a database.
//!
//! SQLite takes the first frame with a wrong checksum for the end of the log, as a process that was killed leaves it. It
//! would silently drop all later transactions if an earlier frame were damaged. Here the log is damaged if a whole
//! transaction follows a frame with a wrong checksum. A transaction that was killed, or found the disk full, leaves only
//! frames without an end.

use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use super::DataError;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// The beginning of a log whose checksums are of big-endian words; one less for little-endian.
const BIG_ENDIAN_MAGIC: u32 = 0x377f_0683;

/// A checksum of SQLite. That of a frame continues the one of the frame before.
type Sums = (u32, u32);

pub(super) fn check(database: &Path) -> Result<(), DataError> {
    let mut path = database.to_owned();
    path.as_mut_os_string().push("-wal");
    let failed = |error| DataError::io(&path, error);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if fs::metadata(&path).map_err(failed)?.len() <= HEADER_BYTES as u64 {
        return Ok(());
    }
    let mut log = BufReader::new(file);
    let mut header = [0; HEADER_BYTES];
    log.read_exact(&mut header).map_err(failed)?;
    let word = |bytes: &[u8], index: usize| {
        let word = bytes.get(index * 4..).and_then(|rest| rest.first_chunk());
        word.map_or(0, |word| u32::from_be_bytes(*word))
    };
    let is_big = word(&header, 0) == BIG_ENDIAN_MAGIC;
    let page_bytes = word(&header, 2) as usize;
    let salt = (word(&header, 4), word(&header, 5));
    let (summed, _) = header.split_at(24);
    let mut sums = add((0, 0), summed, is_big);
    let is_valid = word(&header, 0) | 1 == BIG_ENDIAN_MAGIC
        && sums == (word(&header, 6), word(&header, 7))
        && page_bytes.is_power_of_two()
        && (512..=65_536).contains(&page_bytes);
    if !is_valid {
        return Err(DataError::damaged(
            &path,
            "the checksum of its beginning is wrong",
        ));
    }
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
    let mut wrong = None;
    for number in 1_u64.. {
        match log.read_exact(&mut frame) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(failed(error)),
        }
        let (head, page) = frame.split_at(FRAME_HEADER_BYTES);
        let (summed, _) = head.split_at(8);
        // Frames of an earlier log, which this one overwrites, have another salt.
        let is_own = (word(head, 2), word(head, 3)) == salt;
        let stored = (word(head, 4), word(head, 5));
        let is_right = is_own && add(add(sums, summed, is_big), page, is_big) == stored;
        let is_end_of_transaction = word(head, 1) != 0;
        match wrong {
            None if is_right => {}
            None => wrong = Some(number),
            Some(wrong) if is_right && is_end_of_transaction => {
                let problem = format!("the checksum of frame {wrong} is wrong");
                return Err(DataError::damaged(&path, problem));
            }
            Some(_) => {}
        }
        sums = stored;
    }
    Ok(())
}

fn add(sums: Sums, bytes: &[u8], is_big: bool) -> Sums {
    let (pairs, _) = bytes.as_chunks::<8>();
    pairs.iter().fold(sums, |(first, second), pair| {
        let [a, b, c, d, e, f, g, h] = *pair;
        let word = |bytes| match is_big {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        };
        let first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
        let second = second.wrapping_add(word([e, f, g, h])).wrapping_add(first);
        (first, second)
    })
}
