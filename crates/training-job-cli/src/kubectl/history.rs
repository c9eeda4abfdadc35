//! Reads the history of finished jobs, for the views.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use kube::Client;
use tokio::task::spawn_blocking;
use training_job_story::Story;

use crate::exit::Failure;
use crate::report::note;
use crate::story::{Catalog, Found, Listed, OperatorHistory, Wanted, find as find_story};

use super::connection::{ConnectionArgs, connect};
use super::target::Target;

/// The time for which the list of an operator's history is used again: a request runs a command in its pod.
const MAX_LIST_AGE: Duration = Duration::from_secs(30);

/// The flags that select a history.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    /// Also show deleted jobs, from the history in this directory: the DIR of the operator's --history, or a copy.
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Also show deleted jobs, from the history of the operator in this namespace, which a command in its pod reads.
    #[arg(long, value_name = "NAMESPACE", conflicts_with = "history")]
    history_of_operator: Option<String>,
}

/// A history of finished jobs.
#[derive(Clone)]
pub(super) enum History {
    /// A directory of this machine. Each of its stories is read once for the list.
    Directory {
        path: PathBuf,
        catalog: Arc<Mutex<Catalog>>,
    },
    /// The directory of an operator.
    Operator {
        history: OperatorHistory,
        latest: Arc<tokio::sync::Mutex<Option<KeptList>>>,
    },
}

/// A list of an operator's history, for a namespace or for all.
pub(super) struct KeptList {
    namespace: Option<String>,
    read_at: Instant,
    listed: Listed,
}

/// The finished job to find.
#[derive(Clone, Debug)]
pub(super) struct Sought {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) kinds: Vec<String>,
    pub(super) uid: Option<String>,
}

impl Sought {
    pub(super) fn of(target: &Target, namespace: String) -> Self {
        Self {
            namespace,
            name: target.name.clone(),
            kinds: target.kinds.iter().map(|kind| kind.name().to_owned()).collect(),
            uid: None,
        }
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            namespace: &self.namespace,
            name: &self.name,
            kinds: &self.kinds,
            uid: self.uid.as_deref(),
        }
    }
}

impl HistoryArgs {
    pub(super) fn is_selected(&self) -> bool {
        self.history.is_some() || self.history_of_operator.is_some()
    }

    /// Returns true unless a directory of this machine has the history.
    pub(super) fn needs_cluster(&self) -> bool {
        self.history.is_none()
    }

    pub(super) fn history(&self, client: &Client) -> Option<History> {
        match (&self.history, &self.history_of_operator) {
            (Some(path), _) => Some(History::Directory {
                path: path.clone(),
                catalog: Arc::default(),
            }),
            (None, Some(namespace)) => Some(History::Operator {
                history: OperatorHistory {
                    client: client.clone(),
                    namespace: namespace.clone(),
                },
                latest: Arc::default(),
            }),
            (None, None) => None,
        }
    }

    /// Lists the finished jobs of a directory, which needs no cluster. Returns None if no directory is selected.
    ///
    /// # Errors
    /// The history cannot be read.
    pub(super) fn list_directory(&self, namespace: Option<&str>) -> Result<Option<Listed>, Failure> {
        let list = |path: &PathBuf| {
            Catalog::default()
                .list(path, namespace)
                .with_context(|| context(path))
        };
        let listed = self.history.as_ref().map(list).transpose();
        listed.map_err(|error| Failure::of_error("error", &error))
    }

    /// Returns the story of the job that ended last. A directory is read without a cluster.
    ///
    /// # Errors
    /// The history cannot be read.
    pub(super) fn find(
        &self,
        connection: &ConnectionArgs,
        sought: &Sought,
    ) -> Result<Option<Story>, Failure> {
        let found = match (&self.history, &self.history_of_operator) {
            (Some(path), _) => {
                let found = find_in(path, sought);
                found.map_err(|error| Failure::of_error("error", &error))?
            }
            (None, Some(_)) => connect(connection, async |connection| {
                match self.history(&connection.client) {
                    Some(history) => history.find(sought).await,
                    None => Ok(Found::default()),
                }
            })?,
            (None, None) => Found::default(),
        };
        report_problems(&found.problems);
        if let Some(latest) = &found.story
            && found.others > 0
        {
            note(&format!(
                "the history has {} jobs of this name; this is the {} that ended last",
                found.others + 1,
                latest.kind
            ));
        }
        Ok(found.story)
    }
}

impl History {
    /// Lists the finished jobs of a namespace, or of all.
    pub(super) async fn list(&self, namespace: Option<&str>) -> anyhow::Result<Listed> {
        match self {
            Self::Directory { path, catalog } => {
                let (shown, path) = (context(path), path.clone());
                let (catalog, namespace) = (catalog.clone(), namespace.map(str::to_owned));
                let list = move || {
                    // A list that panicked left a part of the catalog, which the next list completes.
                    let mut catalog = catalog.lock().unwrap_or_else(PoisonError::into_inner);
                    catalog.list(&path, namespace.as_deref())
                };
                spawn_blocking(list).await?.context(shown)
            }
            Self::Operator { history, latest } => {
                // The lock is held while the list is read, so that pages that load at once share it.
                let mut latest = latest.lock().await;
                if let Some(kept) = &*latest
                    && kept.namespace.as_deref() == namespace
                    && kept.read_at.elapsed() < MAX_LIST_AGE
                {
                    return Ok(kept.listed.clone());
                }
                let listed = history.list(namespace).await?;
                *latest = Some(KeptList {
                    namespace: namespace.map(str::to_owned),
                    read_at: Instant::now(),
                    listed: listed.clone(),
                });
                Ok(listed)
            }
        }
    }

    /// Returns the story of the job that ended last.
    pub(super) async fn find(&self, sought: &Sought) -> anyhow::Result<Found> {
        match self {
            Self::Directory { path, .. } => {
                let (path, sought) = (path.clone(), sought.clone());
                spawn_blocking(move || find_in(&path, &sought)).await?
            }
            Self::Operator { history, .. } => Ok(Found {
                story: history.find(&sought.wanted()).await?,
                ..Found::default()
            }),
        }
    }
}

fn find_in(path: &Path, sought: &Sought) -> anyhow::Result<Found> {
    find_story(path, &sought.wanted()).with_context(|| context(path))
}

fn context(path: &Path) -> String {
    format!("--history {}", path.display())
}

/// Reports files that are not stories.
pub(super) fn report_problems(problems: &[String]) {
    if let [first, others @ ..] = problems {
        let more = match others.len() {
            0 => String::new(),
            others => format!(", and {others} more"),
        };
        note(&format!("left out, because it is not a story: {first}{more}"));
    }
}

/// The remedy for a job that is not in the cluster, for a command without a history.
pub(super) const REMEDY: &str = "if the job was deleted, and its operator or local cluster keeps a history, add --history \
                                 DIR (the DIR of its --history, or DIR/history of --data) or --history-of-operator NAMESPACE";
