//! Names of pods and services in values, replaced by addresses.
//!
//! A process here has no cluster DNS, and changing the machine's own name resolution needs root. So the names are
//! replaced where programs read them: in environment values, commands and arguments.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::references::Text;

/// The suffixes under which a name of the own namespace resolves in a cluster.
const CLUSTER_DOMAIN: &str = "svc.cluster.local";

/// The names that resolve in one namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct HostNames {
    pub(super) namespace: String,
    pub(super) addresses: BTreeMap<String, Ipv4Addr>,
}

impl HostNames {
    /// The text with every name replaced, or `None` if it has none.
    ///
    /// Only whole host names are replaced: `job-worker-1` neither in `job-worker-10` nor in `my-job-worker-1`,
    /// `job-worker-1.log` or the path `/data/job-worker-1`.
    pub(super) fn replace_in(&self, text: &Text) -> Option<String> {
        let value = text.as_str();
        let mut out = String::new();
        let mut done = 0;
        let mut at = 0;
        while at < value.len() {
            let length = value[at..].find(|c| !in_host_name(c)).unwrap_or(value.len() - at);
            let token = at..at + length;
            if length > 0
                && !is_path(&value[..at])
                && !text.keeps(&token)
                && let Some((address, used)) = self.resolve(&value[token.clone()])
            {
                out.push_str(&value[done..at]);
                out.push_str(&address.to_string());
                done = at + used;
            }
            at = token.end + value[token.end..].chars().next().map_or(0, char::len_utf8);
        }
        if done == 0 {
            return None;
        }
        out.push_str(&value[done..]);
        Some(out)
    }

    /// The address of a host name and how many of its bytes belong to the name (a full stop that ends a sentence does not).
    fn resolve(&self, host: &str) -> Option<(Ipv4Addr, usize)> {
        let bare = host.trim_end_matches('.');
        let (name, domain) = bare.split_once('.').unwrap_or((bare, ""));
        let in_namespace = match domain.strip_prefix(self.namespace.as_str()) {
            _ if domain.is_empty() => true,
            Some("" | ".svc") => true,
            Some(rest) => rest.strip_prefix('.') == Some(CLUSTER_DOMAIN),
            None => false,
        };
        let address = self.addresses.get(name).filter(|_| in_namespace)?;
        let root_dot = domain.ends_with(CLUSTER_DOMAIN) && host.len() > bare.len();
        Some((*address, bare.len() + usize::from(root_dot)))
    }
}

/// Non-ASCII counts as part of a word, so that nothing inside a word of any language is taken for a host.
fn in_host_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') || !c.is_ascii()
}

/// Whether what follows `before` is a part of a path: behind one slash, where a URL's host has two.
fn is_path(before: &str) -> bool {
    before.ends_with('/') && !before.ends_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> HostNames {
        let address = |last| Ipv4Addr::new(127, 64, 0, last);
        HostNames {
            namespace: "ns".into(),
            addresses: [
                ("job-worker-1", address(1)),
                ("job-worker-10", address(10)),
                ("worker-1", address(2)),
                ("job", address(3)),
            ]
            .map(|(name, address)| (name.to_owned(), address))
            .into(),
        }
    }

    #[test]
    fn whole_names_are_replaced() {
        for (input, expected) in [
            ("job-worker-1", "127.64.0.1"),
            ("job-worker-10", "127.64.0.10"),
            ("job-worker-1:9091", "127.64.0.1:9091"),
            ("tcp://job-worker-1/", "tcp://127.64.0.1/"),
            (
                r#"{"url":"job-worker-1","port":9091}"#,
                r#"{"url":"127.64.0.1","port":9091}"#,
            ),
            ("job-worker-1,job-worker-10", "127.64.0.1,127.64.0.10"),
            ("job-worker-1.ns", "127.64.0.1"),
            ("job-worker-1.ns.svc:80", "127.64.0.1:80"),
            ("job-worker-1.ns.svc.cluster.local", "127.64.0.1"),
            ("job-worker-1.ns.svc.cluster.local.:80", "127.64.0.1:80"),
            ("ask job-worker-1.", "ask 127.64.0.1."),
            ("user@job", "user@127.64.0.3"),
            ("--hosts=job job", "--hosts=127.64.0.3 127.64.0.3"),
            ("é job é", "é 127.64.0.3 é"),
        ] {
            assert_eq!(
                names().replace_in(&Text::plain(input)).as_deref(),
                Some(expected),
                "{input}"
            );
        }
    }

    #[test]
    fn parts_of_other_names_are_not() {
        for input in [
            "",
            "nothing here",
            "job-worker-11",
            "my-job-worker-1",
            "job-worker-1-x",
            "job-worker-1_x",
            "job-worker-1.log",
            "job-worker-1.other",
            "job-worker-1.other.svc.cluster.local",
            "job-worker-1.nsx",
            "job-worker-1.ns.svc.example.org",
            "x.job-worker-1",
            "/data/job-worker-1/out",
            "s3://bucket/job-worker-1",
            "éjob",
            "jobé",
        ] {
            assert_eq!(names().replace_in(&Text::plain(input)), None, "{input}");
        }
    }

    #[test]
    fn a_name_used_as_a_name_stays() {
        assert_eq!(names().replace_in(&Text::kept("job-worker-1")), None);
        let mixed = Text::expand("$(ME) job-worker-1", |_| Some(Text::kept("job-worker-1")));
        assert_eq!(
            names().replace_in(&mixed).as_deref(),
            Some("job-worker-1 127.64.0.1")
        );
        let composed = Text::expand("$(ME)-worker-1", |_| Some(Text::kept("job")));
        assert_eq!(names().replace_in(&composed).as_deref(), Some("127.64.0.1"));
    }
}
