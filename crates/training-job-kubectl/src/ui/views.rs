//! Reads what a page shows from the cluster and the history.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DynamicObject, LogParams};
use tokio::task::spawn_blocking;
use training_job_client::call_error::{explained, failure_of, is_unserved};
use training_job_client::cluster::with_timeout;
use training_job_review::{Kind, Kinds};
use training_job_story::{Site, Story, site_html};

use super::filter::{Query, filter};
use super::log;
use super::pages::{self, LIST, ListPage, SCRIPT, STYLE, problem};
use super::route::JobKey;
use crate::connection::Connection;
use crate::history::{History, Sought};
use crate::list::{JobRow, deleted};
use crate::observe::{StoredJob, is_forbidden, list_allowed};
use crate::report::story_of_stored;
use crate::story::Listed;

/// The cluster and the history.
pub(super) struct Views {
    pub(super) client: Client,
    /// The namespace to show; `None` for all.
    pub(super) namespace: Option<String>,
    pub(super) kinds: Kinds,
    pub(super) history: Option<History>,
}

/// A page and its HTTP status.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) code: u16,
    pub(super) html: String,
}

impl Page {
    fn problem(code: u16, title: &str, text: &str) -> Self {
        let html = problem(title, text, &[]);
        Self { code, html }
    }

    pub(super) fn not_found() -> Self {
        Self::problem(404, "Not found", "This server has no such page.")
    }

    fn unreadable(error: &anyhow::Error) -> Self {
        Self::problem(502, "The cluster cannot be read", &format!("{error:#}"))
    }
}

impl Views {
    fn shows(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }

    /// Lists the finished jobs of the history.
    async fn finished(&self, namespace: Option<&str>) -> anyhow::Result<Listed> {
        let Some(history) = self.history.clone() else {
            return Ok(Listed::default());
        };
        let namespace = namespace.map(str::to_owned);
        spawn_blocking(move || history.list(namespace.as_deref())).await?
    }

    /// Returns the jobs of a namespace or of all, and sentences about what is lacking.
    async fn rows(&self, namespace: Option<&str>) -> anyhow::Result<(Vec<JobRow>, Vec<String>)> {
        let mut notes = Vec::new();
        let mut is_read = true;
        let (jobs, denied) = match list_allowed(&self.client, namespace, None, &self.kinds).await {
            Err(error) if self.history.is_some() => {
                let text = failure_of("The cluster cannot be read", &error);
                notes.push(format!("{text}. Only the history is shown."));
                is_read = false;
                Default::default()
            }
            listed => listed?,
        };
        let now = Timestamp::now();
        let mut rows: Vec<JobRow> = jobs.iter().map(|job| JobRow::new(job, now)).collect();
        if !denied.is_empty() {
            let place = match namespace {
                Some(namespace) => format!("in namespace {namespace}"),
                None => "in all namespaces; start this server with -n NAMESPACE for one".to_owned(),
            };
            notes.push(format!(
                "You are not allowed to list {} {place}.",
                denied.join(", ")
            ));
        }
        match self.finished(namespace).await {
            Ok(found) => {
                rows.extend(deleted(&found.jobs, &self.kinds, &rows, is_read, now));
                if !found.problems.is_empty() {
                    let count = found.problems.len();
                    notes.push(format!("{count} files of the history are not stories."));
                }
            }
            Err(error) => notes.push(format!("The history cannot be read: {error:#}")),
        }
        rows.sort_by(|a, b| (&a.namespace, &a.name, &a.kind).cmp(&(&b.namespace, &b.name, &b.kind)));
        Ok((rows, notes))
    }

    pub(super) async fn list(&self, query: &Query) -> Page {
        let (rows, notes) = match self.rows(self.namespace.as_deref()).await {
            Ok(read) => read,
            Err(error) => return Page::unreadable(&error),
        };
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
        let total = rows.len();
        let html = pages::list(&ListPage {
            rows: &filter(rows, query),
            query,
            total,
            namespace: self.namespace.as_deref(),
            kinds: &kinds,
            notes: &notes,
        });
        Page { code: 200, html }
    }

    /// Returns the story of a job in the cluster, or else of the last one in the history.
    pub(super) async fn job(&self, key: &JobKey, uid: Option<&str>) -> Page {
        let Some(kind) = self
            .kinds
            .of_argument(&key.kind)
            .filter(|_| self.shows(&key.namespace))
        else {
            return Page::not_found();
        };
        let current = self.current(&kind, key).await;
        if let Ok(Some(job)) = &current
            && uid.is_none_or(|uid| uid == job.uid())
        {
            let connection = Connection {
                client: self.client.clone(),
                namespace: key.namespace.clone(),
            };
            return match story_of_stored(&connection, job.clone()).await {
                Ok((story, notes)) => live(&story, key, &notes),
                Err(error) => Page::unreadable(&error),
            };
        }
        match self.earlier(&kind, key, uid).await {
            Ok(Some(story)) => {
                let note = match current {
                    Ok(_) => "This job was deleted. Its story is from the history.",
                    Err(_) => {
                        "The cluster cannot be read. This is the latest story in the history; the job may still exist."
                    }
                };
                return ended(&story, note);
            }
            Ok(None) => {}
            Err(error) => {
                return Page::problem(500, "The history cannot be read", &format!("{error:#}"));
            }
        }
        match current {
            Ok(_) => self.missing(key).await,
            Err(kube::Error::Api(status)) if status.code == 403 => {
                Page::problem(403, "Not allowed", &status.message)
            }
            Err(error) => Page::unreadable(&explained(error, "get", &kind.resource.plural)),
        }
    }

    async fn current(&self, kind: &Arc<Kind>, key: &JobKey) -> kube::Result<Option<StoredJob>> {
        let client = self.client.clone();
        let api = Api::<DynamicObject>::namespaced_with(client, &key.namespace, &kind.resource);
        let found = match api.get_opt(&key.name).await {
            Err(error) if is_unserved(&error) => None,
            found => found?,
        };
        Ok(found.and_then(|object| StoredJob::new(kind, &object).ok()))
    }

    async fn earlier(&self, kind: &Kind, key: &JobKey, uid: Option<&str>) -> anyhow::Result<Option<Story>> {
        let Some(history) = self.history.clone() else {
            return Ok(None);
        };
        let sought = Sought {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            kinds: vec![kind.name().to_owned()],
            uid: uid.map(str::to_owned),
        };
        let found = spawn_blocking(move || history.find(&sought)).await??;
        Ok(found.story)
    }

    async fn missing(&self, key: &JobKey) -> Page {
        let others = self.rows(Some(&key.namespace)).await;
        let others = others.map(|(rows, _)| rows).unwrap_or_default();
        let text = match &self.history {
            Some(_) => format!("Neither the cluster nor the history has {key}."),
            None => {
                format!("The cluster has no {key}. With --history, this server shows jobs that were deleted.")
            }
        };
        Page {
            code: 404,
            html: problem("No such job", &text, &others),
        }
    }

    /// Opens the log of a pod.
    ///
    /// # Errors
    /// The page says why there is none.
    pub(super) async fn log(
        &self,
        namespace: &str,
        pod: &str,
        container: Option<String>,
    ) -> Result<impl futures::AsyncBufRead + use<>, Page> {
        if !self.shows(namespace) {
            return Err(Page::not_found());
        }
        let api = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let parameters = LogParams {
            container,
            follow: true,
            tail_lines: Some(log::LINES),
            ..LogParams::default()
        };
        let opened = with_timeout(api.log_stream(pod, &parameters)).await;
        let opened = opened.map_err(|error| Page::unreadable(&error))?;
        opened.map_err(|error| {
            let code = match &error {
                kube::Error::Api(status) if matches!(status.code, 400 | 404) => status.code,
                error if is_forbidden(error) => 403,
                _ => 502,
            };
            let text = format!("{:#}", explained(error, "get", "pods/log"));
            Page::problem(code, "The log cannot be read", &text)
        })
    }
}

fn live(story: &Story, key: &JobKey, notes: &[String]) -> Page {
    let ticks = if story.is_finished() { "" } else { "&ticks=1" };
    let site = Site {
        events: &format!("/events?job={key}{ticks}"),
        logs: &format!("/logs/{}/", key.namespace),
        notes,
        ..SITE
    };
    Page {
        code: 200,
        html: site_html(story, &site),
    }
}

fn ended(story: &Story, note: &str) -> Page {
    let site = Site {
        notes: &[note.to_owned()],
        ..SITE
    };
    Page {
        code: 200,
        html: site_html(story, &site),
    }
}

const SITE: Site<'static> = Site {
    style: STYLE,
    script: SCRIPT,
    events: "",
    list: LIST,
    logs: "",
    notes: &[],
};
