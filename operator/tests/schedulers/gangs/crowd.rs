//! Very many gangs that wait for the capacity of a few, and one gang of very many pods.

use std::collections::BTreeMap;
use std::env;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use training_operator_testing::usage::Usage;

use super::process::{Gangs, Scheduler};
use crate::crowd;
use crate::jobs::{JAX, PYTORCH};
use crate::stage::{Operators, Stage};

/// Counts the operator's writes to each PodGroup after its creation. Schedulers write only statuses.
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

    /// Returns the sum of the writes to all groups, and the maximum of one group.
    fn counted(&self) -> (usize, usize) {
        let counts = self.counts.lock();
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
            *counts.lock().entry(group.name_any()).or_default() += 1;
        }
    }
}

/// Creates jobs at once, and ends each as soon as it runs. The capacity suffices for ten of them at a time. Each must
/// run, and the operator may write at most `most` times to each job's group.
async fn a_crowd_runs_in_turn(scheduler: Scheduler, most: usize) {
    let jobs = crowd::size();
    let gangs = Gangs::shared(scheduler).await;
    let _alone = gangs.alone().await;
    let stage = &Stage::with_gangs(gangs, scheduler, (PYTORCH, Operators::Stay), (3, 10)).await;
    let writes = Writes::of(stage.groups(scheduler));
    let begun = Instant::now();
    let order = crowd::runs_in_turn(stage, jobs, |name| stage.gang(name)).await;
    let seconds = begun.elapsed().as_secs();
    let late = crowd::most_turns_late(&order);
    let (all, of_one) = writes.counted();
    let Usage { cpu, peak_rss, .. } = Usage::of(stage.operator().0.pid().as_raw_nonzero().get());
    eprintln!(
        "{scheduler:?}: {jobs} jobs in {seconds} s; {all} writes to groups, {of_one} to one; at most {late} turns late; \
         {cpu:.1} s of CPU, {peak_rss:.0} MiB"
    );
    assert!(all <= most * jobs, "{all} writes to {jobs} groups");
    stage.end();
}

/// Runs a gang of many pods on a cluster whose capacity is just sufficient.
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
    crowd::all_run(&stage, 1, pods).await;
    let ran = begun.elapsed().as_secs();
    stage.condition("large", "Succeeded").await;
    let (all, _) = writes.counted();
    let Usage { cpu, peak_rss, .. } = Usage::of(stage.operator().0.pid().as_raw_nonzero().get());
    eprintln!(
        "{scheduler:?}: a gang of {pods} ran and was ended after {ran} s; {all} writes to its group; {cpu:.1} s of CPU, {peak_rss:.0} MiB"
    );
    // Succeeded pods are no longer members. The operator reports many of them at once.
    assert!(all < pods / 2, "{all} writes");
    stage.end();
}

mod volcano {
    use super::*;

    #[tokio::test]
    async fn a_crowd_runs_in_turn() {
        // One write for each ended pod but the last, whose end is the job's.
        super::a_crowd_runs_in_turn(Scheduler::Volcano, 2).await;
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
        // As above, and one for the freed capacity.
        super::a_crowd_runs_in_turn(Scheduler::Coscheduling, 3).await;
    }

    #[tokio::test]
    async fn a_large_gang_runs() {
        super::a_large_gang_runs(Scheduler::Coscheduling).await;
    }
}
