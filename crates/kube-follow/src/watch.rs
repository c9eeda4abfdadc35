//! Lists the objects of a resource, and watches them without end.
//!
//! kube's `watcher` is not used for four reasons. It does not report the version of a list, so that an old event cannot
//! be distinguished from a newer one. It has no timeout for lists and for the start of a watch. It requests the same
//! version forever if 410 is the status code of the response. It retries without a wait if watches end as soon as they
//! begin.

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
use stream::WatchEvent;

/// The longest time by which the server ends a watch before the silence timeout.
const MAX_END_MARGIN: Duration = Duration::from_secs(10);

/// The default of [`Watch::silence_timeout`]: 130 s. A server sends a bookmark each minute.
pub const DEFAULT_SILENCE_TIMEOUT: Duration = Duration::from_secs(130);

/// The greatest number of objects in one page of a list.
const MAX_PAGE_OBJECTS: u32 = 500;

/// A watch without events that ends sooner than this has failed.
const MIN_WATCH_DURATION: Duration = Duration::from_secs(1);

/// An event of a [`Watch`].
///
/// The order is: `ListStarted`; for each page `ListPage` and its `Listed` objects; `ListDone`; then `Applied`,
/// `Deleted` and `Bookmark` as the objects change. After `Failed`, `Forbidden` or `Absent`, the watch continues from the
/// last version, or a new list starts. A list that fails is started again, without a `ListDone`.
///
/// To keep a cache, collect the objects between `ListStarted` and `ListDone`. At `ListDone`, remove every cached
/// object that the list did not contain: it was deleted between two watches, and no `Deleted` is sent for it.
#[derive(Clone, Debug)]
pub enum Event<K> {
    /// A list starts.
    ListStarted,
    /// A page of the list was received. The server read its objects at this version.
    ListPage(Version),
    /// The list contains this object.
    Listed(K),
    /// The list is complete.
    ListDone,
    /// An object was created or has changed.
    Applied(K),
    /// An object was deleted, or is no longer selected. This is its last state.
    Deleted(K),
    /// All changes up to this version have been reported.
    Bookmark(Version),
    /// The server does not serve the resource, because its definition is not installed. [`Watch::run`] retries after a
    /// wait.
    Absent,
    /// The server does not permit the client to list or watch the resource. Contains the server's message, which is not
    /// logged. [`Watch::run`] retries after a wait.
    Forbidden(String),
    /// A list or a watch failed. The reason is logged with `tracing` as a warning, and [`Watch::run`] retries after a wait.
    /// A lost connection of a watch is not worth a warning: it is replaced at once.
    Failed,
}

/// The objects to list and watch, and the timeouts.
///
/// `K` may decode few fields of an object, or keep its text, but must keep `metadata.resourceVersion`: without it the watch
/// cannot be continued after the object. The objects of a list have neither `apiVersion` nor `kind`.
///
/// Start from [`Watch::new`] and replace fields:
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
    /// The API of the objects.
    pub api: Api<K>,
    /// The name of the resource in logs, such as `configmaps`.
    pub resource: String,
    /// The label selector, such as `app=demo,tier in (a, b)`. Default: `None`, all objects.
    pub labels: Option<String>,
    /// The timeout of one page of a list, and of the start of a watch. Default: 30 s.
    pub call_timeout: CallTimeout,
    /// The time without an event after which a watch counts as dead. Default: [`DEFAULT_SILENCE_TIMEOUT`]. Each watch
    /// requests that the server end it earlier (by a quarter of this time, at most 10 s, but not before 1 s), so that a
    /// healthy watch ends by itself and is continued without a failure.
    pub silence_timeout: Duration,
}

impl<K: Resource + Clone + DeserializeOwned + Debug> Watch<K> {
    /// Makes a watch of all objects of `api`, with the default timeouts.
    pub fn new(api: Api<K>) -> Self
    where
        K::DynamicType: Default,
    {
        Self::of(api, &K::DynamicType::default())
    }

    /// Makes a watch for a type that is known only at run time, such as `kube::api::DynamicObject`.
    pub fn of(api: Api<K>, type_: &K::DynamicType) -> Self {
        Self {
            api,
            resource: K::plural(type_).into_owned(),
            labels: None,
            call_timeout: CallTimeout::default(),
            silence_timeout: DEFAULT_SILENCE_TIMEOUT,
        }
    }

    /// Returns the seconds after which the server ends a watch. They are fewer than the silence timeout, so that a dead
    /// watch can be distinguished from one that ends.
    fn watch_seconds(&self) -> u32 {
        let seconds = (self.silence_timeout - MAX_END_MARGIN.min(self.silence_timeout / 4)).as_secs();
        u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
    }

    /// Lists, watches, and lists again when necessary, and calls `handle` with each event.
    ///
    /// It never returns. To end it, drop the future or abort its task. No error ends it: after [`Event::Failed`] it
    /// waits for 0.5 s up to 40 s, longer with each failure in a row, and at least as long as the server requests.
    /// `handle` is called within the future, so it should return quickly; for longer work, send the events to a
    /// channel.
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
                    // A server under load often ends the watches of slow readers. Each such watch has delivered
                    // events, so a wait would only delay the next ones.
                    let progressed = *version != from;
                    let lasted = progressed || begun.elapsed() >= MIN_WATCH_DURATION;
                    match ended {
                        Ok(()) if lasted => continue,
                        // The next watch finds out whether the server is away.
                        Err(error) if lasted && error.is_lost_connection() => {
                            tracing::debug!(resource, %error, "the connection of a watch was lost");
                            handle(Event::Failed);
                            continue;
                        }
                        Ok(()) => WatchError::EndedAtOnce,
                        Err(error) => error,
                    }
                }
            };
            if error.is_away() {
                tracing::debug!(resource, "a watch waits because the API server is away");
                continue;
            }
            let list_at_once = error.needs_list() && version.take().is_some() && failures.may_list_at_once();
            let wait = if list_at_once {
                Duration::ZERO
            } else {
                failures.next_wait(resource)
            };
            let wait = wait.max(error.retry_after().unwrap_or_default());
            if error.is_absent() {
                if !is_absent {
                    tracing::warn!(resource, "CRD not installed; will be watched once it is");
                }
                handle(Event::Absent);
            } else if error.is_forbidden() {
                handle(Event::Forbidden(error.to_string()));
            } else {
                tracing::warn!(resource, %error, wait_ms = millis(wait), "a watch failed");
                handle(Event::Failed);
            }
            is_absent = error.is_absent();
            sleep(wait).await;
        }
    }

    /// Lists all objects in pages, and returns the version of the list.
    async fn list(&self, handle: &mut impl FnMut(Event<K>)) -> Result<String, WatchError> {
        handle(Event::ListStarted);
        let mut params = ListParams {
            label_selector: self.labels.clone(),
            limit: Some(MAX_PAGE_OBJECTS),
            ..ListParams::default()
        };
        loop {
            let text = self.call_timeout.call(page::request(&self.api, &params)).await?;
            let page = Page::read(&text)?;
            handle(Event::ListPage(
                page.version.as_deref().map(Version::parse).unwrap_or_default(),
            ));
            // Objects are decoded one by one, because a decoded page takes many times the memory of its text.
            for item in page.items {
                let item = serde_json::from_str(item.get()).map_err(kube::Error::SerdeError);
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

    /// Watches from `version` until the watch ends. Updates `version` and the time of the last event, `last_event`.
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
            .call(stream::open(&self.api, &params, version))
            .await?;
        pin_mut!(events);
        loop {
            let Ok(event) = timeout(self.silence_timeout, events.next()).await else {
                return Err(WatchError::Silent);
            };
            let event = match event {
                // A server that was restored from a backup waits until it reaches the requested version. It sends
                // nothing, and ends the watch at its timeout like any other.
                None if last_event.elapsed() >= self.silence_timeout.max(DEFAULT_SILENCE_TIMEOUT) => {
                    return Err(WatchError::NoEvents);
                }
                None => return Ok(()),
                Some(Err(error)) => return Err(WatchError::Stream(error)),
                Some(Ok(WatchEvent::Error(status))) => return Err(WatchError::Rejected(status)),
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

/// Sets `version` to `new`. An empty one is ignored, because a watch without a version would start at the current state
/// and miss the deletions before.
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
