//! The proxy to a server, by the rules of Go's `net/http`, which kubectl follows.

use std::net::IpAddr;

use http::Uri;
use ipnet::IpNet;

/// Returns the proxy that environment variables name for a server, or `None` if it is to be reached without. `ALL_PROXY`
/// is not read, and the machine itself is never reached through a proxy.
pub(super) fn from_environment(server: &Uri, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let either = |name: &str| {
        let values = [name.to_owned(), name.to_ascii_lowercase()].map(|name| variable(&name));
        values.into_iter().flatten().find(|value| !value.is_empty())
    };
    let is_https = server.scheme_str() == Some("https");
    let proxy = either(if is_https { "HTTPS_PROXY" } else { "HTTP_PROXY" })?;
    let port = server.port_u16().unwrap_or(if is_https { 443 } else { 80 });
    let exceptions = either("NO_PROXY").unwrap_or_default();
    reached_by_proxy(server.host()?, port, &exceptions).then_some(proxy)
}

fn reached_by_proxy(host: &str, port: u16, exceptions: &str) -> bool {
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    let address = host.parse::<IpAddr>().ok();
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return false;
    }
    let matches = |entry: &str| {
        let entry = entry.trim().to_ascii_lowercase();
        if let Ok(network) = entry.parse::<IpNet>() {
            return address.is_some_and(|address| network.contains(&address));
        }
        // An address of version 6 without brackets has more than one colon, and no port.
        let (name, of_port) = match entry.rsplit_once(':') {
            Some((name, of_port)) if name.ends_with(']') || !name.contains(':') => (name, Some(of_port)),
            _ => (entry.as_str(), None),
        };
        let name = name.trim_matches(['[', ']']);
        if name.is_empty() || of_port.is_some_and(|of_port| of_port != port.to_string()) {
            return false;
        }
        if let Ok(only) = name.parse::<IpAddr>() {
            return address == Some(only);
        }
        match name.strip_prefix('*').unwrap_or(name) {
            "" => true,
            suffix if suffix.starts_with('.') => host.ends_with(suffix),
            domain => host == domain || host.ends_with(&format!(".{domain}")),
        }
    };
    !exceptions.split(',').any(matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_names_suffixes_addresses_and_networks() {
        for (host, exceptions, is_excepted) in [
            ("api.example.com", "", false),
            ("localhost", "", true),
            ("127.0.0.2", "", true),
            ("[::1]", "", true),
            ("api.example.com", "*", true),
            ("api.example.com", "other.org, example.com", true),
            ("example.com", "example.com", true),
            ("notexample.com", "example.com", false),
            ("api.example.com", ".example.com", true),
            ("example.com", ".example.com", false),
            ("api.example.com", "*.Example.com", true),
            ("API.example.com", "api.example.com:6443", true),
            ("api.example.com", "api.example.com:443", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.3:6443", true),
            ("10.1.2.3", "10.1.2.3:443", false),
            ("10.1.2.3", "10.0.0.0/8", true),
            ("10.1.2.3", "10.2.0.0/16,", false),
            ("api.example.com", "0.0.0.0/0", false),
            ("[fd00::1]", "fd00::1", true),
            ("[fd00::1]", "[fd00::1]:6443", true),
            ("[fd00::1]", "fd00::/8", true),
            ("[fd00::1]", ":6443", false),
        ] {
            assert_ne!(
                reached_by_proxy(host, 6443, exceptions),
                is_excepted,
                "{host} with {exceptions:?}"
            );
        }
    }

    #[test]
    fn the_scheme_of_the_server_selects_the_variable() {
        let variables = [
            ("HTTPS_PROXY", ""),
            ("https_proxy", "a:1"),
            ("HTTP_PROXY", "b:2"),
            ("ALL_PROXY", "c:3"),
        ];
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let proxy = |server: &'static str| from_environment(&Uri::from_static(server), variable);
        assert_eq!(proxy("https://api.example.com:6443").as_deref(), Some("a:1"));
        assert_eq!(proxy("http://api.example.com").as_deref(), Some("b:2"));
        let only_all = |name: &str| (name == "ALL_PROXY").then(|| "c:3".to_owned());
        assert_eq!(
            from_environment(&Uri::from_static("https://api.example.com"), only_all),
            None
        );
    }
}
