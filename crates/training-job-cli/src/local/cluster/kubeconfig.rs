//! The kubeconfig file of a local cluster, which exists while the cluster runs.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use training_job_controller::process::program;

/// The first line of each file that this program writes. A file without it is not replaced.
const MARK: &str = "# The kubeconfig of a local cluster, which ends with it.\n";

/// A kubeconfig file that other clusters of this machine leave alone. Dropping it removes the file.
pub(super) struct KubeconfigFile {
    path: PathBuf,
    /// Locked while the cluster runs. The kernel releases the lock when the process ends, however it ends.
    file: File,
}

/// Returns the default path of the file.
///
/// # Errors
/// The user has no home directory.
pub(super) fn default_path() -> anyhow::Result<PathBuf> {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let home = home.context("no home directory; set --kubeconfig")?;
    Ok(home.join(".kube").join(format!("{}-local", program().name)))
}

impl KubeconfigFile {
    /// Creates the file, or takes the one that a killed cluster has left.
    ///
    /// # Errors
    /// A cluster that runs has the file, it was written by something else, or it cannot be written.
    pub(super) fn create(path: PathBuf) -> anyhow::Result<Self> {
        let shown = path.display().to_string();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let mut file = file.with_context(|| shown.clone())?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("{shown}: another local cluster uses it; choose another file with --kubeconfig")
            }
            Err(TryLockError::Error(error)) => return Err(error).context(shown),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(|| shown.clone())?;
        ensure!(
            text.is_empty() || text.starts_with(MARK.as_bytes()),
            "{shown}: not written by a local cluster; choose another file with --kubeconfig"
        );
        Ok(Self { path, file })
    }

    /// Writes the kubeconfig.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(&mut self, kubeconfig: &str) -> anyhow::Result<()> {
        let mut write = || {
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(format!("{MARK}{kubeconfig}").as_bytes())
        };
        write().with_context(|| self.path.display().to_string())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_a_file_of_a_cluster_that_has_ended_is_replaced() {
        let folder = std::env::temp_dir().join(format!("kubeconfig-{}", std::process::id()));
        let path = folder.join("new").join("local");
        let mut first = KubeconfigFile::create(path.clone()).unwrap();
        first.write("a: 1\n").unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let error = KubeconfigFile::create(path.clone()).err().unwrap().to_string();
        assert!(error.contains("another local cluster uses it"), "{error}");
        // As if it were killed.
        std::mem::forget(std::mem::replace(
            &mut first,
            KubeconfigFile::create(folder.join("other")).unwrap(),
        ));
        drop(first);
        std::fs::write(&path, format!("{MARK}b: 2\n")).unwrap();
        let user_s = folder.join("config");
        std::fs::write(&user_s, "clusters: []\n").unwrap();
        let error = KubeconfigFile::create(user_s.clone()).err().unwrap().to_string();
        assert!(error.contains("not written by a local cluster"), "{error}");
        assert_eq!(std::fs::read_to_string(&user_s).unwrap(), "clusters: []\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
