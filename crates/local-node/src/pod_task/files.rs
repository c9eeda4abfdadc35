//! The files of ConfigMaps and Secrets of containers that run: they change as these do, as a kubelet has it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::agent::{Agent, StartError};
use crate::volumes::{Mount, rewrite};

/// How often they are looked at. A kubelet takes up to a minute or two.
const INTERVAL: Duration = Duration::from_secs(5);

/// A container's files.
pub(super) struct Watched {
    pub(super) agent: Arc<Agent>,
    pub(super) pod: Pod,
    /// The container's place.
    pub(super) at: usize,
    pub(super) container: Container,
    pub(super) mounts: Vec<Mount>,
}

type Look = (Watched, Result<Vec<Mount>, StartError>);

/// The files of a pod's containers. None is looked at any more once this is dropped.
#[derive(Default)]
pub(super) struct Files {
    looks: JoinSet<Look>,
    /// The places of the containers that are looked at.
    watched: BTreeSet<usize>,
}

impl Files {
    /// Looks at the files of a container that has started.
    pub(super) fn watch(&mut self, watched: Watched) {
        if !watched.mounts.is_empty() && self.watched.insert(watched.at) {
            self.look(watched);
        }
    }

    fn look(&mut self, watched: Watched) {
        self.looks.spawn(async move {
            sleep(INTERVAL).await;
            let now = watched.agent.mounts(&watched.pod, &watched.container).await;
            (watched, now)
        });
    }

    /// Awaits a look, and writes what has changed for a container that still runs; `None` if nothing is looked at. It may be
    /// dropped at any time.
    pub(super) async fn next(&mut self, runs: impl Fn(usize) -> bool) -> Option<()> {
        let (mut watched, now) = self.looks.join_next().await?.ok()?;
        if !runs(watched.at) {
            self.watched.remove(&watched.at);
            return Some(());
        }
        // What is missing now stays as it was.
        if let Ok(now) = now {
            match rewrite(&watched.mounts, &now) {
                Ok(()) => watched.mounts = now,
                Err(error) => {
                    tracing::warn!(container = watched.container.name, %error, "its files are not written anew");
                }
            }
        }
        self.look(watched);
        Some(())
    }
}
