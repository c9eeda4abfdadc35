//! The requests that are answered: those of the user's browser, which has the token.

use form_urlencoded::{Serializer, parse};
use subtle::ConstantTimeEq;

/// The port and the token of a server.
#[derive(Clone, Debug)]
pub(super) struct Access {
    port: u16,
    token: String,
}

/// The parts of a request that decide about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) method: &'a str,
    pub(super) host: Option<&'a str>,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) cookies: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    /// The token was in the address. The browser keeps it in a cookie and loads the address without it.
    SignIn {
        location: String,
        cookie: String,
    },
    Refused {
        code: u16,
        reason: &'static str,
    },
}

impl Access {
    /// Creates a new token.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn new(port: u16) -> Result<Self, getrandom::Error> {
        let mut bytes = [0_u8; 24];
        getrandom::fill(&mut bytes)?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { port, token })
    }

    /// Returns the address for the user.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// Cookies of an address are sent to all of its ports.
    fn cookie_name(&self) -> String {
        format!("training-ui-{}", self.port)
    }

    pub(super) fn verdict(&self, head: &Head<'_>) -> Verdict {
        let hosts = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        // A page of another site whose name resolves to this machine sends its own name.
        if !head.host.is_some_and(|host| hosts.iter().any(|own| own == host)) {
            return refused(403, "this server answers only under 127.0.0.1 and localhost");
        }
        if !matches!(head.method, "GET" | "HEAD") {
            return refused(405, "this server only shows; use GET");
        }
        let name = self.cookie_name();
        let mut cookies = head
            .cookies
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='));
        let has_cookie = cookies.any(|(key, value)| key == name && same(value, &self.token));
        let mut has_token = false;
        let mut others = Serializer::new(String::new());
        for (key, value) in parse(head.query.as_bytes()) {
            match &*key {
                "token" => has_token = same(&value, &self.token),
                _ => drop(others.append_pair(&key, &value)),
            }
        }
        if has_token {
            let others = others.finish();
            let mark = if others.is_empty() { "" } else { "?" };
            // Two slashes would begin the name of a host.
            let path = head.path.trim_start_matches('/');
            return Verdict::SignIn {
                location: format!("/{path}{mark}{others}"),
                cookie: format!("{name}={}; Path=/; HttpOnly; SameSite=Strict", self.token),
            };
        }
        match has_cookie {
            true => Verdict::Allowed,
            false => refused(401, "open the address that kubectl training ui printed"),
        }
    }
}

fn refused(code: u16, reason: &'static str) -> Verdict {
    Verdict::Refused { code, reason }
}

/// Compares secrets in a time that does not depend on where they differ.
fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head<'_> = Head {
        method: "GET",
        host: Some("127.0.0.1:80"),
        path: "/",
        query: "",
        cookies: "",
    };

    fn access() -> Access {
        let token = "secret".to_owned();
        Access { port: 80, token }
    }

    fn code(head: &Head<'_>) -> u16 {
        match access().verdict(head) {
            Verdict::Allowed => 200,
            Verdict::SignIn { .. } => 303,
            Verdict::Refused { code, .. } => code,
        }
    }

    #[test]
    fn the_token_of_the_address_becomes_a_cookie() {
        let query = "token=secret&state=Failed&text=a+b";
        let verdict = access().verdict(&Head { query, ..HEAD });
        let expected = Verdict::SignIn {
            location: "/?state=Failed&text=a+b".to_owned(),
            cookie: "training-ui-80=secret; Path=/; HttpOnly; SameSite=Strict".to_owned(),
        };
        assert_eq!(verdict, expected);
        let path = "//example.com/";
        let query = "token=secret";
        let verdict = access().verdict(&Head { path, query, ..HEAD });
        assert!(
            matches!(&verdict, Verdict::SignIn { location, .. } if location == "/example.com/"),
            "{verdict:?}"
        );
        let cookies = "other=1; training-ui-80=secret";
        assert_eq!(code(&Head { cookies, ..HEAD }), 200);
    }

    #[test]
    fn requests_without_the_token_are_refused() {
        assert_eq!(code(&HEAD), 401);
        for query in ["token=", "token=Secret", "token=secrets", "tokens=secret"] {
            assert_eq!(code(&Head { query, ..HEAD }), 401, "{query}");
        }
        for cookies in [
            "training-ui-81=secret",
            "training-ui-80=secret1",
            "training-ui-80",
        ] {
            assert_eq!(code(&Head { cookies, ..HEAD }), 401, "{cookies}");
        }
    }

    #[test]
    fn hosts_of_others_and_methods_that_change_are_refused() {
        let cookies = "training-ui-80=secret";
        let head = Head { cookies, ..HEAD };
        for (host, expected) in [
            (Some("localhost:80"), 200),
            (Some("localhost"), 403),
            (Some("127.0.0.1:81"), 403),
            (Some("example.com:80"), 403),
            (None, 403),
        ] {
            assert_eq!(code(&Head { host, ..head }), expected, "{host:?}");
        }
        for (method, expected) in [("HEAD", 200), ("POST", 405), ("DELETE", 405), ("OPTIONS", 405)] {
            assert_eq!(code(&Head { method, ..head }), expected, "{method}");
        }
    }

    #[test]
    fn each_server_has_its_own_token() {
        let (one, other) = (Access::new(80).unwrap(), Access::new(80).unwrap());
        assert_ne!(one.token, other.token);
        assert_eq!(one.token.len(), 48);
    }
}
