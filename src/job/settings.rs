//! Settings of the operator that bear on every job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{CleanPodPolicy, RestartScope};

use super::{Accelerators, GangScheduler, SettingDefinition};

/// The operator's own settings that bear on every job. Hooks read them from
/// [`Topology::settings`](super::Topology::settings).
#[derive(Clone, Debug)]
pub struct Settings {
    /// What restarts together with a failed replica where the job does not say; the kind of job
    /// decides if unset.
    pub restart_scope: Option<RestartScope>,
    /// Which pods go at the end of a job that does not say. Default: those that still run.
    pub clean_pods: CleanPodPolicy,
    /// How long a success is held while replicas that do not decide still run: the processes of a
    /// cluster that has done its work end within a moment of each other. Default: one second.
    pub success_hold: Duration,
    /// How long a failure by exit code is held while other replicas that restart together with this one still run: where
    /// one is killed the others end by themselves within a moment, and the cluster may tell of them first. Default: three
    /// seconds.
    pub failure_hold: Duration,
    /// The domain of the cluster's DNS, in which the names of services are. Default: `cluster.local`.
    pub cluster_domain: String,
    /// What the framework's containers get that ask for a device. Default: nothing.
    pub accelerators: Arc<Accelerators>,
    /// What binds the pods of each job together or not at all. Default: nothing does.
    pub gang_scheduler: Option<GangScheduler>,
    /// Settings of single kinds, by name: those that their [`Framework::settings`](super::Framework::settings) declare.
    pub values: Arc<BTreeMap<String, String>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            restart_scope: None,
            clean_pods: CleanPodPolicy::Running,
            success_hold: Duration::from_secs(1),
            failure_hold: Duration::from_secs(3),
            cluster_domain: "cluster.local".to_owned(),
            accelerators: Arc::default(),
            gang_scheduler: None,
            values: Arc::default(),
        }
    }
}

impl Settings {
    /// The value of a setting: what the operator was started with, else the default.
    pub fn get<'a>(&'a self, setting: &'a SettingDefinition) -> &'a str {
        self.values
            .get(setting.name)
            .map_or(setting.default, String::as_str)
    }
}
