//! The common part of the environment of all replicas of a compact job, stored once in a ConfigMap.
//!
//! A variable such as a list of all hosts is long, and its values differ between replicas at the end, if at all. The
//! common prefix of the values is an entry of the ConfigMap under the variable's name. A container imports the whole
//! ConfigMap with `envFrom`, and has a variable `NAME=$(NAME)rest`. The kubelet reads `envFrom` first, expands the
//! reference, and replaces the imported value with the result. So the process sees the same variables as without this
//! optimization.
//!
//! The ConfigMap is immutable. Its name contains a hash of its content, so that pods from before and after a change
//! of the number of replicas each keep the ConfigMap they were created with.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, ConfigMapEnvSource, Container, EnvFromSource, EnvVar};
use serde_json::json;

use super::{AnyJob, JobObject, ObjectDefinition, ObjectKind, Replica, Topology};

/// Minimum length of a prefix, in bytes, that is moved to the ConfigMap.
const MIN_PREFIX_BYTES: usize = 1_024;

/// Maximum total length of a ConfigMap's entries in bytes: the API server's own limit.
const MAX_DATA_BYTES: usize = 1 << 20;

/// The common part of the environments of a job's replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedEnvironment {
    /// The name of the ConfigMap.
    name: String,
    /// The common prefixes by variable.
    prefixes: BTreeMap<String, String>,
}

impl SharedEnvironment {
    /// The kind of object that holds the prefixes. It is deleted when no pod runs any more.
    pub(crate) const OBJECT: ObjectDefinition =
        ObjectDefinition::new(ObjectKind::of::<ConfigMap>()).while_active();

    /// Returns the common part of the environments, if it is long enough for an object.
    ///
    /// The first and the last replica of each role serve as samples. A pod whose value lacks the common prefix keeps
    /// its whole environment.
    pub(crate) fn of(job: &dyn AnyJob, topology: &Topology<'_>) -> Option<Self> {
        let samples = topology
            .roles
            .iter()
            .filter(|role| role.replicas > 0)
            .flat_map(|role| {
                let indexes = BTreeSet::from([0, role.replicas - 1]);
                indexes
                    .into_iter()
                    .map(|index| job.env(topology, &Replica { role, index }))
            });
        let prefixes = common(samples);
        let name = format!("{}{:016x}", name_prefix(topology), hash(&prefixes));
        (!prefixes.is_empty()).then_some(Self { name, prefixes })
    }

    /// Returns true if an object of this kind and name may hold a current or former common part of the job's
    /// environments.
    pub(crate) fn is_owned_name(topology: &Topology<'_>, kind: ObjectKind, name: &str) -> bool {
        let hash = name.strip_prefix(&name_prefix(topology));
        let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        kind == Self::OBJECT.kind && hash.is_some_and(is_hash)
    }

    /// Returns the ConfigMap with the prefixes.
    pub(crate) fn object(&self) -> JobObject {
        let content = json!({"data": self.prefixes, "immutable": true});
        Self::OBJECT.kind.object(&*self.name, content)
    }

    /// Replaces the prefixes in a container with references to the ConfigMap, if the process then sees the same
    /// environment.
    pub(crate) fn replace_in(&self, container: &mut Container) {
        let variables = container.env.as_deref().unwrap_or_default();
        let places: Option<Vec<_>> = self
            .prefixes
            .iter()
            .map(|(name, text)| place(variables, name, text))
            .collect();
        let (Some(places), Some(variables)) = (places, &mut container.env) else {
            return;
        };
        for (at, (name, text)) in places.into_iter().zip(&self.prefixes) {
            let value = variables[at].value.take().unwrap_or_default();
            variables[at].value = Some(format!("$({name}){}", &value[text.len()..]));
        }
        // After the user's own sources, because the last source of a name takes precedence.
        container.env_from.get_or_insert_default().push(EnvFromSource {
            config_map_ref: Some(ConfigMapEnvSource {
                name: self.name.clone(),
                optional: None,
            }),
            ..EnvFromSource::default()
        });
    }
}

/// Returns the common prefixes by variable, over all environments with the variable, if they are long enough.
fn common(environments: impl IntoIterator<Item = Vec<EnvVar>>) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut several = BTreeSet::new();
    for environment in environments {
        for variable in environment.into_iter().filter(|v| is_key(&v.name)) {
            let value = literal(&variable).unwrap_or_default().to_owned();
            let Some(text) = found.get_mut(&variable.name) else {
                found.insert(variable.name, value);
                continue;
            };
            text.truncate(common_prefix(text, &value));
            several.insert(variable.name);
        }
    }
    let mut left = MAX_DATA_BYTES;
    let mut prefixes = BTreeMap::new();
    found.retain(|name, _| several.contains(name));
    for (name, mut text) in found {
        // A dollar may start a reference, and references in a ConfigMap are not expanded.
        text.truncate(text.find('$').unwrap_or(text.len()));
        if text.len() >= MIN_PREFIX_BYTES && text.len() <= left {
            left -= text.len();
            prefixes.insert(name, text);
        }
    }
    prefixes
}

/// Returns the index of the variable of this name if its value begins with `text` and no variable up to it refers to
/// the name, which would see the value of the ConfigMap.
fn place(variables: &[EnvVar], name: &str, text: &str) -> Option<usize> {
    let at = variables.iter().position(|v| v.name == name)?;
    let reference = format!("$({name})");
    let refers = |v: &EnvVar| v.value.as_ref().is_some_and(|value| value.contains(&reference));
    let begins = literal(&variables[at]).is_some_and(|value| value.starts_with(text));
    (begins && !variables[..=at].iter().any(refers)).then_some(at)
}

fn literal(variable: &EnvVar) -> Option<&str> {
    variable
        .value
        .as_deref()
        .filter(|_| variable.value_from.is_none())
}

/// Returns true if a variable's name can be a key of a ConfigMap that kubelets of all versions import.
fn is_key(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_word) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
}

fn common_prefix(a: &str, b: &str) -> usize {
    let mut same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    while !a.is_char_boundary(same) {
        same -= 1;
    }
    same
}

fn name_prefix(topology: &Topology<'_>) -> String {
    format!("{}-env-", topology.job)
}

/// Returns the FNV-1a hash, so that names stay the same across releases of this library.
fn hash(prefixes: &BTreeMap<String, String>) -> u64 {
    let parts = prefixes
        .iter()
        .flat_map(|(name, text)| [name.as_bytes(), b"=", text.as_bytes(), b"\0"]);
    parts.flatten().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use crate::api::variable;

    use super::*;

    /// Returns the common prefix of environments that each have one variable.
    fn in_common(name: &str, values: &[String]) -> Option<String> {
        common(values.iter().map(|value| vec![variable(name, value)])).remove(name)
    }

    #[test]
    fn long_common_prefixes_are_shared() {
        let long = "x".repeat(MIN_PREFIX_BYTES);
        for (values, shared) in [
            ([format!("{long}1"), format!("{long}2")], Some(&*long)),
            ([long.clone(), format!("{long}2")], Some(&*long)),
            ([long.clone(), long.clone()], Some(&*long)),
            ([long[1..].to_owned(), long.clone()], None),
            ([format!("a{long}"), format!("b{long}")], None),
            // A reference is not shared, nor a part of one.
            ([format!("{long}$(A)y"), format!("{long}$(A)z")], Some(&*long)),
            ([format!("{long}$$"), format!("{long}$$")], Some(&*long)),
            ([format!("$(A){long}"), format!("$(A){long}")], None),
            // Nor is a part of a character.
            ([format!("{long}\u{e9}"), format!("{long}\u{e8}")], Some(&*long)),
        ] {
            assert_eq!(in_common("NAME", &values).as_deref(), shared, "{values:?}");
        }
        assert_eq!(
            in_common("NAME", std::slice::from_ref(&long)),
            None,
            "nobody to share it with"
        );
        for name in ["my-name", "my.name", "1ST", "", "\u{e9}"] {
            assert_eq!(in_common(name, &[long.clone(), long.clone()]), None, "{name}");
        }
    }

    #[test]
    fn values_beyond_the_size_of_a_config_map_stay_in_the_pods() {
        let third = MAX_DATA_BYTES / 3;
        let environment: Vec<_> = [third, third, third + 2, MIN_PREFIX_BYTES]
            .into_iter()
            .enumerate()
            .map(|(n, length)| variable(format!("V{n}"), "x".repeat(length)))
            .collect();
        let shared = common([environment.clone(), environment]);
        assert_eq!(shared.keys().collect::<Vec<_>>(), ["V0", "V1", "V3"]);
        assert!(shared.values().map(String::len).sum::<usize>() <= MAX_DATA_BYTES);
    }

    #[test]
    fn a_container_that_differs_keeps_all_it_has() {
        let text = "x".repeat(MIN_PREFIX_BYTES);
        let shared = SharedEnvironment {
            name: "map".to_owned(),
            prefixes: [("A".to_owned(), text.clone()), ("B".to_owned(), text.clone())].into(),
        };
        let container = |env: Vec<EnvVar>| Container {
            env: Some(env),
            ..Container::default()
        };
        let (a, b) = (variable("A", format!("{text}1")), variable("B", &*text));
        let mut whole = container(vec![a.clone(), b.clone()]);
        shared.replace_in(&mut whole);
        let env = [variable("A", "$(A)1"), variable("B", "$(B)")];
        assert_eq!(whole.env.as_deref(), Some(&env[..]));
        let from = whole.env_from.unwrap();
        assert_eq!(from[0].config_map_ref.as_ref().unwrap().name, "map");
        let elsewhere = EnvVar {
            value_from: Some(Default::default()),
            ..b.clone()
        };
        for env in [
            vec![],
            vec![a.clone()],
            vec![a.clone(), variable("B", "other")],
            vec![a.clone(), elsewhere],
            vec![variable("C", "$(B)"), a.clone(), b.clone()],
            vec![a.clone(), variable("B", format!("{text}$(B)"))],
            vec![a.clone(), variable("B", "first"), b.clone()],
        ] {
            let mut kept = container(env.clone());
            shared.replace_in(&mut kept);
            assert_eq!(kept, container(env));
        }
    }

    #[test]
    fn names_depend_only_on_the_shared_content() {
        let of = |name: &str, text: &str| hash(&[(name.to_owned(), text.to_owned())].into());
        assert_eq!(of("A", "x"), of("A", "x"));
        assert_ne!(of("A", "x"), of("A", "y"));
        assert_ne!(of("A", "x"), of("B", "x"));
        // As published for FNV-1a, because names in clusters outlive a release.
        assert_eq!(hash(&BTreeMap::new()), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of("A", "x"), 0xc2b4_238c_5131_5093);
    }
}
