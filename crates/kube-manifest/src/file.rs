//! The content of files, whose size is bounded.

use std::io::{self, Read};

/// The greatest number of bytes read of a file. Devices and pipes may be endless.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// A file's name and content.
pub(crate) type File = (String, io::Result<Vec<u8>>);

/// Reads all of `input`, which must have at most `max` bytes. One more byte is read to detect a larger input.
pub(crate) fn read_bounded(input: impl Read, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(too_large(max));
    }
    Ok(bytes)
}

pub(crate) fn too_large(max: u64) -> io::Error {
    let problem = format!("must be at most {} MiB; split it into several files", max >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the bytes that are taken from an input without an end.
    struct Endless(u64);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'-');
            self.0 += buffer.len() as u64;
            Ok(buffer.len())
        }
    }

    #[test]
    fn an_input_without_an_end_is_read_up_to_the_bound() {
        let mut input = Endless(0);
        let error = read_bounded(&mut input, 2 << 20).unwrap_err();
        assert_eq!(
            error.to_string(),
            "must be at most 2 MiB; split it into several files"
        );
        assert_eq!(input.0, (2 << 20) + 1);
        assert_eq!(read_bounded(&b"a: 1"[..], 4).unwrap(), b"a: 1");
        assert!(read_bounded(&b"a: 12"[..], 4).is_err());
    }
}
