//! `--controller_config_file`: what containers get that ask for a device, in the form that older operators read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use kube_manifest::{Content, Finding, Node, Severity, Source, parse_until_error};
use kube_syntax::{field, item, names};
use serde_json::Value;
use training_job::{Accelerator, Accelerators, FieldErrors, HostVolume};

use crate::exit::Failure;

/// The flag.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ControllerConfigArgs {
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

/// What the file says.
#[derive(Default)]
pub(crate) struct ControllerConfig {
    /// What containers get.
    pub(crate) accelerators: Accelerators,
    /// What of it has no effect.
    pub(crate) warnings: Vec<Finding>,
}

impl ControllerConfigArgs {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is no such file: a line for each mistake, with its line and key.
    pub(crate) fn read(&self) -> Result<ControllerConfig, Failure> {
        let Some(file) = &self.file else {
            return Ok(ControllerConfig::default());
        };
        let source = Source::from_file(file, 0);
        let text = source.text.map_err(|why| Failure::new(&source.name, why))?;
        config(&source.name, &text).map_err(|findings| {
            let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
            Failure::new("--controller_config_file", lines.join("\n"))
        })
    }
}

fn config(file: &str, text: &str) -> Result<ControllerConfig, Vec<Finding>> {
    let (documents, error) = parse_until_error(text);
    if let Some(error) = error {
        return Err(vec![Finding::from_syntax_error(file, &error)]);
    }
    let (document, others) = match &documents[..] {
        [] => return Ok(ControllerConfig::default()),
        [document, others @ ..] => (document, others),
    };
    let mut reader = Reader::default();
    let accelerators = reader.root(document);
    let locate = |severity, errors: FieldErrors| {
        let errors = errors.into_iter().map(|e| (e.path, e.problem, e.remedy));
        Finding::locate(file, severity, document, errors)
    };
    let mut wrong = locate(Severity::Error, reader.errors);
    wrong.extend(others.iter().map(|other| Finding {
        severity: Severity::Error,
        file: file.to_owned(),
        at: Some(other.at),
        path: String::new(),
        problem: "this is a second document".to_owned(),
        remedy: "put all in the first".to_owned(),
    }));
    match wrong.is_empty() {
        true => Ok(ControllerConfig {
            accelerators,
            warnings: locate(Severity::Warning, reader.warnings),
        }),
        false => Err(wrong),
    }
}

/// Reads a document, and finds all that is wrong with it.
#[derive(Default)]
struct Reader {
    errors: FieldErrors,
    warnings: FieldErrors,
    /// The path on the node of each volume: a pod that asks for two devices has both their volumes.
    host_paths: BTreeMap<String, String>,
}

/// A value and its path.
type Field<'n> = (String, &'n Node);

impl Reader {
    fn root(&mut self, document: &Node) -> Accelerators {
        let [accelerators, grpc] =
            self.members(&(String::new(), document), ["accelerators", "grpcServerFilePath"]);
        if let Some((path, _)) = grpc {
            self.warnings.push(
                path,
                "it has no effect: no default program is put into replicas",
                "remove it",
            );
        }
        let Some((path, node)) = accelerators else {
            return Accelerators::default();
        };
        let resources = self.entries(&path, node).into_iter();
        let read = resources.map(|(resource, path, node)| (resource, self.accelerator(&(path, node))));
        read.collect()
    }

    fn accelerator(&mut self, accelerator: &Field<'_>) -> Accelerator {
        let [volumes, variables] = self.members(accelerator, ["volumes", "envVars"]);
        let (mut mounts, mut known) = (BTreeSet::new(), BTreeSet::new());
        let mut read = Accelerator::default();
        for volume in self.items(volumes) {
            read.volumes.extend(self.volume(&volume, &mut mounts));
        }
        for variable in self.items(variables) {
            read.variables.extend(self.variable(&variable, &mut known));
        }
        read
    }

    fn volume(&mut self, volume: &Field<'_>, mounts: &mut BTreeSet<String>) -> Option<HostVolume> {
        let fields = self.members(volume, ["name", "hostPath", "mountPath"]);
        let paths = fields
            .each_ref()
            .map(|f| f.as_ref().map(|(path, _)| path.clone()));
        let missing = ["name", "hostPath", "mountPath"].map(|key| field(&volume.0, key));
        let [name, host_path, mount_path] = fields.map(|found| self.text(found));
        for (n, text) in [&name, &host_path, &mount_path].into_iter().enumerate() {
            if text.is_none() && paths[n].is_none() {
                self.errors.push(missing[n].clone(), "it is missing", "add it");
            }
        }
        let [at_name, at_host_path, at_mount_path] = paths.map(Option::unwrap_or_default);
        let (name, host_path, mount_path) = (name?, host_path?, mount_path?);
        if let Some(why) = names::label_1123(&name) {
            self.errors
                .push(at_name, format!("{name:?} is no name of a volume: {why}"), "");
        } else if self
            .host_paths
            .get(&name)
            .is_some_and(|other| *other != host_path)
        {
            self.errors.push(
                at_name,
                format!("the volume {name} has another path on the node already"),
                "use another name",
            );
        }
        for (at, path) in [(at_host_path, &host_path), (at_mount_path.clone(), &mount_path)] {
            if !path.starts_with('/') || path.contains(':') || path.split('/').any(|part| part == "..") {
                let remedy = "write it from / on, without .. and :";
                self.errors
                    .push(at, format!("{path:?} is no path that can be mounted"), remedy);
            }
        }
        if !mounts.insert(mount_path.clone()) {
            self.errors
                .push(at_mount_path, "it is there already", "use another path");
        }
        self.host_paths.insert(name.clone(), host_path.clone());
        Some(HostVolume {
            name,
            host_path,
            mount_path,
        })
    }

    fn variable(&mut self, variable: &Field<'_>, known: &mut BTreeSet<String>) -> Option<(String, String)> {
        let [name, value] = self.members(variable, ["name", "value"]);
        let Some((at, _)) = name.clone() else {
            self.errors
                .push(field(&variable.0, "name"), "it is missing", "add it");
            return None;
        };
        let name = self.text(name)?;
        if let Some(why) = names::env_name(&name) {
            self.errors
                .push(at, format!("{name:?} is no name of a variable: {why}"), "");
        } else if !known.insert(name.clone()) {
            self.errors.push(at, "it is there already", "remove one of them");
        }
        Some((name, self.text(value).unwrap_or_default()))
    }

    /// The members of these keys, in any case; null is as good as nothing. Others are errors.
    fn members<'n, const N: usize>(
        &mut self,
        (path, node): &Field<'n>,
        keys: [&str; N],
    ) -> [Option<Field<'n>>; N] {
        let mut found = [const { None }; N];
        for (key, at, value) in self.entries(path, node) {
            match keys.iter().position(|known| known.eq_ignore_ascii_case(&key)) {
                None => self.errors.push(
                    at,
                    "there is no such key",
                    format!("use one of {}, or remove it", keys.join(", ")),
                ),
                Some(n) if found[n].is_some() => {
                    self.errors
                        .push(at, format!("{} is there already", keys[n]), "remove one of them");
                }
                Some(n) => found[n] = Some((at, value)),
            }
        }
        found
    }

    /// Keys, paths and values, but for those that are null.
    fn entries<'n>(&mut self, path: &str, node: &'n Node) -> Vec<(String, String, &'n Node)> {
        match &node.content {
            Content::Map(entries) => {
                let entries = entries.iter().filter(|e| !is_null(&e.value));
                let entries = entries.map(|e| (e.key.clone(), field(path, &e.key), &e.value));
                entries.collect()
            }
            _ if is_null(node) => Vec::new(),
            _ => {
                self.errors
                    .push(path, "it is no mapping", "write keys and values below it");
                Vec::new()
            }
        }
    }

    fn items<'n>(&mut self, list: Option<Field<'n>>) -> Vec<Field<'n>> {
        let Some((path, node)) = list else {
            return Vec::new();
        };
        match &node.content {
            Content::List(items) => {
                let items = items.iter().enumerate();
                items.map(|(n, node)| (item(&path, n), node)).collect()
            }
            _ => {
                self.errors.push(path, "it is no list", "begin each item with -");
                Vec::new()
            }
        }
    }

    fn text(&mut self, value: Option<Field<'_>>) -> Option<String> {
        let (path, node) = value?;
        match &node.content {
            Content::Scalar(Value::String(text)) => Some(text.clone()),
            Content::Scalar(_) => {
                self.errors.push(path, "it is no string", "put it in quotes");
                None
            }
            _ => {
                self.errors.push(path, "it is no string", "use a string");
                None
            }
        }
    }
}

fn is_null(node: &Node) -> bool {
    matches!(node.content, Content::Scalar(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("../tests/accelerators/config.yaml");

    #[test]
    fn keys_are_read_in_any_case() {
        let read = config("c.yaml", FILE).unwrap_or_default();
        let shouted = FILE.replace("hostPath", "HOSTPATH").replace("envVars", "EnvVars");
        let shouted = shouted.replace("accelerators", "Accelerators");
        let again = config("c.yaml", &shouted).unwrap_or_default();
        assert_eq!(read.accelerators.len(), 2);
        assert_eq!(read.accelerators, again.accelerators);
        let warnings: Vec<_> = read.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "c.yaml:3:1: warning: grpcServerFilePath: it has no effect: no default program is put into replicas; remove it"
            ]
        );
    }

    #[test]
    fn nothing_is_asked_for_by_default() {
        for text in [
            "",
            "# nothing\n",
            "{}",
            "accelerators:\n",
            "accelerators: {example.com/a: }",
        ] {
            let read = config("c.yaml", text);
            assert!(read.is_ok_and(|read| read.accelerators.is_empty()), "{text}");
        }
    }

    #[test]
    fn each_mistake_is_told_with_its_line_and_key() {
        for (text, told) in [
            (
                "- a",
                "c.yaml:1:1: it is no mapping; write keys and values below it",
            ),
            ("accelerators: [", "c.yaml:1:15: "),
            (
                "grpc: x",
                "c.yaml:1:1: grpc: there is no such key; use one of accelerators, grpcServerFilePath, or remove it",
            ),
            (
                "accelerators: {}\nAccelerators: {}",
                "c.yaml:2:1: Accelerators: accelerators is there already; remove one of them",
            ),
            (
                "accelerators:\n  a.b/c:\n    volumes: {}",
                "c.yaml:3:5: accelerators[a.b/c].volumes: it is no list; begin each item with -",
            ),
            (
                "accelerators:\n  a:\n    volumes:\n    - {name: lib, hostPath: /lib}",
                "c.yaml:4:7: accelerators.a.volumes[0].mountPath: it is missing; add it",
            ),
            (
                "accelerators:\n  a:\n    volumes:\n    - {name: Lib, hostPath: /lib, mountPath: /lib}",
                "c.yaml:4:8: accelerators.a.volumes[0].name: \"Lib\" is no name of a volume: ",
            ),
            (
                "accelerators:\n  a:\n    volumes:\n    - name: lib\n      hostPath: lib\n      mountPath: /lib",
                "c.yaml:5:7: accelerators.a.volumes[0].hostPath: \"lib\" is no path that can be mounted; write it from / on, \
                 without .. and :",
            ),
            (
                "accelerators:\n  a:\n    envVars:\n    - {name: A, value: 1}",
                "c.yaml:4:17: accelerators.a.envVars[0].value: it is no string; put it in quotes",
            ),
            (
                "accelerators:\n  a:\n    envVars:\n    - {name: A}\n    - {name: A}",
                "c.yaml:5:8: accelerators.a.envVars[1].name: it is there already; remove one of them",
            ),
            (
                "accelerators:\n  a:\n    volumes: [{name: v, hostPath: /a, mountPath: /a}]\n  b:\n    volumes: [{name: v, hostPath: /b, mountPath: /b}]",
                "c.yaml:5:16: accelerators.b.volumes[0].name: the volume v has another path on the node already; use another name",
            ),
            ("a: 1\n---\nb: 2", "c.yaml:1:1: a: "),
        ] {
            let wrong = config("c.yaml", text).err().unwrap_or_default();
            let lines: Vec<_> = wrong.iter().map(ToString::to_string).collect();
            assert!(
                lines.iter().any(|line| line.starts_with(told)),
                "{text}\n{lines:#?}"
            );
        }
    }
}
