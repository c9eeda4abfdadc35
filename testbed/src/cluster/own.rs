//! The processes of a control plane that the tests started.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::{Client, Config};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::WAIT_TIMEOUT;
use super::audit::Audit;
use super::directory::Directory;
use super::process::Background;
use super::servers::{self, Layout};
use super::users::{ADMIN, config};

/// The options of a control plane.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The requests to record for [`super::ControlPlane::audit`].
    pub audit: Option<Audit>,
    /// Additional flags for the API server.
    pub api_server_flags: Vec<String>,
    /// Additional controllers of the controller manager, such as `job-controller`.
    pub controllers: Vec<String>,
}

/// A server that may be down.
pub(super) type Slot = Mutex<Option<Background>>;

/// The processes of the tests, in the order in which they end.
pub(super) struct Own {
    pub(super) options: Options,
    pub(super) layout: Layout,
    pub(super) manager: Slot,
    pub(super) api_server: Slot,
    pub(super) etcd: Background,
    pub(super) directory: Arc<Directory>,
}

impl Own {
    pub(super) fn launch_api_server(&self) -> Result<(), String> {
        let audit = self.options.audit.as_ref();
        let flags = &self.options.api_server_flags;
        let program = servers::api_server(&self.layout, self.directory.path(), audit, flags);
        let started = program.start(&self.directory).map_err(|e| e.to_string())?;
        *self.api_server.lock() = Some(started);
        Ok(())
    }

    /// Waits until the API server reports that it is ready. It sends no signal, so this polls.
    pub(super) async fn ready(&self) -> Result<Config, String> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let kubeconfig = self.directory.path().join(format!("{ADMIN}.kubeconfig"));
        let mut last = String::new();
        while Instant::now() < deadline {
            if self.etcd.ended().is_some() {
                return Err(format!("etcd: {}", self.etcd.state()));
            }
            let api_server = self
                .api_server
                .lock()
                .as_ref()
                .and_then(|s| s.ended().map(|_| s.state()));
            if let Some(state) = api_server {
                return Err(format!("kube-apiserver: {state}"));
            }
            match request_config(&kubeconfig).await {
                Ok(config) => return Ok(config),
                Err(error) => last = error,
            }
            sleep(Duration::from_millis(50)).await;
        }
        let state = self
            .api_server
            .lock()
            .as_ref()
            .map_or_else(String::new, Background::state);
        Err(format!(
            "kube-apiserver: not ready in {WAIT_TIMEOUT:?} ({last}); {state}"
        ))
    }
}

/// Checks that the API server reports that it is ready, and returns the client configuration.
async fn request_config(kubeconfig: &Path) -> Result<Config, String> {
    let config = config(kubeconfig).await?;
    let client = Client::try_from(config.clone()).map_err(|e| e.to_string())?;
    let request = Request::get("/readyz")
        .body(Vec::new())
        .map_err(|e| e.to_string())?;
    let answer = timeout(Duration::from_secs(5), client.request_text(request)).await;
    answer.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
    Ok(config)
}
