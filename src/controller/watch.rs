//! Keeps watches alive and feeds what they say into the caches.

use std::fmt::Debug;
use std::future::Future;

use futures::{StreamExt, pin_mut};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::retry::backoff;

/// Seconds after which the server ends a watch, so that one that died silently is noticed.
const WATCH_SECONDS: u32 = 120;

/// Watches `api` for ever and hands each event to `take`.
///
/// A watch that fails is taken up again where it was, after a wait that grows with each failure in a
/// row. One that the server answers with 410 before it starts is begun anew with a list: the watcher
/// itself would ask for the same version for ever.
pub(super) async fn watch<K>(api: Api<K>, config: watcher::Config, mut take: impl FnMut(Event<K>))
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let kind = K::plural(&()).into_owned();
    let mut errors = 0;
    loop {
        let stream = watcher::watcher(api.clone(), config.clone().timeout(WATCH_SECONDS));
        pin_mut!(stream);
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => {
                    // A list that begins has not been answered yet.
                    if !matches!(event, Event::Init) {
                        errors = 0;
                    }
                    take(event);
                }
                Err(error) => {
                    errors += 1;
                    let wait = backoff(errors, &kind);
                    tracing::warn!(kind, %error, wait_ms = wait.as_millis(), "a watch failed");
                    sleep(wait).await;
                    if is_gone(&error) {
                        break;
                    }
                }
            }
        }
    }
}

fn is_gone(error: &watcher::Error) -> bool {
    use watcher::Error::{WatchFailed, WatchStartFailed};
    matches!(error, WatchStartFailed(kube::Error::Api(s)) | WatchFailed(kube::Error::Api(s)) if s.code == 410)
}

/// Runs all of these until one ends, which none does.
pub(super) async fn all(watches: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>>>) {
    futures::future::join_all(watches).await;
}
