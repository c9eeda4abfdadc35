//! The kubeconfig file of a local cluster, which exists while the cluster runs.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use training_job_program::program;

/// The first line of each file that this program writes. A file without it is not replaced.
const MARK: &str = "# The kubeconfig of a local cluster, which ends with it.\n";

/// A kubeconfig file that other clusters of this machine leave alone. Dropping it removes the file.
pub(super) struct KubeconfigFile {
    path: PathBuf,
    /// The file that a killed cluster has left. Locked, so that one cluster takes its place.
    left: Option<File>,
    /// The file at the path. Locked while the cluster runs: the kernel releases the lock when the process ends, however
    /// it ends.
    written: Option<File>,
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
    /// Reserves the path, which has no file or one that a killed cluster has left.
    ///
    /// # Errors
    /// A cluster that runs has the file, it was written by something else, or it cannot be read.
    pub(super) fn reserve(path: PathBuf) -> anyhow::Result<Self> {
        let shown = path.display().to_string();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let left = match File::open(&path) {
            Ok(mut file) => {
                lock(&file, &shown)?;
                let mut text = Vec::new();
                file.read_to_end(&mut text).with_context(|| shown.clone())?;
                ensure!(
                    text.is_empty() || text.starts_with(MARK.as_bytes()),
                    "{shown}: not written by a local cluster; choose another file with --kubeconfig"
                );
                Some(file)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).context(shown),
        };
        Ok(Self {
            path,
            left,
            written: None,
        })
    }

    /// Writes the kubeconfig. The path has the complete text from the first moment, for programs that wait for the file.
    ///
    /// # Errors
    /// The file cannot be written, or another cluster wrote it since the path was reserved.
    pub(super) fn write(&mut self, kubeconfig: &str) -> anyhow::Result<()> {
        let shown = self.path.display().to_string();
        let mut name = OsString::from(".");
        name.push(self.path.file_name().unwrap_or_default());
        name.push(format!(".{}", std::process::id()));
        let unfinished = self.path.with_file_name(name);
        let written = write_new(&unfinished, kubeconfig).and_then(|file| {
            lock(&file, &shown)?;
            if self.left.is_some() {
                std::fs::rename(&unfinished, &self.path)?;
            } else {
                // Fails if there is a file.
                match std::fs::hard_link(&unfinished, &self.path) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        bail!("another program created it meanwhile; choose another file with --kubeconfig")
                    }
                    linked => linked?,
                }
            }
            Ok(file)
        });
        // Renamed, or the second name of the file.
        let _ = std::fs::remove_file(&unfinished);
        self.written = Some(written.context(shown)?);
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        if self.written.is_some() || self.left.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Writes the text to a new file, which only the user can read.
fn write_new(path: &Path, kubeconfig: &str) -> anyhow::Result<File> {
    // Of a process that was killed here, and had the same identifier.
    let _ = std::fs::remove_file(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(format!("{MARK}{kubeconfig}").as_bytes())?;
    Ok(file)
}

fn lock(file: &File, shown: &str) -> anyhow::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            bail!("{shown}: another local cluster uses it; choose another file with --kubeconfig")
        }
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("kubeconfig-{name}-{}", std::process::id())))
        }

        fn names(&self) -> Vec<OsString> {
            let entries = std::fs::read_dir(&self.0).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn refused(path: &Path) -> String {
        let reserved = KubeconfigFile::reserve(path.to_owned());
        reserved.err().unwrap().to_string()
    }

    #[test]
    fn only_a_file_of_a_cluster_that_has_ended_is_replaced() {
        let folder = Folder::new("replaced");
        let path = folder.0.join("new").join("local");
        let mut first = KubeconfigFile::reserve(path.clone()).unwrap();
        first.write("a: 1\n").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(refused(&path).contains("another local cluster uses it"));
        drop(first);
        assert!(!path.exists());

        // As a killed cluster leaves it.
        std::fs::write(&path, format!("{MARK}b: 2\n")).unwrap();
        let mut next = KubeconfigFile::reserve(path.clone()).unwrap();
        assert!(refused(&path).contains("another local cluster uses it"));
        next.write("c: 3\n").unwrap();
        assert!(refused(&path).contains("another local cluster uses it"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{MARK}c: 3\n"));

        let user_s = folder.0.join("config");
        std::fs::write(&user_s, "clusters: []\n").unwrap();
        assert!(refused(&user_s).contains("not written by a local cluster"));
        assert_eq!(std::fs::read_to_string(&user_s).unwrap(), "clusters: []\n");
    }

    #[test]
    fn the_file_is_complete_when_it_appears() {
        let folder = Folder::new("complete");
        let path = folder.0.join("local");
        let mut first = KubeconfigFile::reserve(path.clone()).unwrap();
        let mut second = KubeconfigFile::reserve(path.clone()).unwrap();
        assert_eq!(folder.names().len(), 0);
        first.write("a: 1\n").unwrap();
        let error = format!("{:#}", second.write("b: 2\n").unwrap_err());
        assert!(error.contains("another program created it"), "{error}");
        drop(second);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{MARK}a: 1\n"));
        assert_eq!(folder.names(), ["local"]);
    }
}
