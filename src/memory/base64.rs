//! Base 64: with padding for secrets, as URLs have it for tokens.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn digits(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..=chunk.len() {
            let digit = alphabet.get((bits >> (18 - 6 * place) & 63) as usize).copied();
            text.extend(digit.map(char::from));
        }
    }
    text
}

/// The text of bytes, padded.
pub(super) fn standard(bytes: &[u8]) -> String {
    let mut text = digits(bytes, STANDARD);
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

/// The text of bytes for a URL, without padding.
pub(super) fn url(bytes: &[u8]) -> String {
    digits(bytes, URL)
}

/// The bytes of a text made by [`url`].
pub(super) fn read_url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut bits, mut count) = (0_u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        let value = URL.iter().position(|known| *known == digit)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        for (plain, padded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(standard(plain.as_bytes()), padded);
            assert_eq!(url(plain.as_bytes()), padded.trim_end_matches('='));
            assert_eq!(read_url(padded), Some(plain.as_bytes().to_vec()));
        }
        assert_eq!(read_url("ß"), None);
    }
}
