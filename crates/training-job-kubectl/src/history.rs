//! Reads the history of finished jobs, for the views.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use parking_lot::Mutex;
use training_job_client::call_error::failure_of;
use training_job_review::Failure;
use training_job_review::report::note;
use training_job_story::Story;

use crate::story::{Catalog, Found, Listed, Wanted, find as find_story};
use crate::target::Target;

/// The flag that selects a history.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    /// Also show deleted jobs, from the history in this directory: the DIR of the operator's --history, or a copy.
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
}

/// A directory with the stories of finished jobs. Each story is read once for the list.
#[derive(Clone)]
pub(super) struct History {
    path: PathBuf,
    catalog: Arc<Mutex<Catalog>>,
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
        self.history.is_some()
    }

    pub(super) fn history(&self) -> Option<History> {
        let path = self.history.clone()?;
        let catalog = Arc::default();
        Some(History { path, catalog })
    }

    /// Lists the finished jobs of a namespace, or of all. Returns None if no history is selected.
    ///
    /// # Errors
    /// The history cannot be read.
    pub(super) fn list(&self, namespace: Option<&str>) -> Result<Option<Listed>, Failure> {
        let listed = self.history().map(|history| history.list(namespace)).transpose();
        listed.map_err(|error| failure_of("error", &error))
    }

    /// Returns the story of the job that ended last.
    ///
    /// # Errors
    /// The history cannot be read.
    pub(crate) fn find(&self, sought: &Sought) -> Result<Option<Story>, Failure> {
        let found = self.history().map(|history| history.find(sought)).transpose();
        let found = found
            .map_err(|error| failure_of("error", &error))?
            .unwrap_or_default();
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
    pub(super) fn list(&self, namespace: Option<&str>) -> anyhow::Result<Listed> {
        let mut catalog = self.catalog.lock();
        let listed = catalog.list(&self.path, namespace);
        listed.with_context(|| self.name())
    }

    /// Returns the story of the job that ended last.
    pub(crate) fn find(&self, sought: &Sought) -> anyhow::Result<Found> {
        let found = find_story(&self.path, &sought.wanted());
        found.with_context(|| self.name())
    }

    fn name(&self) -> String {
        format!("--history {}", self.path.display())
    }
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
                                 DIR (the DIR of its --history, or DIR/history of --data)";
