//! The real API server for the scripts.

use std::fs;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard};
use training_job_testbed::cluster::{ControlPlane, Options, repository};

/// Returns one control plane for all scripts. Each script has its own namespace.
pub(crate) async fn control_plane() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED
        .get_or_init(async || {
            let started = ControlPlane::start_at_once(Options::default()).await;
            started.install_crds().await;
            started
        })
        .await
}

/// Returns a client that does not retry, so that every response is compared.
pub(crate) async fn client(plane: &ControlPlane) -> Client {
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// Held while a script is played.
pub(crate) enum Turn {
    /// The script is played together with others.
    Shared(#[expect(dead_code, reason = "it is held")] RwLockReadGuard<'static, ()>),
    /// The script is played alone.
    Alone(#[expect(dead_code, reason = "it is held")] RwLockWriteGuard<'static, ()>),
}

/// Waits for a script's permit.
pub(crate) async fn turn(alone: bool) -> Turn {
    static TURNS: RwLock<()> = RwLock::const_new(());
    if alone {
        Turn::Alone(TURNS.write().await)
    } else {
        Turn::Shared(TURNS.read().await)
    }
}

/// Returns the definitions in `crds/`.
pub(crate) fn definitions() -> Vec<Value> {
    let folders = ["crds", "crds/mpi", "crds/mlkube"];
    let files = folders.map(|folder| fs::read_dir(repository().join(folder)).unwrap());
    let files = files.into_iter().flatten().map(|file| file.unwrap().path());
    let definitions = files.filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    definitions
        .map(|path| serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap())
        .collect()
}
