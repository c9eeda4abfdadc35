//! Very many gangs that wait for room for a few, and one gang of very many pods.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures::{StreamExt, stream};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout_at};
use training_job_testing::cluster::{PATIENCE, wait_for_all};

use super::process::{Gangs, Scheduler};
use crate::jobs::{JAX, PYTORCH};
use crate::stage::{Operators, Stage, is, runs};
use crate::usage::Usage;

/// The pods of each job of a crowd.
const PODS: usize = 3;

/// How often the operator has written to each PodGroup since it was made. Schedulers write statuses alone.
struct Writes {
    counts: Arc<Mutex<BTreeMap<String, usize>>>,
    follower: JoinHandle<()>,
}

impl Writes {
    fn of(groups: Api<DynamicObject>) -> Self {
        let counts = Arc::default();
        let follower = tokio::spawn(follow(groups, Arc::clone(&counts)));
        Self { counts, follower }
    }

    /// Those to all groups together, and the most to one.
    fn counted(&self) -> (usize, usize) {
        let counts = self.counts.lock().unwrap();
        (
            counts.values().sum(),
            counts.values().max().copied().unwrap_or_default(),
        )
    }
}

impl Drop for Writes {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

async fn follow(groups: Api<DynamicObject>, counts: Arc<Mutex<BTreeMap<String, usize>>>) {
    let mut known = BTreeMap::new();
    let mut events = pin!(watcher(groups, watcher::Config::default()));
    while let Some(event) = events.next().await {
        let Ok(Event::Apply(group) | Event::InitApply(group)) = event else {
            continue;
        };
        let content = (
            group.uid(),
            group.data["spec"].clone(),
            group.metadata.annotations.clone(),
        );
        let before = known.insert(group.name_any(), content.clone());
        if before.is_some_and(|before| before != content) {
            *counts.lock().unwrap().entry(group.name_any()).or_default() += 1;
        }
    }
}

/// Has the pods of each job succeed once all of them run, and returns the jobs in the order in which they ran. There is
/// always a next one in time.
async fn all_run(stage: &Stage<'_>, jobs: usize, pods: usize) -> Vec<String> {
    let mut running = BTreeMap::<String, BTreeSet<String>>::new();
    let (mut order, mut work) = (Vec::new(), JoinSet::new());
    let mut deadline = Instant::now() + PATIENCE;
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
            deadline = Instant::now() + PATIENCE;
            let (kubelet, names) = (stage.kubelet.clone(), of_job.clone());
            work.spawn(async move {
                for name in names {
                    kubelet.succeeds(&name).await;
                }
            });
        }
    }
    work.join_all().await;
    order
}

/// Jobs that are made at once, and end as soon as they run: room for ten of them goes from one to the next. Each runs. The
/// operator writes to their groups so many times for each job at most.
async fn a_crowd_runs_in_turn(scheduler: Scheduler, most: usize) {
    let jobs: usize = env::var("GANGS").map_or(200, |jobs| jobs.parse().unwrap());
    let gangs = Gangs::shared(scheduler).await;
    let _alone = gangs.alone().await;
    let stage = Stage::with_gangs(gangs, scheduler, (PYTORCH, Operators::Stay), (3, 10)).await;
    let writes = Writes::of(stage.groups(scheduler));
    let begun = Instant::now();
    let (stage, all) = (&stage, stream::iter(0..jobs));
    let made = all.for_each_concurrent(16, |number| async move {
        let mut job = stage.gang(&format!("job-{number:04}"));
        job["spec"][PYTORCH.specs]["Worker"]["replicas"] = (PODS - 1).into();
        stage.create(&job).await;
    });
    let (order, ()) = tokio::join!(all_run(stage, jobs, PODS), made);
    wait_for_all(stage.jobs(), "", |all| {
        all.iter().filter(|job| is(job, "Succeeded", "True")).count() == jobs
    })
    .await;
    let seconds = begun.elapsed().as_secs();
    let late = order.iter().enumerate().map(|(place, name)| {
        let number: usize = name[4..].parse().unwrap();
        place.saturating_sub(number)
    });
    let (all, of_one) = writes.counted();
    let Usage { cpu, peak_rss, .. } = Usage::of(stage.operator().0.pid().as_raw_nonzero().get());
    eprintln!(
        "{scheduler:?}: {jobs} jobs in {seconds} s; {all} writes to groups, {of_one} to one; at most {} turns late; \
         {cpu:.1} s of CPU, {peak_rss:.0} MiB",
        late.max().unwrap_or_default()
    );
    assert!(all <= most * jobs, "{all} writes to {jobs} groups");
    stage.end();
}

/// A gang of so many pods on a cluster that has room for just that.
async fn a_large_gang_runs(scheduler: Scheduler) {
    let pods: usize = env::var("GANG_PODS").map_or(200, |pods| pods.parse().unwrap());
    let gangs = Gangs::shared(scheduler).await;
    let _alone = gangs.alone().await;
    let nodes = u32::try_from(pods.div_ceil(100)).unwrap();
    let stage = Stage::with_gangs(gangs, scheduler, (JAX, Operators::Stay), (nodes, 100)).await;
    let writes = Writes::of(stage.groups(scheduler));
    let begun = Instant::now();
    let mut job = stage.gang("large");
    job["spec"][JAX.specs]["Worker"]["replicas"] = pods.into();
    stage.create(&job).await;
    all_run(&stage, 1, pods).await;
    let ran = begun.elapsed().as_secs();
    stage.condition("large", "Succeeded").await;
    let (all, _) = writes.counted();
    let Usage { cpu, peak_rss, .. } = Usage::of(stage.operator().0.pid().as_raw_nonzero().get());
    eprintln!(
        "{scheduler:?}: a gang of {pods} ran and was ended after {ran} s; {all} writes to its group; {cpu:.1} s of CPU, {peak_rss:.0} MiB"
    );
    // Those that have succeeded are no members any more, and many are told of at once.
    assert!(all < pods / 2, "{all} writes");
    stage.end();
}

mod volcano {
    use super::*;

    #[tokio::test]
    async fn a_crowd_runs_in_turn() {
        super::a_crowd_runs_in_turn(Scheduler::Volcano, 1).await;
    }

    #[tokio::test]
    async fn a_large_gang_runs() {
        super::a_large_gang_runs(Scheduler::Volcano).await;
    }
}

mod coscheduling {
    use super::*;

    #[tokio::test]
    async fn a_crowd_runs_in_turn() {
        super::a_crowd_runs_in_turn(Scheduler::Coscheduling, 1).await;
    }

    #[tokio::test]
    async fn a_large_gang_runs() {
        super::a_large_gang_runs(Scheduler::Coscheduling).await;
    }
}
