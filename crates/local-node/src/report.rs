//! Delivers the statuses of a pod to the API.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::PodStatus;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::api::{ApiError, PodApi, PodRef};

const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

/// Returns the delays between attempts: doubling, bounded, without end.
pub(super) fn retries() -> impl Iterator<Item = Duration> + Send {
    std::iter::successors(Some(FIRST_RETRY_DELAY), |delay| {
        Some((*delay * 2).min(MAX_RETRY_DELAY))
    })
}

/// Sends the statuses of one pod in order, each until it has arrived. While a status is being sent or cannot be sent,
/// newer ones replace it. The API therefore gets the latest status, and certainly the final one.
pub(super) struct StatusReporter {
    latest: watch::Sender<Latest>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Latest {
    status: Option<PodStatus>,
    /// True if no other status will follow.
    is_final: bool,
}

impl StatusReporter {
    pub(super) fn start(api: Arc<dyn PodApi>, pod: PodRef) -> Self {
        let (latest, updates) = watch::channel(Latest::default());
        Self {
            latest,
            task: tokio::spawn(send(api, pod, updates)),
        }
    }

    /// Sends `status`, unless it equals the previous one.
    pub(super) fn report(&self, status: PodStatus) {
        self.latest.send_if_modified(|latest| {
            let new = latest.status.as_ref() != Some(&status);
            latest.status = Some(status);
            new
        });
    }

    /// Waits until the last status has arrived or is no longer needed.
    pub(super) async fn delivered(&mut self) {
        self.latest.send_modify(|latest| latest.is_final = true);
        if !self.task.is_finished() {
            // A task that panicked has nothing more to send.
            let _ = (&mut self.task).await;
        }
    }
}

impl Drop for StatusReporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn send(api: Arc<dyn PodApi>, pod: PodRef, mut updates: watch::Receiver<Latest>) {
    let mut sent = None;
    let mut delays = retries();
    loop {
        let (status, is_final) = {
            let latest = updates.borrow_and_update();
            (latest.status.clone(), latest.is_final)
        };
        let Some(status) = status.filter(|status| sent.as_ref() != Some(status)) else {
            if is_final || updates.changed().await.is_err() {
                return;
            }
            continue;
        };
        match api.report(&pod, &status).await {
            Ok(()) => {
                sent = Some(status);
                delays = retries();
            }
            Err(ApiError::Gone) => return,
            Err(error) => {
                let delay = delays.next().unwrap_or(MAX_RETRY_DELAY);
                error.before_retry(&pod.name, "report the status", delay).await;
            }
        }
    }
}
