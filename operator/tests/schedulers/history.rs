//! Records which pods exist at the same time.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use training_job_testbed::cluster::WAIT_TIMEOUT;

/// The number of pods that exist and have not ended, by job.
type Present = BTreeMap<String, usize>;

/// The recorded pods of a namespace, in the API server's order.
#[derive(Default)]
struct Seen {
    /// By name: the UID, and the job unless the pod has ended.
    now: BTreeMap<String, (String, Option<String>)>,
    moments: Vec<Present>,
    listed: bool,
    /// True if only pods with a node are recorded.
    bound: bool,
}

impl Seen {
    fn put(&mut self, pod: &Pod) {
        self.now.insert(pod.name_any(), entry(pod, self.bound));
    }

    fn note(&mut self) {
        let mut present = Present::new();
        for job in self.now.values().filter_map(|(_, job)| job.clone()) {
            *present.entry(job).or_default() += 1;
        }
        if self.moments.last() != Some(&present) {
            self.moments.push(present);
        }
    }
}

/// Records the pods of a namespace until it is dropped.
pub(crate) struct History {
    api: Api<Pod>,
    seen: watch::Sender<Seen>,
    follower: JoinHandle<()>,
}

impl History {
    /// Records all pods from now on.
    pub(crate) async fn of(api: Api<Pod>) -> Self {
        Self::start(api, false).await
    }

    /// Records the pods that have a node from now on.
    pub(crate) async fn of_bound(api: Api<Pod>) -> Self {
        Self::start(api, true).await
    }

    async fn start(api: Api<Pod>, bound: bool) -> Self {
        let seen = watch::Sender::new(Seen {
            bound,
            ..Seen::default()
        });
        let follower = tokio::spawn(follow(api.clone(), seen.clone()));
        let history = Self { api, seen, follower };
        history.until(|seen| seen.listed).await;
        history
    }

    async fn until(&self, look: impl FnMut(&Seen) -> bool) {
        let mut receiver = self.seen.subscribe();
        let reached = timeout(WAIT_TIMEOUT, receiver.wait_for(look)).await;
        reached.expect("the watch of pods comes no further").unwrap();
    }

    /// Returns the recorded pods at each time so far.
    async fn moments(&self) -> Vec<Present> {
        let listed = self.api.list(&ListParams::default()).await.unwrap();
        let bound = self.seen.borrow().bound;
        let now = listed.iter().map(|pod| (pod.name_any(), entry(pod, bound)));
        let now: BTreeMap<_, _> = now.collect();
        self.until(|seen| seen.now == now).await;
        self.seen.borrow().moments.clone()
    }

    /// Checks that there were never more pods than this at the same time.
    pub(crate) async fn expect_at_most(&self, pods: usize) {
        let moments = self.moments().await;
        let most = moments
            .iter()
            .map(|present| present.values().sum::<usize>())
            .max();
        assert!(most <= Some(pods), "{moments:#?}");
    }

    /// Checks that all pods of one job were gone before the first pod of another job existed, and that both had some.
    pub(crate) async fn expect_apart(&self, jobs: [&str; 2]) {
        let moments = self.moments().await;
        for job in jobs {
            assert!(
                moments.iter().any(|present| present.contains_key(job)),
                "{moments:#?}"
            );
        }
        let both = |present: &&Present| jobs.iter().all(|job| present.contains_key(*job));
        assert_eq!(moments.iter().find(both), None, "{moments:#?}");
    }

    /// Checks that a job has never had a pod.
    pub(crate) async fn expect_none_of(&self, job: &str) {
        let moments = self.moments().await;
        assert!(
            !moments.iter().any(|present| present.contains_key(job)),
            "{moments:#?}"
        );
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

fn entry(pod: &Pod, bound: bool) -> (String, Option<String>) {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let ended = matches!(phase, Some("Succeeded" | "Failed"));
    let has_node = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let job = pod.labels().get("training.kubeflow.org/job-name").cloned();
    (pod.uid().unwrap(), job.filter(|_| !ended && (has_node || !bound)))
}

async fn follow(api: Api<Pod>, seen: watch::Sender<Seen>) {
    let mut events = pin!(watcher(api, watcher::Config::default()));
    while let Some(event) = events.next().await {
        seen.send_modify(|seen| match event {
            Ok(Event::Init) => seen.now.clear(),
            Ok(Event::InitApply(pod)) => seen.put(&pod),
            Ok(Event::InitDone) => {
                seen.listed = true;
                seen.note();
            }
            Ok(Event::Apply(pod)) => {
                seen.put(&pod);
                seen.note();
            }
            Ok(Event::Delete(pod)) => {
                seen.now.remove(&pod.name_any());
                seen.note();
            }
            Err(_) => {}
        });
    }
}
