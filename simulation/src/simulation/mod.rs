//! A simulated cluster: the in-memory API, nodes, and operators that may die.

mod clock;
mod faults;
mod operators;
mod setup;
mod state;
mod users;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube_memory::{Backup, Cluster, Description};
use training_job::GangScheduler;
use training_job_controller::Clock;

use crate::faults::PodFate;
use crate::invariants::Monitor;
use crate::invariants::at_rest::SettledCluster;
use crate::world::gang_scheduler::SimulatedScheduler;
use crate::world::history::History;
use crate::world::job_type::JobType;
use crate::world::kubelet::Nodes;
use crate::world::network::Network;
use clock::SimulatedClock;
use operators::RunningOperator;
use setup::of_different_kinds;
pub use setup::{SMALL, Setup, train, with_spec};

/// Runs a future on a clock that advances only when every task waits.
///
/// # Panics
/// Panics if Tokio cannot create a runtime.
pub fn on_paused_clock<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

/// A cluster, its nodes and operators.
pub struct Simulation {
    /// The cluster.
    pub cluster: Cluster,
    /// The network between the operators and the cluster.
    pub network: Network,
    /// A client of users, whose calls have no faults.
    pub user: Client,
    /// The log of the run.
    pub history: History,
    /// Checks the invariants at each change.
    pub monitor: Monitor,
    /// The clock that the operators read.
    clock: SimulatedClock,
    job_types: &'static [JobType],
    concurrency: usize,
    running: BTreeMap<usize, RunningOperator>,
    operator_ended: bool,
    nodes: Nodes,
    gang_scheduler: Option<SimulatedScheduler>,
    backup: Option<Backup>,
    restored: bool,
}

impl Simulation {
    /// Creates a cluster with nodes and an operator.
    pub fn new(pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static) -> Self {
        let mut sim = Self::without_operator(pod_fates);
        sim.start();
        sim
    }

    /// Creates a cluster with nodes and no operator.
    pub fn without_operator(pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static) -> Self {
        Self::with_setup(Setup::mxjobs(pod_fates))
    }

    /// Creates a cluster with nodes and this setup.
    pub fn with_setup(setup: Setup) -> Self {
        let history = History::default();
        let clock = || SimulatedClock {
            start: history.start(),
            ahead: Arc::default(),
        };
        let cluster_clock = clock();
        let clock = clock();
        let cluster = Cluster::builder()
            .clock({
                let clock = cluster_clock.clone();
                move || clock.now()
            })
            .bookmark_interval(Some(Duration::from_secs(60)))
            .build();
        for job_type in of_different_kinds(setup.job_types) {
            let (kind, plural) = (job_type.kind(), job_type.plural());
            cluster.install(Description::new(job_type.group(), "v1", kind, plural).with_status());
            for object in job_type.objects() {
                let kind = object.kind;
                cluster.install_missing(Description::new(kind.group, kind.version, kind.kind, kind.plural));
            }
        }
        let gang_scheduler = setup.gang_scheduler.map(|scheduler| {
            let kind = scheduler.pod_group();
            let groups = Description::new(kind.group, kind.version, kind.kind, kind.plural);
            cluster.install(match scheduler {
                GangScheduler::Volcano => groups,
                _ => groups.with_status(),
            });
            let (played, clock) = (SimulatedScheduler::new(scheduler), cluster_clock.clone());
            tokio::spawn(played.clone().run(cluster.clone(), move || clock.now()));
            played
        });
        let network = Network::new(&cluster, history.clone());
        let monitor = Monitor::attach(&cluster, &network, &history, setup.staleness);
        let nodes = Nodes::new(setup.node_clocks_differ);
        let nodes_clock = cluster_clock.clone();
        let run = nodes.clone();
        tokio::spawn(run.run(cluster.clone(), setup.pod_fates, move || nodes_clock.now()));
        Self {
            network,
            user: cluster.client("default"),
            cluster,
            history,
            monitor,
            clock,
            job_types: setup.job_types,
            concurrency: setup.concurrency,
            running: BTreeMap::new(),
            operator_ended: false,
            nodes,
            gang_scheduler,
            backup: None,
            restored: false,
        }
    }

    /// Returns true if a pod has scheduled steps, or a cycle of the gang scheduler is pending.
    pub fn has_pending_steps(&self) -> bool {
        let is_busy = self
            .gang_scheduler
            .as_ref()
            .is_some_and(SimulatedScheduler::is_busy);
        self.nodes.have_pending_steps() || is_busy
    }

    /// Returns the gang scheduler of the cluster, if any.
    pub fn gang_scheduler(&self) -> Option<&GangScheduler> {
        self.gang_scheduler.as_ref().map(SimulatedScheduler::scheduler)
    }

    /// Lets this many seconds pass.
    pub async fn advance(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Returns the state of the cluster, for the checks of a settled cluster.
    pub fn settled(&self) -> SettledCluster {
        SettledCluster::read(&self.cluster)
            .with_gangs(self.gang_scheduler().cloned())
            .with_edited(self.monitor.edited_jobs())
    }

    /// Asserts that no invariant has been violated.
    ///
    /// # Panics
    /// Panics if an invariant was violated, or an operator ended by itself.
    pub fn assert_no_violations(&self) {
        let found = self.monitor.violations();
        assert!(found.is_empty(), "{found:#?}");
        assert!(!self.has_operator_ended(), "the operator ended");
    }
}
