//! Checks of names, labels and their keys. Each function returns the API server's messages for an invalid text
//! (`k8s.io/apimachinery/pkg/util/validation`), and `None` or an empty list for a valid one.

/// The greatest length of a DNS label in characters, such as the name of a service or container, and of the value of a
/// label and the name part of its key.
pub const MAX_LABEL_CHARS: usize = 63;

/// The greatest length of a DNS subdomain in characters, such as the name of most objects.
pub const MAX_SUBDOMAIN_CHARS: usize = 253;

/// The greatest length of a port's name in characters.
pub const MAX_PORT_NAME_CHARS: usize = 15;

/// The texts that [`label_1035`] accepts, as a regular expression.
pub const DNS_1035: &str = "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$";

/// The texts that [`label_1123`] accepts, as a regular expression.
pub const DNS_1123: &str = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1123: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
    must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
    with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const ENV_NAME: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Checks a text's length in bytes. `unit` is only for the message: the API server's messages count names in characters
/// and values in bytes.
fn at_most(text: &str, limit: usize, unit: &str) -> Option<String> {
    (text.len() > limit).then(|| format!("must be no more than {limit} {unit}"))
}

fn is_label(text: &str) -> bool {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if lower(*first) && lower(*last))
        && bytes.iter().all(|b| lower(*b) || *b == b'-')
}

/// Returns the error of a text that is not a DNS-1123 label, which containers need: lower-case letters, digits and
/// `-`, with a letter or digit at both ends, at most 63 characters.
pub fn label_1123(text: &str) -> Option<String> {
    let wrong = || {
        let why = if subdomain(text).is_none() {
            "must not contain dots"
        } else {
            LABEL_1123
        };
        (!is_label(text)).then(|| why.to_owned())
    };
    at_most(text, MAX_LABEL_CHARS, "characters").or_else(wrong)
}

/// Returns the error of a text that is not a DNS-1035 label, which services need: a DNS-1123 label that begins with a
/// letter.
pub fn label_1035(text: &str) -> Option<String> {
    let starts = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    at_most(text, MAX_LABEL_CHARS, "characters")
        .or_else(|| (!starts || !is_label(text)).then(|| LABEL_1035.to_owned()))
}

/// Returns the error of a text that is not a DNS-1123 subdomain, which most objects' names must be: labels with dots
/// between them, at most 253 characters.
pub fn subdomain(text: &str) -> Option<String> {
    at_most(text, MAX_SUBDOMAIN_CHARS, "characters")
        .or_else(|| (!text.split('.').all(is_label)).then(|| SUBDOMAIN.to_owned()))
}

fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(f), Some(l)) if f.is_ascii_alphanumeric() && l.is_ascii_alphanumeric())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Returns the errors of a text that is not a key of a label or annotation: `name`, or `prefix/name` with a DNS
/// subdomain as the prefix. Empty for a valid key.
pub fn qualified(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if name.contains('/') {
        return vec![format!(
            "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            QUALIFIED.trim_start_matches("name part ")
        )];
    }
    let mut wrong = Vec::new();
    match prefix {
        Some("") => wrong.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => wrong.extend(subdomain(prefix).map(|why| format!("prefix part {why}"))),
        None => {}
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LABEL_CHARS {
        wrong.push(format!("name part must be no more than {MAX_LABEL_CHARS} bytes"));
    }
    if !is_name_part(name) {
        wrong.push(QUALIFIED.to_owned());
    }
    wrong
}

/// Returns the error of a text that is not a value of a label: empty, or at most 63 letters, digits, `-`, `_` and `.`
/// between letters or digits.
pub fn label_value(value: &str) -> Option<String> {
    at_most(value, MAX_LABEL_CHARS, "bytes")
        .or_else(|| (!value.is_empty() && !is_name_part(value)).then(|| LABEL_VALUE.to_owned()))
}

/// Returns the error of a text that is not a name of a port: at most 15 lower-case letters, digits and single
/// hyphens, with at least one letter.
pub fn port_name(name: &str) -> Option<String> {
    let too_long = at_most(name, MAX_PORT_NAME_CHARS, "characters");
    if too_long.is_some() {
        return too_long;
    }
    if !name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    {
        return Some("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        return Some("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        return Some("must not contain consecutive hyphens".to_owned());
    }
    (name.starts_with('-') || name.ends_with('-')).then(|| "must not begin or end with a hyphen".to_owned())
}

/// Returns the error of a text that is not a name of an environment variable: printable ASCII except `=`.
pub fn env_name(name: &str) -> Option<String> {
    let printable = |b: u8| (b' '..=b'~').contains(&b) && b != b'=';
    (name.is_empty() || !name.bytes().all(printable)).then(|| ENV_NAME.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_as_the_api_server_does() {
        let long = "a".repeat(64);
        for (name, dns1035, dns1123) in [
            ("a", true, true),
            ("a-1", true, true),
            ("1a", false, true),
            ("-a", false, false),
            ("a-", false, false),
            ("A", false, false),
            ("a.b", false, false),
            ("", false, false),
            (&long, false, false),
        ] {
            assert_eq!(label_1035(name).is_none(), dns1035, "{name:?}");
            assert_eq!(label_1123(name).is_none(), dns1123, "{name:?}");
        }
        for (key, ok) in [
            ("a", true),
            ("example.com/A_b.c", true),
            ("/a", false),
            ("a/", false),
            ("a/b/c", false),
            ("_a", false),
            (&long[1..], true),
            (&long, false),
        ] {
            assert_eq!(qualified(key).is_empty(), ok, "{key:?}");
        }
        for (name, ok) in [
            ("http", true),
            ("h-1", true),
            ("1", false),
            ("h--1", false),
            ("-h", false),
            ("h-", false),
            ("sixteen-letters-x", false),
            ("Http", false),
        ] {
            assert_eq!(port_name(name).is_none(), ok, "{name:?}");
        }
        for (value, ok) in [("", true), ("A.b_c-1", true), ("a b", false), (&long, false)] {
            assert_eq!(label_value(value).is_none(), ok, "{value:?}");
        }
        for (name, ok) in [("a.b-C", true), ("a=b", false), ("", false), ("é", false)] {
            assert_eq!(env_name(name).is_none(), ok, "{name:?}");
        }
    }
}
