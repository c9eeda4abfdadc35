//! Policies: enumerations of the API. Unknown values are decoded too, because stored objects may have them.

/// A policy: one of the words that the API defines, or any other word that a stored object may have.
pub trait Word {
    /// The words that the API defines.
    const WORDS: &'static [&'static str];

    /// Returns the word if the API does not define it. An empty word counts as unset.
    fn unknown(&self) -> Option<&str>;
}

/// Declares an enum of known words and `Other` for any other word that a cluster may store. A misspelled policy is then
/// a validation error with its path, and not an object that cannot be decoded.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
            /// A word that the API does not define. [Validation](crate::validate()) rejects it.
            Other(String),
        }

        impl $name {
            /// The words that the API defines.
            pub const WORDS: &'static [&'static str] = &[$(stringify!($variant)),+];

            /// Returns the word as in JSON.
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
    /// The action after the failure of a replica.
    RestartPolicy {
        /// The kubelet restarts its containers whatever their exit code, and the operator replaces a failed pod.
        Always,
        /// The kubelet restarts its failed containers, and the operator replaces a failed pod.
        OnFailure,
        /// The failure fails the job.
        Never,
        /// The exit code decides: a retryable code replaces the pod, any other fails the job.
        ExitCode,
    }
}

words! {
    /// The pods that are deleted when the job has ended.
    CleanPodPolicy {
        /// Every pod and service.
        All,
        /// Pods that still run, with their services; finished pods keep their logs.
        Running,
        /// No pod.
        None,
    }
}

words! {
    /// The replicas whose success makes the job succeed, in a kind that has this field. The kind has a default.
    SuccessPolicy {
        /// All workers.
        AllWorkers,
    }
}

words! {
    /// The layout of a job's services and environment variables. Processes see the same environment in both layouts,
    /// except for names with dots ([`Topology::domain`](crate::Topology::domain)).
    Layout {
        /// Each replica has a service of its own, and its whole environment in its pod.
        Plain,
        /// All replicas share one service, and a ConfigMap holds the common part of their environments if it is long.
        Compact,
    }
}

words! {
    /// The replicas that restart together when one fails.
    RestartScope {
        /// Only the failed replica.
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
