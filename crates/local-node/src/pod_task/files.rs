//! The files of ConfigMaps and Secrets in running containers. They follow changes of these objects, as with a
//! kubelet.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::agent::{Agent, StartError};
use crate::volumes::{Mount, rewrite};

/// The interval of checks. A kubelet takes up to a minute or two.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

pub(super) struct Watched {
    pub(super) agent: Arc<Agent>,
    pub(super) pod: Pod,
    /// The index of the container.
    pub(super) at: usize,
    pub(super) container: Container,
    pub(super) mounts: Vec<Mount>,
}

type Look = (Watched, Result<Vec<Mount>, StartError>);

/// The files of a pod's containers. Checks end when this is dropped.
#[derive(Default)]
pub(super) struct Files {
    looks: JoinSet<Look>,
    /// The indexes of the containers that are checked.
    watched: BTreeSet<usize>,
}

impl Files {
    /// Starts to check the files of a started container.
    pub(super) fn watch(&mut self, watched: Watched) {
        if !watched.mounts.is_empty() && self.watched.insert(watched.at) {
            self.look(watched);
        }
    }

    fn look(&mut self, watched: Watched) {
        self.looks.spawn(async move {
            sleep(CHECK_INTERVAL).await;
            let now = watched.agent.mounts(&watched.pod, &watched.container).await;
            (watched, now)
        });
    }

    /// Waits for a check, and writes the changes for a container that still runs. Returns `None` if nothing is
    /// checked. The future may be dropped at any time.
    pub(super) async fn next(&mut self, runs: impl Fn(usize) -> bool) -> Option<()> {
        let (mut watched, now) = self.looks.join_next().await?.ok()?;
        if !runs(watched.at) {
            self.watched.remove(&watched.at);
            return Some(());
        }
        // Files stay unchanged if their source is missing now.
        if let Ok(now) = now {
            match rewrite(&watched.mounts, &now) {
                Ok(()) => watched.mounts = now,
                Err(error) => {
                    tracing::warn!(container = watched.container.name, %error, "files of a ConfigMap or Secret are not updated");
                }
            }
        }
        self.look(watched);
        Some(())
    }
}
