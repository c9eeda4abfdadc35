//! Changes of jobs and their pods, as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, LocalBoxStream, SelectAll};
use futures::{Stream, StreamExt};
use http_body::Frame;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Error, Event};
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::{sleep, timeout};
use training_job::api::labels::OPERATOR_NAME;
use training_job_review::Kind;

use super::route::JobKey;

/// The job that changed; `None` if any may have.
pub(super) type Change = Option<JobKey>;

/// The time for further changes before a message.
const PAUSE: Duration = Duration::from_millis(500);

/// The time between messages without a change. Those to clients that have left end their connections.
const TICK: Duration = Duration::from_secs(30);

/// Watches the jobs of all kinds, and their pods, in a namespace or in all. Kinds that are not installed or not allowed
/// are tried again from time to time.
pub(super) fn watch(
    client: &Client,
    namespace: Option<&str>,
    kinds: &[std::sync::Arc<Kind>],
) -> impl Stream<Item = Change> + use<> {
    let mut all: SelectAll<BoxStream<'static, Change>> = SelectAll::new();
    for kind in kinds {
        let api: Api<PartialObjectMeta<DynamicObject>> = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind.resource),
            None => Api::all_with(client.clone(), &kind.resource),
        };
        let name = kind.name().to_owned();
        let changes = watcher(api, Config::default()).default_backoff();
        let changes = changes.filter_map(move |event| {
            let change = change(event, |object| {
                key(&object.metadata, &name, object.metadata.name.as_deref())
            });
            futures::future::ready(change)
        });
        all.push(changes.boxed());
    }
    let api: Api<PartialObjectMeta<Pod>> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let pods = watcher(api, Config::default().labels(OPERATOR_NAME)).default_backoff();
    let pods = pods.filter_map(|event| {
        let change = change(event, |pod| {
            let mut owners = pod.metadata.owner_references.iter().flatten();
            let owner = owners.find(|owner| owner.controller == Some(true))?;
            key(&pod.metadata, &owner.kind, Some(&owner.name))
        });
        futures::future::ready(change)
    });
    all.push(pods.boxed());
    all
}

fn key(meta: &ObjectMeta, kind: &str, name: Option<&str>) -> Option<JobKey> {
    Some(JobKey {
        namespace: meta.namespace.clone()?,
        kind: kind.to_owned(),
        name: name?.to_owned(),
    })
}

/// Returns the change of a watch. The objects of a list may be as they were, so the list as a whole is one change.
fn change<K>(event: Result<Event<K>, Error>, key: impl Fn(&K) -> Option<JobKey>) -> Option<Change> {
    match event {
        Ok(Event::Apply(object) | Event::Delete(object)) => key(&object).map(Some),
        Ok(Event::InitDone) => Some(None),
        Ok(Event::Init | Event::InitApply(_)) | Err(_) => None,
    }
}

fn is_about(change: &Change, job: Option<&JobKey>) -> bool {
    match (change, job) {
        (Some(changed), Some(job)) => changed == job,
        _ => true,
    }
}

/// Waits for a change of a job, or of any. Returns `None` if there will be none.
async fn next(changes: &mut Receiver<Change>, job: Option<&JobKey>) -> Option<()> {
    loop {
        match changes.recv().await {
            Ok(change) if !is_about(&change, job) => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return Some(()),
            Err(RecvError::Closed) => return None,
        }
    }
}

/// Returns a message after each change. The permit is held until the client has left.
pub(super) fn messages(
    changes: Receiver<Change>,
    job: Option<JobKey>,
    has_ticks: bool,
    permit: OwnedSemaphorePermit,
) -> LocalBoxStream<'static, Result<Frame<Bytes>, Infallible>> {
    let message = match &job {
        Some(job) => format!("event: change\ndata: job {job}\n\n"),
        None => "event: change\ndata: list\n\n".to_owned(),
    };
    let first = stream::once(async { frame("retry: 2000\n\n") });
    let state = (changes, permit);
    let others = stream::unfold(state, move |(mut changes, permit)| {
        let (job, message) = (job.clone(), message.clone());
        async move {
            let text = match timeout(TICK, next(&mut changes, job.as_ref())).await {
                Ok(None) => return None,
                Ok(Some(())) => {
                    sleep(PAUSE).await;
                    changes = changes.resubscribe();
                    message
                }
                Err(_) if has_ticks => message,
                Err(_) => ":\n\n".to_owned(),
            };
            Some((frame(&text), (changes, permit)))
        }
    });
    first.chain(others).boxed_local()
}

fn frame(text: &str) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(Bytes::copy_from_slice(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::{Semaphore, broadcast};

    use super::*;

    /// Returns the messages after the first, until the sender is gone.
    async fn texts(job: Option<&str>, changes: &[Option<&str>]) -> Vec<String> {
        let (sender, receiver) = broadcast::channel(16);
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let messages = messages(receiver, job.and_then(JobKey::parse), false, permit);
        for change in changes {
            sender.send(change.and_then(JobKey::parse)).unwrap();
        }
        drop(sender);
        let frames: Vec<_> = messages.skip(1).collect().await;
        let text = |frame: Result<Frame<Bytes>, Infallible>| {
            let data = frame.unwrap().into_data().unwrap();
            String::from_utf8(data.to_vec()).unwrap()
        };
        frames.into_iter().map(text).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_a_moment_are_one_message() {
        let changes = [Some("ml/MXJob/train"), Some("ml/MXJob/other"), None];
        assert_eq!(texts(None, &changes).await, ["event: change\ndata: list\n\n"]);
        assert_eq!(
            texts(Some("ml/MXJob/train"), &changes).await,
            ["event: change\ndata: job ml/MXJob/train\n\n"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_other_jobs_send_no_message() {
        let changes = [
            Some("ml/MXJob/other"),
            Some("ml/MxJob/train"),
            Some("x/MXJob/train"),
        ];
        assert_eq!(
            texts(Some("ml/MXJob/train"), &changes).await,
            Vec::<String>::new()
        );
    }
}
