//! Where the programs of the control plane come from.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::repository;

/// The programs of a control plane.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
    /// Whether etcd is the original one, with all its flags.
    original: bool,
}

const NAMES: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"];

impl Binaries {
    /// Those of `KUBEBUILDER_ASSETS` if it is set, else those that `tests/control-plane` builds.
    pub fn find() -> Result<Self, String> {
        match assets() {
            Some(folder) => Self::of_assets(&folder),
            None => built().clone(),
        }
    }

    /// Those of a folder as kubebuilder and setup-envtest make it, with a kube-controller-manager added.
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

/// kubectl for a cluster that is there already.
pub(super) fn kubectl() -> PathBuf {
    let of_assets = assets().map(|folder| folder.join("kubectl"));
    of_assets
        .filter(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from("kubectl"))
}

/// The folder with another control plane of the same making, such as `target/control-plane-oldest`.
const CONTROL_PLANE: &str = "TEST_CONTROL_PLANE";

/// Tests of one process that come here at once must not all build.
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
