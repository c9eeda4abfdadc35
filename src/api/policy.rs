//! Policies: words of the API, read leniently.

/// A policy: one of the words that the API knows, or any other word that a stored object may have.
pub trait Word {
    /// The words that the API knows.
    const WORDS: &'static [&'static str];

    /// The word, if the API does not know it. An empty one counts as unset.
    fn unknown(&self) -> Option<&str>;
}

/// Declares an enum of known words plus `Other` for anything else a cluster may hold, so that a
/// misspelt policy is a validation error with its path and not an object that cannot be read.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
            /// A word that the API does not know; [validation](crate::validate()) refuses it.
            Other(String),
        }

        impl $name {
            /// The words that the API accepts.
            pub const WORDS: &'static [&'static str] = &[$(stringify!($variant)),+];

            /// The word on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                    Self::Other(word) => word,
                }
            }
        }

        impl $crate::api::Word for $name {
            const WORDS: &'static [&'static str] = Self::WORDS;

            fn unknown(&self) -> Option<&str> {
                match self {
                    // Go clients send "" for an unset policy.
                    Self::Other(word) if !word.is_empty() => Some(word),
                    _ => None,
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $(stringify!($variant) => Self::$variant,)+
                    _ => Self::Other(word),
                }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> String {
                word.as_str().to_owned()
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                // Go clients send "" for an unset policy.
                schemars::json_schema!({ "type": "string", "enum": [$(stringify!($variant),)+ ""] })
            }
        }
    };
}

pub(super) use words;

words! {
    /// What happens to a replica whose pod ended badly.
    RestartPolicy {
        /// The kubelet restarts its containers whatever their exit code; a failed pod is replaced.
        Always,
        /// The kubelet restarts its failed containers; a failed pod is replaced.
        OnFailure,
        /// Its failure is the job's failure.
        Never,
        /// The exit code decides: a retryable code replaces the pod, any other fails the job.
        ExitCode,
    }
}

words! {
    /// Which pods go when the job has ended.
    CleanPodPolicy {
        /// Every pod and service.
        All,
        /// Pods that still run, with their services; finished pods keep their logs.
        Running,
        /// None.
        None,
    }
}

words! {
    /// Whose success is the job's; the kind of job has a default.
    SuccessPolicy {
        /// That of all workers.
        AllWorkers,
    }
}

words! {
    /// How a job's services and environment are laid out. The processes of both see the same environment, but for names
    /// with dots ([`Topology::domain`](crate::Topology::domain)).
    Layout {
        /// Each replica has a service of its own, and its whole environment in its pod.
        Plain,
        /// All replicas share one service, and what is long and the same in their environments is in a ConfigMap.
        Compact,
    }
}

words! {
    /// What restarts together with a failed replica.
    RestartScope {
        /// The failed replica alone.
        Replica,
        /// All replicas of its role.
        Role,
        /// All replicas of the job.
        Job,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_survive_a_round_trip() {
        for word in ["Always", "ExitCode", "", "sometimes"] {
            let policy: RestartPolicy = serde_json::from_value(word.into()).unwrap();
            assert_eq!(serde_json::to_value(&policy).unwrap(), word);
        }
        assert_eq!(
            RestartPolicy::from("never".to_owned()),
            RestartPolicy::Other("never".into()),
            "case matters"
        );
    }
}
