//! One list and the watch behind it, kept alive.
//!
//! Not kube's `watcher`: it does not report the version of a list, without which an old event cannot be told from a
//! newer one; it has no time-out for lists and for the start of a watch; it asks for the same version for ever if 410
//! comes as the answer's status code; and it asks again at once, over and over, if watches end as soon as they begin.

use std::fmt::Debug;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use kube::api::{ListParams, WatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::millis;
use crate::call::{CallError, CallTimeout};
use crate::version::Version;

mod error;
mod failures;
mod page;
mod stream;

use error::WatchError;
use failures::Failures;
use page::Page;
pub use stream::Parse;
use stream::WatchEvent;

/// How much earlier than the silence time-out the server is asked to end a watch, at most.
const GRACE: Duration = Duration::from_secs(10);

/// How long a watch may be silent by default: 130 s. A server sends a bookmark each minute.
pub const SILENCE: Duration = Duration::from_secs(130);

/// Objects in one page of a list.
const PAGE: u32 = 500;

/// A watch that has told nothing and ends sooner than this has failed.
const SHORTEST: Duration = Duration::from_secs(1);

/// What a [`Watch`] reports, in this order: `ListStarted`, then for each page `ListPage` and its `Listed` objects,
/// then `ListDone`, then `Applied`, `Deleted` and `Bookmark` as things happen. After `Failed` or `Absent` either the watch goes
/// on from the last version, or a new list starts. A list that fails is started anew, without a `ListDone`.
///
/// To keep a cache: collect the objects between `ListStarted` and `ListDone`. At `ListDone`, every cached object that
/// the list did not name is gone: it was deleted while nobody watched, and no `Deleted` is sent for it.
#[derive(Clone, Debug)]
pub enum Event<K> {
    /// A list starts.
    ListStarted,
    /// A page of the list has come. Its objects are as they were stored at this version.
    ListPage(Version),
    /// The list contains this object.
    Listed(K),
    /// The list is complete.
    ListDone,
    /// An object was created or has changed.
    Applied(K),
    /// An object was deleted, or is not selected any more. This is its last state.
    Deleted(K),
    /// All changes up to this version have been reported.
    Bookmark(Version),
    /// The server has no such resource, as long as its definition is not installed. [`Watch::run`] tries again after a
    /// while.
    Absent,
    /// A list or a watch failed; why is logged with `tracing` as a warning. [`Watch::run`] tries again after a while.
    Failed,
}

/// Which objects are listed and watched, and with which time-outs.
///
/// Start from [`Watch::new`] and replace what should differ:
///
/// ```no_run
/// # async fn is_async(client: kube::Client) {
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, ResourceExt};
/// use kube_follow::{Event, Watch};
///
/// let watch = Watch {
///     labels: Some("app=demo".to_owned()),
///     ..Watch::new(Api::<ConfigMap>::all(client))
/// };
/// watch
///     .run(|event| {
///         if let Event::Listed(map) | Event::Applied(map) = event {
///             println!("{} is now {:?}", map.name_any(), map.data);
///         }
///     })
///     .await;
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Watch<K> {
    /// The objects.
    pub api: Api<K>,
    /// What they are called in logs, such as `configmaps`.
    pub resource: String,
    /// The label selector, such as `app=demo,tier in (a, b)`; all objects if `None`, the default.
    pub labels: Option<String>,
    /// How long one page of a list, or the start of a watch, may take. Default: 30 s.
    pub call_timeout: CallTimeout,
    /// How long a watch may be silent before it counts as dead. Default: [`SILENCE`]. The server is asked to end each
    /// watch a little earlier than that (by a quarter, at most 10 s; not before 1 s), so that a healthy watch ends by
    /// itself and is continued without a failure.
    pub silence_timeout: Duration,
    /// How objects are decoded. Default: with serde. Those of a list name neither their version nor their kind.
    pub parse: Parse<K>,
}

impl<K: Resource + Clone + DeserializeOwned + Debug> Watch<K> {
    /// Lists and watches all objects of `api`, with the default time-outs.
    pub fn new(api: Api<K>) -> Self
    where
        K::DynamicType: Default,
    {
        Self::of(api, &K::DynamicType::default())
    }

    /// The same for a type that is known only when the program runs, such as `kube::api::DynamicObject`.
    pub fn of(api: Api<K>, type_: &K::DynamicType) -> Self {
        Self {
            api,
            resource: K::plural(type_).into_owned(),
            labels: None,
            call_timeout: CallTimeout::default(),
            silence_timeout: SILENCE,
            parse: |text| serde_json::from_str(text),
        }
    }

    /// Seconds after which the server ends a watch: sooner than the silence time-out, so that a watch which is dead
    /// differs from one which ends.
    fn watch_seconds(&self) -> u32 {
        let seconds = (self.silence_timeout - GRACE.min(self.silence_timeout / 4)).as_secs();
        u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
    }

    /// Lists, watches, and lists again where it has to, for ever, and hands each event to `handle`.
    ///
    /// It never returns: drop the future, or abort its task, to end it. No error ends it: after [`Event::Failed`] it
    /// waits for 0.5 s up to 40 s (longer with each failure in a row, and as long as the server asks for) and goes
    /// on. `handle` is called within the future, so it should be quick; send the events to a channel otherwise.
    ///
    /// Must be called within a tokio runtime that has I/O and time enabled.
    pub async fn run(&self, mut handle: impl FnMut(Event<K>)) {
        let resource = &self.resource;
        let mut failures = Failures::default();
        let mut version = None;
        let mut last_event = Instant::now();
        let mut is_absent = false;
        loop {
            let error = match &mut version {
                None => match self.list(&mut handle).await {
                    Ok(listed) => {
                        last_event = Instant::now();
                        is_absent = false;
                        version = Some(listed);
                        continue;
                    }
                    Err(error) => error,
                },
                Some(version) => {
                    let (begun, from) = (Instant::now(), version.clone());
                    let ended = self.watch_from(version, &mut last_event, &mut handle).await;
                    // A server under load ends the watches of readers that were slow for a moment, again and again.
                    // Each has brought something, so to wait would be to look away.
                    let progressed = *version != from;
                    match ended {
                        Ok(()) if progressed || begun.elapsed() >= SHORTEST => continue,
                        Ok(()) => WatchError::EndedAtOnce,
                        Err(error) => error,
                    }
                }
            };
            let list_at_once = error.needs_list() && version.take().is_some() && failures.may_list_at_once();
            let wait = if list_at_once {
                Duration::ZERO
            } else {
                failures.next_wait(resource)
            };
            let wait = wait.max(error.retry_after().unwrap_or_default());
            if error.is_absent() {
                if !is_absent {
                    tracing::warn!(
                        resource,
                        "the API server does not have it: it is watched once it is installed"
                    );
                }
                handle(Event::Absent);
            } else {
                tracing::warn!(resource, %error, wait_ms = millis(wait), "a watch failed");
                handle(Event::Failed);
            }
            is_absent = error.is_absent();
            sleep(wait).await;
        }
    }

    /// Lists all objects, page by page, and returns the version of the list.
    async fn list(&self, handle: &mut impl FnMut(Event<K>)) -> Result<String, WatchError> {
        handle(Event::ListStarted);
        let mut params = ListParams {
            label_selector: self.labels.clone(),
            limit: Some(PAGE),
            ..ListParams::default()
        };
        loop {
            let text = self.call_timeout.call(page::ask(&self.api, &params)).await?;
            let page = Page::read(&text)?;
            handle(Event::ListPage(
                page.version.as_deref().map(Version::parse).unwrap_or_default(),
            ));
            // One by one: decoded, a page takes many times the memory that its text takes.
            for item in page.items {
                let item = (self.parse)(item.get()).map_err(kube::Error::SerdeError);
                handle(Event::Listed(item.map_err(CallError::from)?));
            }
            params.continue_token = page.continue_token;
            if params.continue_token.is_none() {
                let version = page.version.ok_or(WatchError::ListWithoutVersion)?;
                handle(Event::ListDone);
                return Ok(version);
            }
        }
    }

    /// Watches from `version` on, and moves it on, until the watch ends. Keeps the time of the last event in
    /// `last_event`.
    async fn watch_from(
        &self,
        version: &mut String,
        last_event: &mut Instant,
        handle: &mut impl FnMut(Event<K>),
    ) -> Result<(), WatchError> {
        let params = WatchParams {
            label_selector: self.labels.clone(),
            timeout: Some(self.watch_seconds()),
            ..WatchParams::default()
        };
        let events = self
            .call_timeout
            .call(stream::open(&self.api, self.parse, &params, version))
            .await?;
        pin_mut!(events);
        loop {
            let Ok(event) = timeout(self.silence_timeout, events.next()).await else {
                return Err(WatchError::Silent);
            };
            let event = match event {
                // A server that was set back waits for a version that is yet to come: it sends nothing, and ends the
                // watch in time like any other.
                None if last_event.elapsed() >= self.silence_timeout.max(SILENCE) => {
                    return Err(WatchError::NoEvents);
                }
                None => return Ok(()),
                Some(Err(error)) => return Err(WatchError::Stream(error)),
                Some(Ok(WatchEvent::Error(status))) => return Err(WatchError::Refused(status)),
                Some(Ok(WatchEvent::Bookmark(new))) => {
                    *last_event = Instant::now();
                    advance(version, &new)?;
                    handle(Event::Bookmark(Version::parse(version)));
                    continue;
                }
                Some(Ok(WatchEvent::Applied(object))) => Event::Applied(object),
                Some(Ok(WatchEvent::Deleted(object))) => Event::Deleted(object),
            };
            if let Event::Applied(object) | Event::Deleted(object) = &event
                && let Some(new) = &object.meta().resource_version
            {
                advance(version, new)?;
            }
            *last_event = Instant::now();
            handle(event);
        }
    }
}

/// Moves `version` on to `new`. An empty one is ignored: a watch without a version would start at the present, and
/// miss what was deleted meanwhile.
fn advance(version: &mut String, new: &str) -> Result<(), WatchError> {
    if new.is_empty() {
        return Ok(());
    }
    if Version::parse(new) < Version::parse(version) {
        return Err(WatchError::VersionWentBack);
    }
    new.clone_into(version);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_missing_moves_nothing() {
        let mut version = "5".to_owned();
        advance(&mut version, "").unwrap();
        assert_eq!(version, "5");
        advance(&mut version, "6").unwrap();
        assert_eq!(version, "6");
        assert!(matches!(
            advance(&mut version, "5"),
            Err(WatchError::VersionWentBack)
        ));
        assert_eq!(version, "6");
    }
}
