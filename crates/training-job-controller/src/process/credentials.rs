//! The client certificate of a kubeconfig.
//!
//! It is sent as it is, also if it has X.509 version 1, because only the server has to accept it.

use std::fs;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine};
use jiff::civil::DateTime;
use jiff::{Timestamp, tz::TimeZone};
use kube::config::AuthInfo;
use serde_json::Value;
use tokio_rustls::rustls::crypto::ring::sign::any_supported_type;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};

/// Returns the client certificate of a user with its key, if there is one.
///
/// # Errors
/// One line with the name of the file: it cannot be read, or the certificate or the key cannot be used.
pub(super) fn identity(user: &AuthInfo, now: Timestamp) -> Result<Option<Arc<SingleCertAndKey>>, String> {
    // The texts of secrets are in the serialized form only.
    let fields = serde_json::to_value(user).map_err(|error| error.to_string())?;
    let (certificate, key) = match (read(&fields, "client-certificate")?, read(&fields, "client-key")?) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        (Some((name, _)), None) => return Err(format!("{name}: must have a key; set client-key")),
        (None, Some((name, _))) => {
            return Err(format!("{name}: must have a certificate; set client-certificate"));
        }
    };
    let (name, pem) = certificate;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|_| format!("{name}: must be a certificate in PEM form"))?;
    let validity = chain.first().and_then(|first| Certificate::parse(first));
    let Some(Certificate {
        expires,
        key: of_certificate,
    }) = validity
    else {
        return Err(format!("{name}: must be a certificate in PEM form"));
    };
    let (of_key, pem) = key;
    let key = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|_| format!("{of_key}: must be a private key in PEM form, without a passphrase"))?;
    let key = any_supported_type(&key).map_err(|_| {
        format!("{of_key}: must be an RSA key of 2048 to 8192 bits, an ECDSA key of P-256 or P-384, or an Ed25519 key")
    })?;
    if key
        .public_key()
        .is_some_and(|own| public_key(&own) != Some(of_certificate))
    {
        return Err(format!(
            "{of_key}: must be the key of the certificate {name}; set the key that it was made with"
        ));
    }
    let has_other = ["token", "tokenFile", "exec", "auth-provider", "username"]
        .iter()
        .any(|field| !fields[field].is_null());
    if expires < now && !has_other {
        return Err(format!(
            "{name}: the client certificate expired at {expires}; get a new one"
        ));
    }
    Ok(Some(Arc::new(CertifiedKey::new(chain, key).into())))
}

/// Returns the name and the bytes of a file, or of the data that the kubeconfig has in its place.
fn read(fields: &Value, field: &str) -> Result<Option<(String, Vec<u8>)>, String> {
    let data = format!("{field}-data");
    if let Some(text) = fields[&data].as_str().filter(|text| !text.is_empty()) {
        let text: String = text.split_whitespace().collect();
        let bytes = BASE64_STANDARD
            .decode(text)
            .map_err(|_| format!("{data}: must be Base64"))?;
        return Ok(Some((data, bytes)));
    }
    let Some(file) = fields[field].as_str().filter(|file| !file.is_empty()) else {
        return Ok(None);
    };
    let bytes = fs::read(file).map_err(|error| format!("{file}: the {field} cannot be read: {error}"))?;
    Ok(Some((file.to_owned(), bytes)))
}

/// The parts of an X.509 certificate of any version that are checked here.
struct Certificate<'a> {
    expires: Timestamp,
    /// The bits of the public key.
    key: &'a [u8],
}

impl<'a> Certificate<'a> {
    fn parse(der: &'a [u8]) -> Option<Self> {
        let (_, certificate, _) = element(der)?;
        let (_, signed, _) = element(certificate)?;
        let (tag, _, after_version) = element(signed)?;
        // Version 1 is the default, which is left out.
        let mut rest = if tag == 0xa0 { after_version } else { signed };
        // The serial number, the algorithm of the signature, and the issuer.
        for _ in 0..3 {
            (_, _, rest) = element(rest)?;
        }
        let (_, validity, rest) = element(rest)?;
        let (_, _, after_start) = element(validity)?;
        let (tag, end, _) = element(after_start)?;
        let (_, _subject, rest) = element(rest)?;
        Some(Self {
            expires: time(tag, std::str::from_utf8(end).ok()?)?,
            key: public_key(rest)?,
        })
    }
}

/// Returns the bits of a public key without its algorithm, whose parameters may be missing or null.
fn public_key(der: &[u8]) -> Option<&[u8]> {
    let (_, info, _) = element(der)?;
    let (_, _algorithm, bits) = element(info)?;
    Some(element(bits)?.1)
}

/// Reads an element of DER: its tag, its content, and the bytes after it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk()?;
    let (length, rest) = match usize::from(first) {
        short @ ..0x80 => (short, rest),
        long => {
            let (bytes, rest) = rest
                .split_at_checked(long - 0x80)
                .filter(|(bytes, _)| bytes.len() < 5)?;
            (
                bytes
                    .iter()
                    .fold(0, |length, byte| length << 8 | usize::from(*byte)),
                rest,
            )
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Reads a `UTCTime`, whose year has two digits, or a `GeneralizedTime`.
fn time(tag: u8, text: &str) -> Option<Timestamp> {
    let century = match (tag, text.as_bytes().first()?) {
        (0x17, b'5'..) => "19",
        (0x17, _) => "20",
        _ => "",
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", format!("{century}{text}")).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}
