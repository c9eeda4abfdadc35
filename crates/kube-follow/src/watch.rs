//! Keeps watches alive and feeds what they say into the caches.
//!
//! Not kube's `watcher`: it does not tell the version of a list, without which an answer to an own
//! write cannot be told from a ghost; it has no time-out for lists and for the start of a watch; it
//! asks for the same version for ever if 410 comes as the answer's code; and it asks at once and
//! again if watches end as they begin.

use std::fmt::Debug;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use kube::api::{ListParams, WatchParams};
use kube::core::Status;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use crate::retry::{CallError, CallTimeout, backoff, millis};
use crate::version::Version;

mod lines;
#[cfg(test)]
mod server_tests;

use lines::Line;
pub use lines::Parse;

/// How much earlier than it is given up for its silence the server is asked to end a watch, at most.
const GRACE: Duration = Duration::from_secs(10);

/// How long a watch may be silent, if nobody says otherwise. A server says something each minute.
pub const SILENCE: Duration = Duration::from_secs(130);

/// Objects in one page of a list.
const PAGE: u32 = 500;

/// A watch that ends sooner than this has failed.
const SHORTEST: Duration = Duration::from_secs(1);

/// How long all must have been well for earlier failures not to count.
const CALM: Duration = Duration::from_secs(30);

/// How long after a list that was made without a wait the next may be: longer than any wait, or a watch
/// that is refused for good would list twice each time.
const LIST_AGAIN: Duration = Duration::from_secs(300);

/// Failures in a row that lengthen the wait: it grows to 40 s at most. A cache should not be blind
/// for longer.
const MOST_FAILURES: u32 = 7;

/// What lists and watches say.
pub enum Event<K> {
    /// A list begins.
    ListStarted,
    /// A page of the list has come, which shows what was stored at this version.
    ListPage(Version),
    /// The list names an object.
    Listed(K),
    /// The list is complete.
    ListDone,
    /// An object is new or has changed.
    Applied(K),
    /// An object is gone, or is not selected any more.
    Deleted(K),
    /// Nothing more is to come up to this version.
    Bookmark(Version),
    /// A list or the watch failed; another begins after a while.
    Failed,
}

/// Why a list or a watch ended.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Stream(kube::Error),
    #[error("{}", .0.message)]
    Answered(Box<Status>),
    #[error("silence")]
    Silence,
    #[error("it ended at once")]
    Ended,
    #[error("the list has no version")]
    NoVersion,
    #[error("versions went back")]
    WentBack,
    #[error("nothing came for too long, not even bookmarks")]
    Mute,
}

impl Trouble {
    /// How long the server asks to be left alone, if it does.
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Call(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Whether only a new list helps: the version is too old, or an event cannot be read.
    fn needs_list(&self) -> bool {
        match self {
            Self::Call(error) => error.code() == Some(410),
            Self::Stream(kube::Error::Api(status)) => matches!(status.code, 0 | 410),
            Self::Answered(status) => status.code == 410,
            // A server that was set back to a backup knows nothing of the versions that came after it.
            Self::Stream(kube::Error::SerdeError(_)) | Self::WentBack | Self::Mute => true,
            _ => false,
        }
    }
}

/// Which objects are listed and watched, and with which time-outs.
pub struct Watch<K> {
    /// The objects.
    pub api: Api<K>,
    /// The label selector; all objects if unset.
    pub labels: Option<String>,
    /// How long a list, or the start of a watch, may take.
    pub call_timeout: CallTimeout,
    /// How long a watch may be silent before it counts as dead; [`SILENCE`] by default. The server is asked to end it a
    /// little earlier.
    pub silence_timeout: Duration,
    /// How an object in a watch event is decoded; with serde by default. Lists are always decoded with serde.
    pub parse: Parse<K>,
}

impl<K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug> Watch<K> {
    /// Lists and watches all objects of `api`, with the default time-outs.
    pub fn new(api: Api<K>) -> Self {
        Self {
            api,
            labels: None,
            call_timeout: CallTimeout::default(),
            silence_timeout: SILENCE,
            parse: |text| serde_json::from_str(text),
        }
    }

    /// Seconds after which the server ends a watch, so that one that died silently can be told from it.
    fn watch_seconds(&self) -> u32 {
        let seconds = (self.silence_timeout - GRACE.min(self.silence_timeout / 4)).as_secs();
        u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
    }

    /// Lists, watches and lists again for ever, and hands each event to `handle`.
    pub async fn run(&self, mut handle: impl FnMut(Event<K>)) {
        let kind = K::plural(&()).into_owned();
        let mut failures = Failures::default();
        let mut version = None;
        let mut heard = Instant::now();
        loop {
            let trouble = match &mut version {
                None => match self.list(&mut handle).await {
                    Ok(listed) => {
                        heard = Instant::now();
                        version = Some(listed);
                        continue;
                    }
                    Err(trouble) => trouble,
                },
                Some(version) => {
                    let begun = Instant::now();
                    match self.follow(version, &mut heard, &mut handle).await {
                        Ok(()) if begun.elapsed() >= SHORTEST => continue,
                        Ok(()) => Trouble::Ended,
                        Err(trouble) => trouble,
                    }
                }
            };
            let list_at_once = trouble.needs_list() && version.take().is_some() && failures.may_list();
            let wait = if list_at_once {
                Duration::ZERO
            } else {
                failures.wait(&kind)
            };
            let wait = wait.max(trouble.retry_after().unwrap_or_default());
            tracing::warn!(kind, %trouble, wait_ms = millis(wait), "a watch failed");
            handle(Event::Failed);
            sleep(wait).await;
        }
    }

    /// Lists all objects, page by page, and returns the version of the list.
    async fn list(&self, handle: &mut impl FnMut(Event<K>)) -> Result<String, Trouble> {
        handle(Event::ListStarted);
        let mut params = ListParams {
            label_selector: self.labels.clone(),
            limit: Some(PAGE),
            ..ListParams::default()
        };
        loop {
            let page = self.call_timeout.call(self.api.list(&params)).await?;
            let version = page.metadata.resource_version.as_deref();
            handle(Event::ListPage(version.map(Version::parse).unwrap_or_default()));
            page.items
                .into_iter()
                .for_each(|item| handle(Event::Listed(item)));
            let set = |text: Option<String>| text.filter(|t| !t.is_empty());
            params.continue_token = set(page.metadata.continue_);
            if params.continue_token.is_none() {
                let version = set(page.metadata.resource_version).ok_or(Trouble::NoVersion)?;
                handle(Event::ListDone);
                return Ok(version);
            }
        }
    }

    /// Watches from `version` on, and moves it on, until the watch ends. `heard` is when something was last heard.
    async fn follow(
        &self,
        version: &mut String,
        heard: &mut Instant,
        handle: &mut impl FnMut(Event<K>),
    ) -> Result<(), Trouble> {
        let params = WatchParams {
            label_selector: self.labels.clone(),
            timeout: Some(self.watch_seconds()),
            ..WatchParams::default()
        };
        let stream = self
            .call_timeout
            .call(lines::lines(&self.api, self.parse, &params, version))
            .await?;
        pin_mut!(stream);
        loop {
            let Ok(event) = timeout(self.silence_timeout, stream.next()).await else {
                return Err(Trouble::Silence);
            };
            let event = match event {
                // What waits for a version that is yet to come is told nothing, and its end is like any other.
                None if heard.elapsed() >= self.silence_timeout.max(SILENCE) => return Err(Trouble::Mute),
                None => return Ok(()),
                Some(Err(error)) => return Err(Trouble::Stream(error)),
                Some(Ok(Line::Error(status))) => return Err(Trouble::Answered(status)),
                Some(Ok(Line::Bookmark(new))) => {
                    *heard = Instant::now();
                    move_on(version, &new)?;
                    handle(Event::Bookmark(Version::parse(version)));
                    continue;
                }
                Some(Ok(Line::Applied(object))) => Event::Applied(object),
                Some(Ok(Line::Deleted(object))) => Event::Deleted(object),
            };
            if let Event::Applied(object) | Event::Deleted(object) = &event
                && let Some(new) = &object.meta().resource_version
            {
                move_on(version, new)?;
            }
            *heard = Instant::now();
            handle(event);
        }
    }
}

/// Moves `version` on. A watch without a version would begin anew, and not tell of what went meanwhile.
fn move_on(version: &mut String, told: &str) -> Result<(), Trouble> {
    if told.is_empty() {
        return Ok(());
    }
    if Version::parse(told) < Version::parse(version) {
        return Err(Trouble::WentBack);
    }
    told.clone_into(version);
    Ok(())
}

/// Failures in a row.
#[derive(Default)]
struct Failures {
    count: u32,
    /// When the last wait ended.
    waited: Option<Instant>,
    /// When a list was last made without a wait.
    listed: Option<Instant>,
}

impl Failures {
    /// Whether a list may be made without a wait. A server that has started anew knows no version from before its start, and
    /// the failures while it was away say nothing of it any more.
    fn may_list(&mut self) -> bool {
        let may = self.listed.is_none_or(|listed| listed.elapsed() >= LIST_AGAIN);
        if may {
            self.listed = Some(Instant::now());
        }
        may
    }

    /// The wait after one more failure. A list that went well counts for nothing if the watch behind
    /// it fails.
    fn wait(&mut self, kind: &str) -> Duration {
        if self.waited.is_some_and(|waited| waited.elapsed() >= CALM) {
            self.count = 0;
        }
        self.count = (self.count + 1).min(MOST_FAILURES);
        let wait = backoff(self.count, kind);
        self.waited = Some(Instant::now() + wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_missing_moves_nothing() {
        let mut version = "5".to_owned();
        move_on(&mut version, "").unwrap();
        assert_eq!(version, "5");
        move_on(&mut version, "6").unwrap();
        assert_eq!(version, "6");
        assert!(matches!(move_on(&mut version, "5"), Err(Trouble::WentBack)));
        assert_eq!(version, "6");
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_made_at_once_but_not_again_and_again() {
        let mut failures = Failures::default();
        assert!(failures.may_list());
        assert!(!failures.may_list());
        sleep(LIST_AGAIN).await;
        assert!(failures.may_list());
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_until_all_is_calm() {
        let mut failures = Failures::default();
        let mut waits = Vec::new();
        for _ in 0..12 {
            let wait = failures.wait("pods");
            waits.push(wait.as_secs_f64());
            sleep(wait).await;
        }
        assert!(waits.is_sorted(), "{waits:?}");
        assert!((32.0..=40.0).contains(&waits[11]), "{waits:?}");
        sleep(CALM).await;
        assert!(failures.wait("pods") < Duration::from_secs(1));
    }
}
