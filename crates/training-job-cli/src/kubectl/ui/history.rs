//! Reads the history beside the other requests.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::spawn_blocking;
use training_job_story::Story;

use crate::kinds::Kind;
use crate::story::{Catalog, Listed, Wanted, find};

use super::route::JobKey;

/// A directory of stories, of which each is read once for the list.
#[derive(Clone, Debug)]
pub(super) struct History {
    directory: PathBuf,
    catalog: Arc<Mutex<Catalog>>,
}

impl History {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            catalog: Arc::default(),
        }
    }

    /// Lists the finished jobs of a namespace, or of all.
    pub(super) async fn list(&self, namespace: Option<String>) -> Result<Listed, String> {
        let own = self.clone();
        let list = move || {
            // A list that panicked has left an empty catalog or a part of one, which the next list fills.
            let mut catalog = own.catalog.lock().unwrap_or_else(PoisonError::into_inner);
            catalog.list(&own.directory, namespace.as_deref())
        };
        let listed = spawn_blocking(list).await.map_err(std::io::Error::other);
        listed.flatten().map_err(|error| self.unreadable(&error))
    }

    /// Returns the story of the job of this name, and of this UID if there is one, that ended last.
    pub(super) async fn find(
        &self,
        kind: &Kind,
        job: JobKey,
        uid: Option<String>,
    ) -> Result<Option<Story>, String> {
        let (directory, kinds) = (self.directory.clone(), [kind.name().to_owned()]);
        let find = move || {
            let wanted = Wanted {
                namespace: &job.namespace,
                name: &job.name,
                kinds: &kinds,
                uid: uid.as_deref(),
            };
            find(&directory, &wanted)
        };
        let found = spawn_blocking(find).await.map_err(std::io::Error::other);
        let found = found.flatten().map_err(|error| self.unreadable(&error))?;
        Ok(found.story)
    }

    fn unreadable(&self, error: &std::io::Error) -> String {
        format!("--history {}: {error}", self.directory.display())
    }
}
