//! Syntax of Kubernetes names.

/// The longest name of a service, a label value or a DNS label.
pub(crate) const LABEL_MAX: usize = 63;

/// [`is_dns1035_label`] as a regular expression.
pub(crate) const DNS_1035: &str = "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$";

/// [`is_dns1123_label`] as a regular expression.
pub(crate) const DNS_1123: &str = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";

/// A DNS-1035 label, as services need: lower-case letters, digits and `-`, from a letter to a letter or digit.
pub(crate) fn is_dns1035_label(name: &str) -> bool {
    is_dns1123_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase())
}

/// A DNS-1123 label, as containers need: as above, but may begin with a digit.
pub(crate) fn is_dns1123_label(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty()
        && name.len() <= LABEL_MAX
        && name.chars().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// A label's value: empty, or letters, digits, `-`, `_` and `.` between letters or digits.
pub(crate) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_qualified_part(value)
}

/// The key of a label or an annotation: a name, perhaps behind a DNS name and a slash.
pub(crate) fn is_qualified_name(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => {
            prefix.len() <= 253 && prefix.split('.').all(is_dns1123_label) && is_qualified_part(name)
        }
        None => is_qualified_part(key),
    }
}

/// The name of a port: lower-case letters, digits and single `-`, with a letter, at most 15 characters.
pub(crate) fn is_port_name(name: &str) -> bool {
    name.len() <= 15
        && is_dns1123_label(name)
        && !name.contains("--")
        && name.contains(|c: char| c.is_ascii_lowercase())
}

/// The name of an environment variable: printable ASCII but `=`.
pub(crate) fn is_env_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| (' '..='~').contains(&c) && c != '=')
}

fn is_qualified_part(part: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    part.len() <= LABEL_MAX
        && part.starts_with(edge)
        && part.ends_with(edge)
        && part.chars().all(|c| edge(c) || matches!(c, '-' | '_' | '.'))
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
            assert_eq!(
                (is_dns1035_label(name), is_dns1123_label(name)),
                (dns1035, dns1123),
                "{name:?}"
            );
        }
        for (key, ok) in [
            ("a", true),
            ("example.com/A_b.c", true),
            ("/a", false),
            ("a/", false),
            ("a/b/c", false),
            ("_a", false),
        ] {
            assert_eq!(is_qualified_name(key), ok, "{key:?}");
        }
        for (name, ok) in [
            ("http", true),
            ("h-1", true),
            ("1", false),
            ("h--1", false),
            ("sixteen-letters-x", false),
            ("Http", false),
        ] {
            assert_eq!(is_port_name(name), ok, "{name:?}");
        }
        assert!(
            is_label_value("")
                && is_label_value("A.b_c-1")
                && !is_label_value("a b")
                && !is_label_value(&long)
        );
        assert!(is_env_name("a.b-C") && !is_env_name("a=b") && !is_env_name("") && !is_env_name("é"));
    }
}
