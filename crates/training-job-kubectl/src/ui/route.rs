//! The addresses of the server.

use std::fmt;

use form_urlencoded::parse;

use super::filter::Query;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    List(Query),
    Job {
        job: JobKey,
        /// The job of this UID, which may be one of the history.
        uid: Option<String>,
    },
    Events {
        /// The job whose changes are sent, instead of those of all.
        job: Option<JobKey>,
        /// True if time counts as a change, because logs grow without one.
        has_ticks: bool,
    },
    Log {
        namespace: String,
        pod: String,
        container: Option<String>,
    },
    Style,
    Script,
}

/// The kind and the name of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobKey {
    pub(super) namespace: String,
    pub(super) kind: String,
    pub(super) name: String,
}

impl JobKey {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let (namespace, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
        let is_key = parts.next().is_none() && [namespace, kind, name].into_iter().all(is_name);
        is_key.then(|| Self {
            namespace: namespace.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.kind, self.name)
    }
}

/// Returns true for names that are one part of a path, which those of all objects are.
fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.len() <= 253
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

impl Route {
    /// Returns the route of an address, or `None` if there is nothing.
    pub(super) fn parse(path: &str, query: &str) -> Option<Self> {
        let value = |key: &str| {
            parse(query.as_bytes())
                .find(|(name, value)| name == key && !value.is_empty())
                .map(|(_, value)| value.into_owned())
        };
        match path {
            "/" => return Some(Self::List(Query::parse(query))),
            "/ui.css" => return Some(Self::Style),
            "/ui.js" => return Some(Self::Script),
            "/events" => {
                let job = match value("job") {
                    Some(job) => Some(JobKey::parse(&job)?),
                    None => None,
                };
                let has_ticks = value("ticks").is_some();
                return Some(Self::Events { job, has_ticks });
            }
            _ => {}
        }
        if let Some(job) = path.strip_prefix("/job/") {
            let job = JobKey::parse(job)?;
            return Some(Self::Job {
                job,
                uid: value("uid"),
            });
        }
        let (namespace, pod) = path.strip_prefix("/logs/")?.split_once('/')?;
        let container = value("container");
        let is_log = [namespace, pod].into_iter().all(is_name) && container.as_deref().is_none_or(is_name);
        is_log.then(|| Self::Log {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            container,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_routes() {
        let job = || JobKey::parse("ml/MXJob/train").unwrap();
        let cases = [
            (
                ("/job/ml/MXJob/train", ""),
                Route::Job {
                    job: job(),
                    uid: None,
                },
            ),
            (
                ("/job/ml/MXJob/train", "uid=1"),
                Route::Job {
                    job: job(),
                    uid: Some("1".into()),
                },
            ),
            (
                ("/events", ""),
                Route::Events {
                    job: None,
                    has_ticks: false,
                },
            ),
            (
                ("/events", "job=ml/MXJob/train&ticks=1"),
                Route::Events {
                    job: Some(job()),
                    has_ticks: true,
                },
            ),
            (
                ("/logs/ml/train-worker-0", "container=mxnet"),
                Route::Log {
                    namespace: "ml".into(),
                    pod: "train-worker-0".into(),
                    container: Some("mxnet".into()),
                },
            ),
            (("/ui.js", ""), Route::Script),
        ];
        for ((path, query), route) in cases {
            assert_eq!(Route::parse(path, query), Some(route), "{path}?{query}");
        }
        assert!(matches!(Route::parse("/", "state=Failed"), Some(Route::List(_))));
    }

    #[test]
    fn other_addresses_have_none() {
        for (path, query) in [
            ("", ""),
            ("/favicon.ico", ""),
            ("/job/ml/MXJob", ""),
            ("/job/ml/MXJob/train/more", ""),
            ("/job/ml/MXJob/..", ""),
            ("/job/ml/MXJob/%2e", ""),
            ("/logs/ml/", ""),
            ("/logs/../secrets", ""),
            ("/logs/ml/pod", "container=a/b"),
            ("/events", "job=ml"),
        ] {
            assert_eq!(Route::parse(path, query), None, "{path}?{query}");
        }
    }
}
