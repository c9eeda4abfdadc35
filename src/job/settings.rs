//! Settings of the operator that apply to every job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{CleanPodPolicy, RestartScope};

use super::{Accelerators, GangScheduler, SettingDefinition};

/// The operator's settings that apply to every job. Hooks read them from
/// [`Topology::settings`](super::Topology::settings).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The default restart scope of a job; if unset, the kind of job decides.
    pub restart_scope: Option<RestartScope>,
    /// The default clean pod policy of a job. Default: delete the pods that still run.
    pub clean_pods: CleanPodPolicy,
    /// Grace period of a success while replicas that do not decide the job still run, because the processes of a
    /// finished cluster end almost together. Default: one second.
    pub success_grace_period: Duration,
    /// Grace period of a failure by exit code while other replicas of the same restart scope still run. If one
    /// replica is killed, the others end shortly after, and the cluster may report the others first. Default: three
    /// seconds.
    pub failure_grace_period: Duration,
    /// The default of `runPolicy.sidecarGracePeriodSeconds`, in seconds. Default: 600, which is ten minutes.
    pub sidecar_grace_seconds: i64,
    /// Time after its grace period when a pod that is being deleted is deleted by force. Its node has not confirmed
    /// that the processes have ended, and they may continue if the node does. Default: never.
    pub force_delete_after: Option<Duration>,
    /// The domain of the cluster's DNS for names of services. Default: `cluster.local`.
    pub cluster_domain: String,
    /// Additions to the framework's containers that request a device. Default: none.
    pub accelerators: Arc<Accelerators>,
    /// The gang scheduler, which binds all pods of a job or none. Default: none.
    pub gang_scheduler: Option<GangScheduler>,
    /// Settings of single kinds by name, as declared in their [`Framework::settings`](super::Framework::settings).
    pub values: Arc<BTreeMap<String, String>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            restart_scope: None,
            clean_pods: CleanPodPolicy::Running,
            success_grace_period: Duration::from_secs(1),
            failure_grace_period: Duration::from_secs(3),
            sidecar_grace_seconds: 600,
            force_delete_after: None,
            cluster_domain: "cluster.local".to_owned(),
            accelerators: Arc::default(),
            gang_scheduler: None,
            values: Arc::default(),
        }
    }
}

impl Settings {
    /// Returns the value of a setting: the value with which the operator was started, or the default.
    pub fn get<'a>(&'a self, setting: &'a SettingDefinition) -> &'a str {
        self.values
            .get(setting.name)
            .map_or(setting.default, String::as_str)
    }
}
