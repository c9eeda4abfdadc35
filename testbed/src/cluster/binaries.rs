//! The programs of the control plane.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::repository;

/// The programs of a control plane.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
    /// True if etcd is the original program, which supports all flags.
    original: bool,
}

const NAMES: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"];

impl Binaries {
    /// Returns the programs of `KUBEBUILDER_ASSETS` if it is set, otherwise those that `tests/control-plane` builds.
    pub fn find() -> Result<Self, String> {
        match assets() {
            Some(folder) => Self::of_assets(&folder),
            None => built().clone(),
        }
    }

    /// Returns the programs of a folder as created by kubebuilder and setup-envtest, with kube-controller-manager
    /// added.
    pub fn of_assets(folder: &Path) -> Result<Self, String> {
        let missing: Vec<_> = NAMES
            .into_iter()
            .filter(|name| !folder.join(name).is_file())
            .collect();
        if missing.is_empty() {
            return Ok(Self {
                folder: folder.to_owned(),
                original: true,
            });
        }
        Err(format!(
            "KUBEBUILDER_ASSETS: {} has no {}; add it, or unset KUBEBUILDER_ASSETS to have all built",
            folder.display(),
            missing.join(", no "),
        ))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn original(&self) -> bool {
        self.original
    }
}

fn assets() -> Option<PathBuf> {
    std::env::var_os("KUBEBUILDER_ASSETS")
        .filter(|v| !v.is_empty())
        .map(PathBuf::from)
}

/// Returns kubectl for an existing cluster.
pub(super) fn kubectl() -> PathBuf {
    let of_assets = assets().map(|folder| folder.join("kubectl"));
    of_assets
        .filter(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from("kubectl"))
}

/// The folder of another control plane that was built the same way, such as `target/control-plane-oldest`.
const CONTROL_PLANE: &str = "TEST_CONTROL_PLANE";

/// Builds the programs once per process, even if several tests call this at the same time.
fn built() -> &'static Result<Binaries, String> {
    static BUILT: OnceLock<Result<Binaries, String>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = std::env::var_os(CONTROL_PLANE).unwrap_or_else(|| "target/control-plane".into());
        let folder = repository().join(folder);
        if NAMES.iter().any(|name| !folder.join(name).exists()) {
            build()?;
        }
        Ok(Binaries {
            folder,
            original: false,
        })
    })
}

fn build() -> Result<(), String> {
    let script = repository().join("tests/control-plane/build.sh");
    let ended = Command::new(&script).stdin(Stdio::null()).output();
    match ended {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("{}: {error}", script.display())),
    }
}
