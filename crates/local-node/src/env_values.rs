//! The sources of a container's variables: literals, the pod's fields, ConfigMaps and Secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod};

use super::environment::Environment;
use super::references::Text;
use super::resources::{self, Machine};

/// The address of the node as its pods see it.
pub(super) const HOST_IP: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A ConfigMap or Secret that a container's variables refer to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConfigRef {
    ConfigMap(String),
    Secret(String),
}

/// The entries of a ConfigMap or Secret.
pub(super) type ConfigEntries = BTreeMap<String, Vec<u8>>;

/// The contents of the ConfigMaps and Secrets that exist.
pub(super) type ConfigData = BTreeMap<ConfigRef, ConfigEntries>;

/// The sources of values, besides the container itself.
pub(super) struct ValueSources<'a> {
    pub(super) pod: &'a Pod,
    pub(super) address: Ipv4Addr,
    pub(super) node: &'a str,
    pub(super) machine: Machine,
    pub(super) contents: ConfigData,
    /// The variables with the container's devices.
    pub(super) devices: BTreeMap<String, String>,
}

/// The reason that a container cannot be configured yet: the message of its `CreateContainerConfigError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct ConfigError(pub(super) String);

/// Returns the ConfigMaps and Secrets that the container's variables refer to.
pub(super) fn config_refs(container: &Container) -> BTreeSet<ConfigRef> {
    let whole = container.env_from.iter().flatten().flat_map(|from| {
        let config_map = from
            .config_map_ref
            .as_ref()
            .map(|source| ConfigRef::ConfigMap(source.name.clone()));
        let secret = from
            .secret_ref
            .as_ref()
            .map(|source| ConfigRef::Secret(source.name.clone()));
        [config_map, secret]
    });
    let single = container
        .env
        .iter()
        .flatten()
        .filter_map(|var| var.value_from.as_ref())
        .flat_map(|from| {
            let config_map = from
                .config_map_key_ref
                .as_ref()
                .map(|source| ConfigRef::ConfigMap(source.name.clone()));
            let secret = from
                .secret_key_ref
                .as_ref()
                .map(|source| ConfigRef::Secret(source.name.clone()));
            [config_map, secret]
        });
    whole.chain(single).flatten().collect()
}

/// Returns the environment that the pod's specification declares for the container, before any change for this
/// machine.
///
/// # Errors
/// A ConfigMap, Secret or key is missing and not optional, or a field reference is not one that pods may use.
pub(super) fn declared_environment(
    container: &Container,
    sources: &ValueSources<'_>,
) -> Result<Environment, ConfigError> {
    let mut env = Environment::default();
    for from in container.env_from.iter().flatten() {
        let config_map = from
            .config_map_ref
            .as_ref()
            .map(|r| (ConfigRef::ConfigMap(r.name.clone()), r.optional.unwrap_or(false)));
        let secret = from
            .secret_ref
            .as_ref()
            .map(|r| (ConfigRef::Secret(r.name.clone()), r.optional.unwrap_or(false)));
        for (store, optional) in [config_map, secret].into_iter().flatten() {
            let Some(entries) = sources.contents.get(&store) else {
                if optional {
                    continue;
                }
                return Err(missing(&store));
            };
            for (key, value) in entries {
                let name = format!("{}{key}", from.prefix.as_deref().unwrap_or_default());
                env.declare(&name, variable_text(value), matches!(store, ConfigRef::Secret(_)));
            }
        }
    }
    for var in container.env.iter().flatten() {
        let value = match (&var.value, &var.value_from) {
            (Some(value), _) if !value.is_empty() => {
                Some((Text::expand(value, |name| env.declared(name)), false))
            }
            (_, Some(from)) => value_from(container, from, sources)?,
            _ => Some((Text::default(), false)),
        };
        let Some((value, secret)) = value else { continue };
        // A host name must stay a name, even where it equals the pod's.
        let value = if var.name == "HOSTNAME" {
            Text::kept(value.as_str())
        } else {
            value
        };
        env.declare(&var.name, value, secret);
    }
    Ok(env)
}

/// Returns an entry as the value of a variable, which is text here.
fn variable_text(entry: &[u8]) -> Text {
    Text::plain(String::from_utf8_lossy(entry))
}

/// Returns the value, and true if it is secret. Returns `None` if the source is optional and missing.
fn value_from(
    container: &Container,
    from: &EnvVarSource,
    sources: &ValueSources<'_>,
) -> Result<Option<(Text, bool)>, ConfigError> {
    if let Some(field) = &from.field_ref {
        let value = field_value(&field.field_path, sources)?;
        return Ok(Some((Text::kept(value), false)));
    }
    if let Some(selector) = &from.resource_field_ref {
        let value = resources::field_value(container, selector, &sources.machine)
            .ok_or_else(|| ConfigError(format!("unsupported container resource: {}", selector.resource)))?;
        return Ok(Some((Text::plain(value), false)));
    }
    let config_map = from.config_map_key_ref.as_ref();
    let config_map = config_map.map(|r| {
        (
            ConfigRef::ConfigMap(r.name.clone()),
            &r.key,
            r.optional.unwrap_or(false),
        )
    });
    let secret = from.secret_key_ref.as_ref();
    let secret = secret.map(|r| {
        (
            ConfigRef::Secret(r.name.clone()),
            &r.key,
            r.optional.unwrap_or(false),
        )
    });
    let Some((store, key, optional)) = config_map.or(secret) else {
        return Err(ConfigError(
            "a variable has a valueFrom that is empty or not supported here".to_owned(),
        ));
    };
    match sources.contents.get(&store).map(|entries| entries.get(key)) {
        Some(Some(value)) => Ok(Some((
            variable_text(value),
            matches!(store, ConfigRef::Secret(_)),
        ))),
        _ if optional => Ok(None),
        None => Err(missing(&store)),
        Some(None) => Err(ConfigError(format!(
            "couldn't find key {key} in {}",
            describe(&store)
        ))),
    }
}

fn field_value(path: &str, sources: &ValueSources<'_>) -> Result<String, ConfigError> {
    let Pod { metadata, spec, .. } = sources.pod;
    let keyed = |prefix: &str| path.strip_prefix(prefix)?.strip_prefix("['")?.strip_suffix("']");
    if let Some(key) = keyed("metadata.labels") {
        return Ok(metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(key))
            .cloned()
            .unwrap_or_default());
    }
    if let Some(key) = keyed("metadata.annotations") {
        return Ok(metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(key))
            .cloned()
            .unwrap_or_default());
    }
    let account = || spec.as_ref().and_then(|spec| spec.service_account_name.clone());
    Ok(match path {
        "metadata.name" => metadata.name.clone().unwrap_or_default(),
        "metadata.namespace" => metadata.namespace.clone().unwrap_or_default(),
        "metadata.uid" => metadata.uid.clone().unwrap_or_default(),
        "spec.nodeName" => sources.node.to_owned(),
        "spec.serviceAccountName" => account().unwrap_or_else(|| "default".to_owned()),
        "status.podIP" | "status.podIPs" => sources.address.to_string(),
        "status.hostIP" | "status.hostIPs" => HOST_IP.to_string(),
        _ => return Err(ConfigError(format!("unsupported fieldPath: {path}"))),
    })
}

pub(super) fn missing(store: &ConfigRef) -> ConfigError {
    ConfigError(format!("{} not found", describe(store)))
}

fn describe(store: &ConfigRef) -> String {
    match store {
        ConfigRef::ConfigMap(name) => format!("configmap {name:?}"),
        ConfigRef::Secret(name) => format!("secret {name:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn build(container: Value) -> Result<Vec<(String, String)>, String> {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "job-worker-0", "namespace": "ns", "uid": "u-1",
                "labels": {"index": "0"}, "annotations": {"note": "hi"}},
            "spec": {"containers": [], "serviceAccountName": "sa"},
        }))
        .unwrap();
        let map = |entries: &[(&str, &str)]| {
            entries
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_owned()))
                .collect()
        };
        let sources = ValueSources {
            pod: &pod,
            address: Ipv4Addr::new(127, 64, 0, 2),
            node: "laptop",
            machine: Machine {
                cpus: 2.0,
                memory_bytes: 0.0,
            },
            contents: [
                (
                    ConfigRef::ConfigMap("cm".into()),
                    map(&[("A", "from cm"), ("B", "b")]),
                ),
                (ConfigRef::Secret("sec".into()), map(&[("token", "s3")])),
            ]
            .into(),
            devices: BTreeMap::new(),
        };
        let container = serde_json::from_value(container).unwrap();
        declared_environment(&container, &sources)
            .map(|env| {
                env.iter()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect()
            })
            .map_err(|error| error.to_string())
    }

    fn pairs(expected: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
        Ok(expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect())
    }

    #[test]
    fn the_last_duplicate_wins_and_references_see_earlier_variables_only() {
        let env = json!([
            {"name": "LATE", "value": "$(A)"},
            {"name": "A", "value": "1"},
            {"name": "A", "value": "$(A)2"},
            {"name": "B", "value": "$(A)-$(LATER)-$$(A)"},
            {"name": "LATER", "value": "x"},
            {"name": "EMPTY"},
        ]);
        assert_eq!(
            build(json!({"name": "c", "env": env})),
            pairs(&[
                ("LATE", "$(A)"),
                ("A", "12"),
                ("B", "12-$(LATER)-$(A)"),
                ("LATER", "x"),
                ("EMPTY", "")
            ])
        );
    }

    #[test]
    fn fields_of_the_pod() {
        for (path, expected) in [
            ("metadata.name", "job-worker-0"),
            ("metadata.namespace", "ns"),
            ("metadata.uid", "u-1"),
            ("metadata.labels['index']", "0"),
            ("metadata.labels['none']", ""),
            ("metadata.annotations['note']", "hi"),
            ("spec.nodeName", "laptop"),
            ("spec.serviceAccountName", "sa"),
            ("status.podIP", "127.64.0.2"),
            ("status.podIPs", "127.64.0.2"),
            ("status.hostIP", "127.0.0.1"),
        ] {
            let env = json!([{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}]);
            assert_eq!(
                build(json!({"name": "c", "env": env})),
                pairs(&[("X", expected)]),
                "{path}"
            );
        }
        let env = json!([{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "spec.nope"}}}]);
        assert_eq!(
            build(json!({"name": "c", "env": env})),
            Err("unsupported fieldPath: spec.nope".into())
        );
    }

    #[test]
    fn config_maps_and_secrets() {
        let from = |kind: &str, name: &str, key: &str, optional: bool| json!([{"name": "X", "valueFrom": {kind: {"name": name, "key": key, "optional": optional}}}]);
        for (env, expected) in [
            (
                from("configMapKeyRef", "cm", "A", false),
                pairs(&[("X", "from cm")]),
            ),
            (from("secretKeyRef", "sec", "token", false), pairs(&[("X", "s3")])),
            (from("configMapKeyRef", "no", "A", true), pairs(&[])),
            (from("secretKeyRef", "sec", "no", true), pairs(&[])),
            (
                from("configMapKeyRef", "no", "A", false),
                Err("configmap \"no\" not found".into()),
            ),
            (
                from("secretKeyRef", "sec", "no", false),
                Err("couldn't find key no in secret \"sec\"".into()),
            ),
        ] {
            assert_eq!(build(json!({"name": "c", "env": env})), expected, "{env}");
        }
    }

    #[test]
    fn whole_config_maps_come_first_and_can_be_referred_to() {
        let container = json!({"name": "c",
            "envFrom": [
                {"prefix": "P_", "configMapRef": {"name": "cm"}},
                {"secretRef": {"name": "sec"}},
                {"secretRef": {"name": "none", "optional": true}},
            ],
            "env": [{"name": "P_A", "value": "own"}, {"name": "C", "value": "$(P_B)$(token)"}],
        });
        let typed: Container = serde_json::from_value(container.clone()).unwrap();
        assert_eq!(config_refs(&typed).len(), 3);
        assert_eq!(
            build(container),
            pairs(&[("P_A", "own"), ("P_B", "b"), ("token", "s3"), ("C", "bs3")])
        );
        let missing = json!({"name": "c", "envFrom": [{"configMapRef": {"name": "none"}}]});
        assert_eq!(build(missing), Err("configmap \"none\" not found".into()));
    }
}
