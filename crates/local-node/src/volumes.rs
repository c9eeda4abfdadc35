//! Volumes that a container mounts. ConfigMaps and Secrets are files in the pod's folder, other volumes are the
//! directories that the node was given for them. Paths are replaced.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, KeyToPath, PodSpec, Volume};

use super::env_values::{ConfigData, ConfigError, ConfigRef, missing};
use super::environment::{Difference, FILES_ARE_ELSEWHERE, PodPart};

/// The permissions of files whose volume sets none, as in a cluster.
const FILE_MODE: i32 = 0o644;

/// A volume whose files come from a ConfigMap or Secret.
struct Source<'a> {
    store: ConfigRef,
    items: Option<&'a [KeyToPath]>,
    mode: i32,
    optional: bool,
}

impl<'a> Source<'a> {
    /// Returns `None` for a volume of any other type.
    fn of(volume: &'a Volume) -> Option<Self> {
        let (store, items, mode, optional) = match (&volume.config_map, &volume.secret) {
            (Some(map), _) => {
                let store = ConfigRef::ConfigMap(map.name.clone());
                (store, &map.items, map.default_mode, map.optional)
            }
            (None, Some(secret)) => {
                let store = ConfigRef::Secret(secret.secret_name.clone()?);
                (store, &secret.items, secret.default_mode, secret.optional)
            }
            (None, None) => return None,
        };
        Some(Self {
            store,
            items: items.as_deref(),
            mode: mode.unwrap_or(FILE_MODE),
            optional: optional.unwrap_or(false),
        })
    }

    fn files(&self, contents: &ConfigData) -> Result<Vec<File>, ConfigError> {
        let Some(entries) = contents.get(&self.store) else {
            return if self.optional {
                Ok(Vec::new())
            } else {
                Err(missing(&self.store))
            };
        };
        let Some(items) = self.items else {
            let file = |(key, bytes): (&String, &Vec<u8>)| File::new(key, bytes, self.mode);
            return Ok(entries.iter().map(file).collect());
        };
        let mut files = Vec::new();
        for item in items {
            match entries.get(&item.key) {
                Some(bytes) => files.push(File::new(&item.path, bytes, item.mode.unwrap_or(self.mode))),
                None if self.optional => {}
                None => {
                    return Err(ConfigError(format!(
                        "references non-existent config key: {}",
                        item.key
                    )));
                }
            }
        }
        Ok(files)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    path: PathBuf,
    bytes: Vec<u8>,
    mode: u32,
}

impl File {
    fn new(path: &str, bytes: &[u8], mode: i32) -> Self {
        Self {
            path: path.into(),
            bytes: bytes.to_owned(),
            mode: u32::try_from(mode).unwrap_or_default(),
        }
    }
}

/// The files that a container has under a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// The path in the container; `local` is the path here.
    pub(super) pod: String,
    pub(super) local: PathBuf,
    directory: PathBuf,
    files: Vec<File>,
}

impl Mount {
    pub(super) fn difference(&self) -> Difference {
        Difference {
            part: PodPart::Setting,
            name: "volumeMounts".to_owned(),
            pod: Some(self.pod.clone()),
            local: Some(self.local.display().to_string()),
            why: FILES_ARE_ELSEWHERE.to_owned(),
        }
    }

    /// Writes the files.
    ///
    /// # Errors
    /// The pod's folder cannot be written.
    pub(super) fn write(&self) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        for file in &self.files {
            let path = self.directory.join(&file.path);
            fs::create_dir_all(path.parent().unwrap_or(&self.directory))?;
            // A running program may be reading the files of an earlier start.
            let part = path.with_extension("part");
            fs::write(&part, &file.bytes)?;
            fs::set_permissions(&part, Permissions::from_mode(file.mode & 0o777))?;
            fs::rename(&part, &path)?;
        }
        Ok(())
    }
}

/// Writes the changed files of a running container, and removes files that no longer exist, as a kubelet does. A
/// mount of a single file is not changed.
///
/// # Errors
/// The pod's folder cannot be written.
pub(super) fn rewrite(before: &[Mount], now: &[Mount]) -> io::Result<()> {
    let pairs = before.iter().zip(now);
    for (before, now) in pairs.filter(|(before, now)| before != now && now.local == now.directory) {
        now.write()?;
        let is_gone = |file: &&File| now.files.iter().all(|other| other.path != file.path);
        for file in before.files.iter().filter(is_gone) {
            fs::remove_file(now.directory.join(&file.path))?;
        }
    }
    Ok(())
}

/// Returns the ConfigMaps and Secrets that the container mounts.
pub(super) fn mounted<'a>(container: &'a Container, pod: &'a PodSpec) -> impl Iterator<Item = ConfigRef> {
    let volumes = volumes(pod);
    let mounts = container.volume_mounts.iter().flatten();
    mounts.filter_map(move |mount| Some(Source::of(volumes.get(mount.name.as_str())?)?.store))
}

/// Returns the container's mounts, each in a folder of its volume below `folder`, or in the directory that was given for
/// its volume.
///
/// # Errors
/// A ConfigMap, Secret or key is missing and not optional.
pub(super) fn mounts(
    container: &Container,
    pod: &PodSpec,
    contents: &ConfigData,
    folder: &Path,
    given: &BTreeMap<String, PathBuf>,
) -> Result<Vec<Mount>, ConfigError> {
    let volumes = volumes(pod);
    let mounts = container.volume_mounts.iter().flatten();
    let all = mounts.filter_map(|mount| {
        let volume = volumes.get(mount.name.as_str())?;
        let (directory, files) = match given.get(&mount.name) {
            Some(given) => (given.clone(), Ok(Vec::new())),
            None => (folder.join(&mount.name), Source::of(volume)?.files(contents)),
        };
        let part = mount.sub_path.as_deref().unwrap_or_default();
        Some(files.map(|files| Mount {
            pod: mount.mount_path.trim_end_matches('/').to_owned(),
            local: if part.is_empty() {
                directory.clone()
            } else {
                directory.join(part)
            },
            directory,
            files,
        }))
    });
    all.collect()
}

fn volumes(pod: &PodSpec) -> BTreeMap<&str, &Volume> {
    let volumes = pod.volumes.iter().flatten();
    volumes.map(|volume| (volume.name.as_str(), volume)).collect()
}

/// Returns the text with every path below a mount replaced by the path of the files, or `None` if it contains none.
pub(super) fn replace_paths(text: &str, mounts: &[Mount]) -> Option<String> {
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in text.match_indices('/') {
        let starts = at >= done && !text[..at].ends_with(|c| is_in_name(c) || c == '/');
        let fits = |mount: &&Mount| {
            let rest = text[at..].strip_prefix(&*mount.pod);
            !mount.pod.is_empty() && rest.is_some_and(|rest| !rest.starts_with(is_in_name))
        };
        let longest = mounts.iter().filter(fits).max_by_key(|mount| mount.pod.len());
        if let Some(mount) = longest.filter(|_| starts) {
            out.push_str(&text[done..at]);
            out.push_str(&mount.local.to_string_lossy());
            done = at + mount.pod.len();
        }
    }
    (done > 0).then(|| out + &text[done..])
}

/// Returns true if a character may be part of a file's name.
fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '.' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn all(contents: &ConfigData, mounts_of: serde_json::Value) -> Result<Vec<Mount>, ConfigError> {
        let container: Container =
            serde_json::from_value(json!({"name": "main", "volumeMounts": mounts_of})).unwrap();
        let pod: PodSpec = serde_json::from_value(json!({"containers": [], "volumes": [
            {"name": "all", "configMap": {"name": "config"}},
            {"name": "some", "configMap": {"name": "config", "defaultMode": 0o400, "items": [
                {"key": "run", "path": "bin/run.sh", "mode": 0o555}, {"key": "hosts", "path": "hosts"},
            ]}},
            {"name": "key", "secret": {"secretName": "key"}},
            {"name": "maybe", "secret": {"secretName": "key", "optional": true}},
            {"name": "scratch", "emptyDir": {}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ]}))
        .unwrap();
        let given = BTreeMap::from([("data".to_owned(), PathBuf::from("/home/me/data"))]);
        mounts(&container, &pod, contents, Path::new("/pods/job-0"), &given)
    }

    fn config(entries: &[(&str, &str)]) -> ConfigData {
        let entries = entries
            .iter()
            .map(|(key, text)| ((*key).to_owned(), text.as_bytes().to_owned()));
        [(ConfigRef::ConfigMap("config".into()), entries.collect())].into()
    }

    #[test]
    fn files_are_those_of_the_volume() {
        let contents = config(&[("run", "#!/bin/sh"), ("hosts", "a b")]);
        let found = all(
            &contents,
            json!([
                {"name": "all", "mountPath": "/all/"}, {"name": "some", "mountPath": "/some"},
                {"name": "some", "mountPath": "/etc/hosts.deny", "subPath": "hosts"},
                {"name": "maybe", "mountPath": "/maybe"}, {"name": "scratch", "mountPath": "/scratch"},
                {"name": "data", "mountPath": "/data"}, {"name": "data", "mountPath": "/train", "subPath": "train"},
            ]),
        )
        .unwrap();
        let shown: Vec<_> = found
            .iter()
            .map(|mount| {
                let files = mount
                    .files
                    .iter()
                    .map(|f| format!("{} {:o}", f.path.display(), f.mode));
                (
                    mount.pod.as_str(),
                    mount.local.to_str().unwrap(),
                    files.collect::<Vec<_>>().join(", "),
                )
            })
            .collect();
        let some = "bin/run.sh 555, hosts 400";
        assert_eq!(
            shown,
            [
                ("/all", "/pods/job-0/all", "hosts 644, run 644".to_owned()),
                ("/some", "/pods/job-0/some", some.to_owned()),
                ("/etc/hosts.deny", "/pods/job-0/some/hosts", some.to_owned()),
                ("/maybe", "/pods/job-0/maybe", String::new()),
                ("/data", "/home/me/data", String::new()),
                ("/train", "/home/me/data/train", String::new()),
            ]
        );
    }

    #[test]
    fn missing_keys_are_reported() {
        let why = |contents, volume| {
            all(&contents, json!([{"name": volume, "mountPath": "/x"}]))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(why(ConfigData::new(), "all"), "configmap \"config\" not found");
        assert_eq!(why(ConfigData::new(), "key"), "secret \"key\" not found");
        assert_eq!(
            why(config(&[("run", "")]), "some"),
            "references non-existent config key: hosts"
        );
    }

    #[test]
    fn whole_paths_are_replaced() {
        let mount = |pod: &str, local: &str| Mount {
            pod: pod.to_owned(),
            local: local.into(),
            directory: local.into(),
            files: Vec::new(),
        };
        let mounts = [
            mount("/etc/mpi", "/p/config"),
            mount("/etc", "/p/etc"),
            mount("", "/p/root"),
        ];
        for (text, expected) in [
            ("/etc/mpi", Some("/p/config")),
            ("/etc/mpi/hostfile", Some("/p/config/hostfile")),
            ("/etc/mpi/", Some("/p/config/")),
            (
                "--hostfile=/etc/mpi/hostfile -x",
                Some("--hostfile=/p/config/hostfile -x"),
            ),
            (
                "/etc/mpi:/etc/mpi/a,'/etc/mpi'",
                Some("/p/config:/p/config/a,'/p/config'"),
            ),
            ("/etc/hosts", Some("/p/etc/hosts")),
            ("/etc/mpi-2 /etc/mpi.d", Some("/p/etc/mpi-2 /p/etc/mpi.d")),
            ("/etcetera", None),
            ("/usr/etc/mpi", None),
            ("x/etc", None),
            ("file:///etc", None),
            ("", None),
        ] {
            assert_eq!(replace_paths(text, &mounts).as_deref(), expected, "{text}");
        }
    }
}
