//! Very many jobs that wait for the capacity of a few.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::pin::pin;

use futures::{StreamExt, stream};
use kube::ResourceExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use training_job_testbed::cluster::{WAIT_TIMEOUT, wait_for_all};

use crate::stage::{Stage, is, runs};

/// The pods of each job of a crowd.
const PODS: usize = 3;

/// Returns the number of jobs of a crowd. `CROWD=1000` sets another number.
pub(crate) fn size() -> usize {
    env::var("CROWD").map_or(200, |jobs| jobs.parse().unwrap())
}

/// Creates this many jobs at once, ends each as soon as it runs, and waits until all have succeeded. Returns them in
/// the order in which they ran.
pub(crate) async fn runs_in_turn(
    stage: &Stage<'_>,
    jobs: usize,
    make: impl Fn(&str) -> Value,
) -> Vec<String> {
    let made = stream::iter(0..jobs).for_each_concurrent(16, |number| {
        let mut job = make(&format!("job-{number:04}"));
        job["spec"][stage.kind.specs]["Worker"]["replicas"] = (PODS - 1).into();
        async move { stage.create(&job).await }
    });
    let (order, ()) = tokio::join!(all_run(stage, jobs, PODS), made);
    wait_for_all(stage.jobs(), "", |all| {
        all.iter().filter(|job| is(job, "Succeeded", "True")).count() == jobs
    })
    .await;
    order
}

/// Returns the largest number of positions by which a job ran later than it was created.
pub(crate) fn most_turns_late(order: &[String]) -> usize {
    let late = order.iter().enumerate().map(|(place, name)| {
        let number: usize = name[4..].parse().unwrap();
        place.saturating_sub(number)
    });
    late.max().unwrap_or_default()
}

/// Makes the pods of each job succeed once all of them run, and returns the jobs in the order in which they ran.
/// Fails if no further job runs in time.
pub(crate) async fn all_run(stage: &Stage<'_>, jobs: usize, pods: usize) -> Vec<String> {
    let mut running = BTreeMap::<String, BTreeSet<String>>::new();
    let (mut order, mut work) = (Vec::new(), JoinSet::new());
    let mut deadline = Instant::now() + WAIT_TIMEOUT;
    let mut events = pin!(watcher(stage.pods(), watcher::Config::default()));
    while order.len() < jobs {
        let event = timeout_at(deadline, events.next()).await;
        let event = event.unwrap_or_else(|_| panic!("no job runs after {}: {order:?}", order.len()));
        let Some(Ok(Event::Apply(pod) | Event::InitApply(pod))) = event else {
            continue;
        };
        let job = &pod.labels()["training.kubeflow.org/job-name"];
        let of_job = running.entry(job.clone()).or_default();
        if runs(&pod) && of_job.insert(pod.name_any()) && of_job.len() == pods {
            order.push(job.clone());
            deadline = Instant::now() + WAIT_TIMEOUT;
            let (kubelet, names) = (stage.kubelet.clone(), of_job.clone());
            work.spawn(async move {
                // The pod that decides the job ends last, because the job's end frees its capacity for others.
                for name in names.into_iter().rev() {
                    kubelet.succeeds(&name).await;
                }
            });
        }
    }
    work.join_all().await;
    order
}
