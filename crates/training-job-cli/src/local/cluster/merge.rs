//! The context of a local cluster in the user's own kubeconfig, with `--merge`.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

/// The lists of a kubeconfig, each with the member of its entries.
const LISTS: [(&str, &str); 3] = [
    ("clusters", "cluster"),
    ("contexts", "context"),
    ("users", "user"),
];

/// A context that was added to a kubeconfig. Dropping it removes the context.
pub(super) struct MergedContext {
    path: PathBuf,
    name: String,
    /// The address of the API, which differs from that of a later cluster.
    server: Value,
}

/// Returns the user's own kubeconfig: the first file of `KUBECONFIG`, or `~/.kube/config`.
///
/// # Errors
/// The user has no home directory.
pub(super) fn own_path() -> anyhow::Result<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    if let Some(first) = std::env::split_paths(&listed).find(|path| !path.as_os_str().is_empty()) {
        return Ok(first);
    }
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let home = home.context("--merge: no home directory; set KUBECONFIG")?;
    Ok(home.join(".kube").join("config"))
}

impl MergedContext {
    /// Adds the only context of the kubeconfig `own` to the file at `path`, as a context of this name. The current
    /// context stays.
    ///
    /// # Errors
    /// The file is not a kubeconfig, is being changed by another program, or cannot be written.
    pub(super) fn add(path: PathBuf, name: &str, own: &str) -> anyhow::Result<Self> {
        let own: Value = serde_saphyr::from_str(own)?;
        let server = own["clusters"][0]["cluster"]["server"].clone();
        // A link keeps its place.
        let path = fs::canonicalize(&path).unwrap_or(path);
        change(&path, |config| add(config, name, &own))?;
        Ok(Self {
            path,
            name: name.to_owned(),
            server,
        })
    }
}

impl Drop for MergedContext {
    fn drop(&mut self) {
        let removed = change(&self.path, |config| remove(config, &self.name, &self.server));
        if let Err(error) = removed {
            tracing::warn!(
                "the context {} is still in {}: {error:#}",
                self.name,
                self.path.display()
            );
        }
    }
}

fn add(config: &mut Value, name: &str, own: &Value) {
    for (list, member) in LISTS {
        let mut entry = own[list][0].clone();
        entry["name"] = json!(name);
        if list == "contexts" {
            entry[member]["cluster"] = json!(name);
            entry[member]["user"] = json!(name);
        }
        let mut entries = config[list].as_array().cloned().unwrap_or_default();
        entries.retain(|known| known["name"] != name);
        entries.push(entry);
        config[list] = Value::Array(entries);
    }
}

/// Removes the entries of this name, unless they belong to another server.
fn remove(config: &mut Value, name: &str, server: &Value) {
    let clusters = config["clusters"].as_array().cloned().unwrap_or_default();
    let is_own = |entry: &Value| entry["name"] == name && entry["cluster"]["server"] == *server;
    if !clusters.iter().any(is_own) {
        return;
    }
    for (list, _) in LISTS {
        if let Some(entries) = config[list].as_array_mut() {
            entries.retain(|known| known["name"] != name);
        }
    }
    if config["current-context"] == name {
        config["current-context"] = json!("");
    }
}

/// Changes a kubeconfig file. Creates it if it is missing.
fn change(path: &Path, change: impl FnOnce(&mut Value)) -> anyhow::Result<()> {
    let shown = || path.display().to_string();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(shown)?;
    }
    let _lock = Lock::take(path)?;
    let (text, mode) = match fs::read_to_string(path) {
        Ok(text) => (text, fs::metadata(path).with_context(shown)?.permissions().mode()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (String::new(), 0o600),
        Err(error) => return Err(error).with_context(shown),
    };
    let mut config: Value = match text.trim() {
        "" => json!({"apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": ""}),
        text => serde_saphyr::from_str(text).with_context(shown)?,
    };
    ensure!(
        config.is_object(),
        "{}: not a kubeconfig; must be an object",
        shown()
    );
    change(&mut config);
    let text = serde_saphyr::to_string(&config).with_context(shown)?;
    // Replaced as a whole, so that other programs never read a part.
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let write = || {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)?;
        file.set_permissions(Permissions::from_mode(mode & 0o777))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().with_context(shown)
}

/// The file with which kubectl and other programs lock a kubeconfig. Dropping it removes the file.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> anyhow::Result<Self> {
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let taken = OpenOptions::new().write(true).create_new(true).open(&lock);
        taken.with_context(|| format!("{}: another program changes the kubeconfig", lock.display()))?;
        Ok(Self(lock))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = r#"{"clusters": [{"name": "local", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "local", "user": {"token": "t"}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}]}"#;

    const USERS: &str = "apiVersion: v1\nkind: Config\ncurrent-context: work\nclusters:\n- name: work\n  cluster: \
        {server: https://work}\ncontexts:\n- name: work\n  context: {cluster: work, user: me}\nusers:\n- name: me\n  \
        user: {token: secret}\n";

    fn read(path: &Path) -> Value {
        serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn the_users_file_has_the_context_while_the_cluster_runs() {
        let folder = std::env::temp_dir().join(format!("merge-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("config");
        fs::write(&path, USERS).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let before = read(&path);
        let merged = MergedContext::add(path.clone(), "op-local", OWN).unwrap();
        let during = read(&path);
        assert_eq!(during["current-context"], "work");
        let context = json!({"name": "op-local", "context": {"cluster": "op-local", "user": "op-local"}});
        assert_eq!(during["contexts"][1], context);
        assert_eq!(during["clusters"][1]["cluster"]["server"], "https://127.0.0.1:1");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        // A later cluster takes the name, which the first one then leaves alone.
        let later = MergedContext::add(path.clone(), "op-local", &OWN.replace(":1\"", ":2\"")).unwrap();
        drop(merged);
        assert_eq!(
            read(&path)["clusters"][1]["cluster"]["server"],
            "https://127.0.0.1:2"
        );
        drop(later);
        assert_eq!(read(&path), before);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_is_not_a_kubeconfig_is_not_changed() {
        let folder = std::env::temp_dir().join(format!("merge-bad-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("config");
        fs::write(&path, "- a list\n").unwrap();
        assert!(MergedContext::add(path.clone(), "op-local", OWN).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "- a list\n");
        fs::write(folder.join("config.lock"), "").unwrap();
        let error = MergedContext::add(path, "op-local", OWN)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("another program"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
