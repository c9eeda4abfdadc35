//! `--controller_config_file`: additions to containers that request a device, in the format of older operators.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use kube_manifest::{Content, Finding, Node, Position, Severity, Source, parse_until_error};
use kube_schema::{Schema, field, item, names};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use training_job::validate::value::check;
use training_job::{Accelerator, Accelerators, FieldErrors, HostVolume};

use crate::exit::Failure;

/// The flag of the file with accelerators.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ControllerConfigArgs {
    /// A YAML file with the volumes and environment variables of containers that request a device, by resource:
    /// accelerators.RESOURCE.volumes (name, hostPath, mountPath) and envVars (name, value).
    #[arg(
        id = "controller_config_file",
        long = "controller_config_file",
        visible_alias = "controller-config-file",
        value_name = "FILE"
    )]
    file: Option<PathBuf>,
}

/// The contents of the file of `--controller_config_file`.
#[derive(Debug, Default)]
pub struct ControllerConfig {
    /// The volumes and variables of containers that request a device.
    pub accelerators: Accelerators,
    /// The fields of the file that have no effect.
    pub warnings: Vec<Finding>,
}

impl ControllerConfigArgs {
    /// Reads the file, if one is named.
    ///
    /// # Errors
    /// The file cannot be read, or is invalid. The error has one line per finding, with the position and the field.
    pub fn read(&self) -> Result<ControllerConfig, Failure> {
        let Some(file) = &self.file else {
            return Ok(ControllerConfig::default());
        };
        let source = Source::from_file(file, 0);
        let text = source.text.map_err(|why| Failure::new(&source.name, why))?;
        parse(&source.name, &text).map_err(|findings| {
            let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
            Failure::new("--controller_config_file", lines.join("\n"))
        })
    }
}

/// The format of the file.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "the file is checked by its schema, and decoded item by item"
)]
struct ConfigFile {
    #[schemars(default)]
    accelerators: BTreeMap<String, Additions>,
    #[schemars(default)]
    grpc_server_file_path: Value,
}

/// The additions to a container that requests a resource.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "the file is checked by its schema, and decoded item by item"
)]
struct Additions {
    #[schemars(default, extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["mountPath"]))]
    volumes: Vec<Volume>,
    #[schemars(default, extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    env_vars: Vec<Variable>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Volume {
    name: String,
    host_path: String,
    mount_path: String,
}

#[derive(Deserialize, JsonSchema)]
struct Variable {
    name: String,
    #[serde(default)]
    value: String,
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<ConfigFile>();
    Schema::new(schema.as_value())
});

/// Parses the text of a file. Returns the errors if there are any.
fn parse(file: &str, text: &str) -> Result<ControllerConfig, Vec<Finding>> {
    let (mut documents, error) = parse_until_error(text);
    if let Some(error) = error {
        return Err(vec![Finding::from_syntax_error(file, &error)]);
    }
    let Some((document, others)) = documents.split_first_mut() else {
        return Ok(ControllerConfig::default());
    };
    let error_at = |at: Position, path: String, problem: &str, remedy: &str| Finding {
        severity: Severity::Error,
        file: file.to_owned(),
        at: Some(at),
        path,
        problem: problem.to_owned(),
        remedy: remedy.to_owned(),
    };
    let mut duplicates = Vec::new();
    normalize(document, &SCHEMA, "", &mut duplicates);
    let document = &*document;
    let value = match is_null(document) {
        true => Value::Object(serde_json::Map::default()),
        false => document.to_json(),
    };
    let mut errors = check(&SCHEMA, &value);
    let accelerators = accelerators(&value, &mut errors);
    let locate = |severity, errors: FieldErrors| {
        let errors = errors.into_iter().map(|e| (e.path, e.problem, e.remedy));
        Finding::locate(file, severity, document, errors)
    };
    let mut findings = locate(Severity::Error, errors);
    findings.extend(
        duplicates
            .into_iter()
            .map(|(at, path)| error_at(at, path, "duplicate key", "remove one of them")),
    );
    findings.extend(others.iter().map(|other| {
        error_at(
            other.at,
            String::new(),
            "must be the only document",
            "move its keys to the first document",
        )
    }));
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut unused = FieldErrors::default();
    if value.get("grpcServerFilePath").is_some() {
        let problem = "has no effect: this operator adds no default program to replicas";
        unused.push("grpcServerFilePath", problem, "remove it");
    }
    Ok(ControllerConfig {
        accelerators,
        warnings: locate(Severity::Warning, unused),
    })
}

/// Spells the keys as the schema does, because older operators ignored their case. Removes nulls, which equal missing
/// keys. Collects the keys that occur twice, which remain once.
fn normalize(node: &mut Node, schema: &Schema, path: &str, duplicates: &mut Vec<(Position, String)>) {
    match &mut node.content {
        Content::Scalar(_) => {}
        Content::List(nodes) => {
            for (n, node) in nodes.iter_mut().enumerate() {
                if let Some(schema) = schema.items() {
                    normalize(node, schema, &item(path, n), duplicates);
                }
            }
        }
        Content::Map(entries) => {
            entries.retain(|entry| !is_null(&entry.value));
            let mut known = BTreeSet::new();
            entries.retain_mut(|entry| {
                let mut properties = schema.properties();
                let Some((name, _)) = properties.find(|(name, _)| name.eq_ignore_ascii_case(&entry.key))
                else {
                    return true;
                };
                let is_first = known.insert(name.to_owned());
                if !is_first {
                    duplicates.push((entry.at, field(path, &entry.key)));
                }
                name.clone_into(&mut entry.key);
                is_first
            });
            for entry in entries {
                if let Some(schema) = schema.member(&entry.key) {
                    normalize(&mut entry.value, schema, &field(path, &entry.key), duplicates);
                }
            }
        }
    }
}

fn is_null(node: &Node) -> bool {
    matches!(node.content, Content::Scalar(Value::Null))
}

/// Returns the additions of all resources. Adds errors for values that Kubernetes would reject in a pod.
fn accelerators(file: &Value, errors: &mut FieldErrors) -> Accelerators {
    let resources = file["accelerators"].as_object().into_iter().flatten();
    let mut accelerators = Accelerators::new();
    // A pod that requests two devices has the volumes of both, so a name must have one path on the node.
    let mut host_paths = BTreeMap::new();
    for (resource, additions) in resources {
        let path = field("accelerators", resource);
        let mut accelerator = Accelerator::default();
        for (path, volume) in decode_items::<Volume>(&additions["volumes"], &field(&path, "volumes")) {
            check_volume(&volume, &path, errors);
            let host_path = host_paths
                .entry(volume.name.clone())
                .or_insert_with(|| volume.host_path.clone());
            if *host_path != volume.host_path {
                let problem = format!("must have the same hostPath as the other volume {}", volume.name);
                errors.push(field(&path, "name"), problem, "use another name");
            }
            accelerator.volumes.push(HostVolume {
                name: volume.name,
                host_path: volume.host_path,
                mount_path: volume.mount_path,
            });
        }
        for (path, variable) in decode_items::<Variable>(&additions["envVars"], &field(&path, "envVars")) {
            if let Some(why) = names::env_name(&variable.name) {
                let problem = format!("must be a variable name (is {:?}): {why}", variable.name);
                errors.push(field(&path, "name"), problem, "");
            }
            accelerator.variables.push((variable.name, variable.value));
        }
        accelerators.insert(resource.clone(), accelerator);
    }
    accelerators
}

fn check_volume(volume: &Volume, path: &str, errors: &mut FieldErrors) {
    if let Some(why) = names::label_1123(&volume.name) {
        let problem = format!("must be a volume name (is {:?}): {why}", volume.name);
        errors.push(field(path, "name"), problem, "");
    }
    for (key, value) in [("hostPath", &volume.host_path), ("mountPath", &volume.mount_path)] {
        if !value.starts_with('/') || value.contains(':') || value.split('/').any(|part| part == "..") {
            let problem = format!("must be an absolute path without .. and : (is {value:?})");
            errors.push(field(path, key), problem, "");
        }
    }
}

/// Returns the items of a list with their paths. Items that violate the schema are skipped.
fn decode_items<T: DeserializeOwned>(list: &Value, path: &str) -> Vec<(String, T)> {
    let items = list.as_array().into_iter().flatten().enumerate();
    items
        .filter_map(|(n, value)| Some((item(path, n), T::deserialize(value).ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("../../../operator/tests/accelerators/config.yaml");

    #[test]
    fn keys_are_read_in_any_case() {
        let read = parse("c.yaml", FILE).unwrap_or_default();
        let shouted = FILE.replace("hostPath", "HOSTPATH").replace("envVars", "EnvVars");
        let shouted = shouted.replace("accelerators", "Accelerators");
        let again = parse("c.yaml", &shouted).unwrap_or_default();
        assert_eq!(read.accelerators.len(), 2);
        assert_eq!(read.accelerators, again.accelerators);
        let warnings: Vec<_> = read.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "c.yaml:3:1: warning: grpcServerFilePath: has no effect: this operator adds no default program to replicas; \
                 remove it"
            ]
        );
    }

    #[test]
    fn a_file_without_resources_adds_nothing() {
        for text in [
            "",
            "# nothing\n",
            "{}",
            "accelerators:\n",
            "accelerators: {example.com/a: }",
        ] {
            let read = parse("c.yaml", text);
            assert!(read.is_ok_and(|read| read.accelerators.is_empty()), "{text}");
        }
    }

    #[test]
    fn each_error_has_its_line_and_its_field() {
        for (text, expected) in [
            ("- a", "c.yaml:1:1: "),
            ("accelerators: [", "c.yaml:1:15: "),
            ("grpc: x", "c.yaml:1:1: grpc: "),
            (
                "accelerators: {}\nAccelerators: {}",
                "c.yaml:2:1: Accelerators: duplicate key; remove one of them",
            ),
            (
                "accelerators:\n  a.b/c:\n    volumes: {}",
                "c.yaml:3:5: accelerators[a.b/c].volumes: ",
            ),
            (
                "accelerators:\n  a:\n    volumes:\n    - {name: lib, hostPath: /lib}",
                "c.yaml:4:7: accelerators.a.volumes[0].mountPath: ",
            ),
            (
                "accelerators:\n  a:\n    volumes:\n    - {name: Lib, hostPath: /lib, mountPath: /lib}",
                "c.yaml:4:8: accelerators.a.volumes[0].name: must be a volume name (is \"Lib\"): ",
            ),
            (
                "accelerators:\n  a:\n    volumes:\n    - name: lib\n      hostPath: lib\n      mountPath: /lib",
                "c.yaml:5:7: accelerators.a.volumes[0].hostPath: must be an absolute path without .. and : (is \"lib\")",
            ),
            (
                "accelerators:\n  a:\n    envVars:\n    - {name: A, value: 1}",
                "c.yaml:4:17: accelerators.a.envVars[0].value: ",
            ),
            (
                "accelerators:\n  a:\n    envVars:\n    - {name: A}\n    - {name: A}",
                "c.yaml:5:7: accelerators.a.envVars[1]: ",
            ),
            (
                "accelerators:\n  a:\n    volumes: [{name: v, hostPath: /a, mountPath: /a}]\n  b:\n    volumes: [{name: v, hostPath: /b, mountPath: /b}]",
                "c.yaml:5:16: accelerators.b.volumes[0].name: must have the same hostPath as the other volume v; use another name",
            ),
            ("a: 1\n---\nb: 2", "c.yaml:1:1: a: "),
            ("{}\n---\nb: 2", "c.yaml:3:1: must be the only document; "),
            (
                "accelerators:\n  a:\n    volumes: 1\n    envVars:\n    - {name: A=B}",
                "c.yaml:5:8: accelerators.a.envVars[0].name: must be a variable name (is \"A=B\"): ",
            ),
        ] {
            let wrong = parse("c.yaml", text).err().unwrap_or_default();
            let lines: Vec<_> = wrong.iter().map(ToString::to_string).collect();
            assert!(
                lines.iter().any(|line| line.starts_with(expected)),
                "{text}\n{lines:#?}"
            );
        }
    }
}
