//! The key pair with which the pods of a job connect to each other by SSH.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::ByteString;
use p521::SecretKey;
use p521::elliptic_curve::sec1::ToSec1Point;
use p521::pkcs8::LineEnding;
use serde_json::{Value, json};

/// The names of the Secret's fields, as in every Secret of type `kubernetes.io/ssh-auth`.
pub(crate) const PRIVATE: &str = "ssh-privatekey";
pub(crate) const PUBLIC: &str = "ssh-publickey";

/// The number of random bytes of a private key, which is a number of 521 bits.
pub(crate) const RANDOM_BYTES: usize = 66;

/// The name of the algorithm and of its curve in public keys.
const ALGORITHM: &str = "ecdsa-sha2-nistp521";
const CURVE: &str = "nistp521";

/// Returns the fields of the Secret with the key pair of these random bytes: an ECDSA key on the curve P-521, whose private
/// half is in the PEM form `EC PRIVATE KEY`, as mpi-operator v0.8.2 writes it. A FIPS mode of OpenSSH accepts it, unlike
/// Ed25519.
pub(crate) fn pair(random: &[u8]) -> Value {
    let mut number = [0; RANDOM_BYTES];
    let used = random.len().min(RANDOM_BYTES);
    number[..used].copy_from_slice(&random[..used]);
    // The number has 521 bits. Without the highest one it is less than the order of the curve.
    number[0] = 0;
    let Some((private, public)) = encoded(&number) else {
        // The number zero is not a valid key.
        return Value::Null;
    };
    json!({"data": {PRIVATE: ByteString(private.into_bytes()), PUBLIC: ByteString(public.into_bytes())}})
}

fn encoded(number: &[u8]) -> Option<(String, String)> {
    let key = SecretKey::from_slice(number).ok()?;
    let private = key.to_sec1_pem(LineEnding::LF).ok()?;
    let point = key.public_key().to_sec1_point(false);
    let parts = [ALGORITHM.as_bytes(), CURVE.as_bytes(), point.as_bytes()];
    let mut public = Vec::new();
    for part in parts {
        public.extend(u32::try_from(part.len()).ok()?.to_be_bytes());
        public.extend(part);
    }
    let public = format!("{ALGORITHM} {}\n", BASE64_STANDARD.encode(public));
    Some((private.to_string(), public))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_that_of_its_random_bytes() {
        let text = |pair: &Value, field: &str| {
            let bytes = BASE64_STANDARD
                .decode(pair["data"][field].as_str().unwrap())
                .unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let one = pair(&[7; RANDOM_BYTES]);
        assert_eq!(one, pair(&[7; RANDOM_BYTES]));
        assert_ne!(one, pair(&[8; RANDOM_BYTES]));
        let private = text(&one, PRIVATE);
        assert!(
            private.starts_with("-----BEGIN EC PRIVATE KEY-----\n"),
            "{private}"
        );
        assert!(
            text(&one, PUBLIC)
                .starts_with("ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBA")
        );
        assert!(pair(&[255; RANDOM_BYTES]).is_object());
        assert!(pair(&[]).is_null());
    }
}
