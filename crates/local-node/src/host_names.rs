//! Replaces names of pods and services in values by addresses.
//!
//! A process here has no cluster DNS, and a change of the machine's own name resolution needs root. The names are
//! therefore replaced in the values that programs read: environment values, commands and arguments.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;

use super::references::Text;

/// The suffix of full names in a cluster.
const CLUSTER_DOMAIN: &str = "svc.cluster.local";

/// The names that resolve in one namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct HostNames {
    pub(super) namespace: String,
    pub(super) addresses: BTreeMap<String, Ipv4Addr>,
    /// The domain of the pod, if its specification names one.
    pub(super) domain: Option<Domain>,
}

/// A domain below the namespace. Pods are in it by `hostname` and `subdomain`, and have names there as soon as they
/// exist.
#[derive(Clone, Debug)]
pub(super) struct Domain {
    name: String,
    /// The common prefix of the names in the domain, derived from the pod's own name and the domain's name.
    family: String,
}

impl Domain {
    /// Makes the domain `subdomain` of a pod called `host`.
    pub(super) fn new(subdomain: &str, host: &str) -> Self {
        let same = subdomain.bytes().zip(host.bytes()).take_while(|(a, b)| a == b);
        let same = subdomain.get(..same.count()).unwrap_or_default();
        let family = same.rfind('-').map_or("", |dash| &same[..=dash]);
        Self {
            name: subdomain.to_owned(),
            family: family.to_owned(),
        }
    }
}

impl HostNames {
    /// Returns the text with every name replaced, or `None` if it contains none.
    ///
    /// Only whole host names are replaced: `job-worker-1` is kept in `job-worker-10`, `my-job-worker-1`,
    /// `job-worker-1.log` and the path `/data/job-worker-1`.
    pub(super) fn replace_in(&self, text: &Text) -> Option<String> {
        let value = text.as_str();
        let mut out = String::new();
        let mut done = 0;
        for token in tokens(value) {
            if !text.keeps(&token)
                && let Some((address, used)) = self.resolve(&value[token.clone()])
            {
                out.push_str(&value[done..token.start]);
                out.push_str(&address.to_string());
                done = token.start + used;
            }
        }
        if done == 0 {
            return None;
        }
        out.push_str(&value[done..]);
        Some(out)
    }

    /// Returns a name in the text that another pod of the domain may get, but none has yet: a name with the domain's
    /// prefix and an index.
    pub(super) fn missing_in<'t>(&self, text: &'t str) -> Option<&'t str> {
        let domain = self.domain.as_ref().filter(|domain| !domain.family.is_empty())?;
        let names = tokens(text).filter_map(|token| text[token].split('.').next());
        let is_index = |index: &str| !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit());
        let mut missing = names.filter(|name| {
            name.starts_with(&domain.family)
                && name.rsplit_once('-').is_some_and(|(_, index)| is_index(index))
                && !self.addresses.contains_key(*name)
        });
        missing.next()
    }

    /// Returns the address of a host name, and how many of its bytes belong to the name. A full stop that ends a
    /// sentence does not.
    fn resolve(&self, host: &str) -> Option<(Ipv4Addr, usize)> {
        let bare = host.trim_end_matches('.');
        let (name, domain) = bare.split_once('.').unwrap_or((bare, ""));
        let own = self
            .domain
            .as_ref()
            .and_then(|own| domain.strip_prefix(&*own.name));
        let domain = match own {
            Some("") => "",
            Some(rest) => rest.strip_prefix('.').unwrap_or(domain),
            None => domain,
        };
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

/// Returns the names in a text that may be those of pods or services.
pub(super) fn possible_names(text: &str) -> impl Iterator<Item = &str> {
    let names = tokens(text).filter_map(|token| text[token].split('.').next());
    names.filter(|name| {
        let mut bytes = name.bytes();
        bytes
            .next()
            .is_some_and(|first| first.is_ascii_lowercase() || first.is_ascii_digit())
            && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    })
}

/// Returns the parts of a text that may be host names.
fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let start = at;
            let length = text[start..]
                .find(|c| !in_host_name(c))
                .unwrap_or(text.len() - start);
            let end = start + length;
            at = end + text[end..].chars().next().map_or(0, char::len_utf8);
            if length > 0 && !is_path(&text[..start]) {
                return Some(start..end);
            }
        }
        None
    })
}

/// Non-ASCII characters count as parts of a word, so that no part of a word of any language is replaced.
fn in_host_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') || !c.is_ascii()
}

/// Returns true if the text after `before` is part of a path, which follows one slash. A URL's host follows two.
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
            domain: None,
        }
    }

    #[test]
    fn names_resolve_in_the_pods_own_domain() {
        let names = HostNames {
            domain: Some(Domain::new("job-hosts", "job-worker-1")),
            ..names()
        };
        for (input, expected) in [
            ("job-worker-1", Some("127.64.0.1")),
            ("job-worker-1.job-hosts", Some("127.64.0.1")),
            ("job-worker-1.job-hosts.ns.svc:80", Some("127.64.0.1:80")),
            (
                "job-worker-10.job-hosts.ns.svc.cluster.local.",
                Some("127.64.0.10"),
            ),
            ("job-worker-1.ns.svc", Some("127.64.0.1")),
            ("job-worker-1.job-hosts2.ns.svc", None),
            ("job-worker-1.other-hosts.ns.svc", None),
            ("job-worker-1.job-hosts.other.svc", None),
        ] {
            assert_eq!(
                names.replace_in(&Text::plain(input)).as_deref(),
                expected,
                "{input}"
            );
        }
    }

    #[test]
    fn a_pod_waits_for_names_that_look_like_those_of_its_siblings() {
        let in_domain = HostNames {
            domain: Some(Domain::new("job-hosts", "job-worker-1")),
            ..names()
        };
        for (input, expected) in [
            ("job-worker-1,job-worker-10", None),
            ("job-worker-1,job-worker-2,job-server-0", Some("job-worker-2")),
            ("job-server-0.job-hosts.ns.svc:2222", Some("job-server-0")),
            (
                "/data/job-server-0 job-server job-hosts job-x- other-worker-0",
                None,
            ),
        ] {
            assert_eq!(in_domain.missing_in(input), expected, "{input}");
        }
        assert_eq!(names().missing_in("job-worker-2"), None, "it is in no domain");
        let stranger = HostNames {
            domain: Some(Domain::new("web", "web-0")),
            ..names()
        };
        assert_eq!(stranger.missing_in("web-1"), None, "nothing tells the family");
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
    fn names_that_may_be_of_pods_are_found() {
        let found = |text| possible_names(text).collect::<Vec<_>>();
        assert_eq!(
            found(r#"{"url":"job-worker-1.ns.svc:90","Kind":"Worker"} /bin/sh tcp://0-x/ A_B é-job"#),
            ["url", "job-worker-1", "90", "tcp", "0-x"]
        );
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
