//! The environment of a container's process, as a kubelet builds it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Container};
use serde::Serialize;

/// The entries of ConfigMaps, by the names of the ConfigMaps.
pub type ConfigMaps = BTreeMap<String, BTreeMap<String, String>>;

/// Returns the ConfigMaps among these objects.
pub fn config_maps(objects: &[impl Serialize]) -> ConfigMaps {
    let values = objects.iter().map(|object| serde_json::to_value(object).unwrap());
    let maps = values.filter(|value| value["kind"] == "ConfigMap");
    maps.map(|value| {
        let map: ConfigMap = serde_json::from_value(value).unwrap();
        (map.metadata.name.unwrap(), map.data.unwrap_or_default())
    })
    .collect()
}

/// Returns the environment of the container's process. It starts with the entries of whole ConfigMaps. The
/// container's variables follow in order, and each `$(NAME)` is replaced by the value set so far.
///
/// # Panics
/// Panics if a ConfigMap is missing, or if a variable has another kind of source.
pub fn environment(container: &Container, maps: &ConfigMaps) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::new();
    for from in container.env_from.iter().flatten() {
        let source = from
            .config_map_ref
            .as_ref()
            .expect("of whole sources only ConfigMaps");
        let entries = maps
            .get(&source.name)
            .unwrap_or_else(|| panic!("no ConfigMap {}", source.name));
        let prefix = from.prefix.clone().unwrap_or_default();
        environment.extend(
            entries
                .iter()
                .map(|(key, value)| (format!("{prefix}{key}"), value.clone())),
        );
    }
    for variable in container.env.iter().flatten() {
        assert_eq!(variable.value_from, None, "{}", variable.name);
        let value = expand(variable.value.as_deref().unwrap_or_default(), &environment);
        environment.insert(variable.name.clone(), value);
    }
    environment
}

fn expand(value: &str, known: &BTreeMap<String, String>) -> String {
    let (mut out, mut rest) = (String::new(), value);
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let reference = behind.strip_prefix('(').and_then(|open| open.split_once(')'));
        rest = match reference {
            Some((name, behind)) => {
                match known.get(name) {
                    Some(value) => out.push_str(value),
                    None => out.push_str(&format!("$({name})")),
                }
                behind
            }
            None => {
                out.push('$');
                behind.strip_prefix('$').unwrap_or(behind)
            }
        };
    }
    out.push_str(rest);
    out
}
