//! Injects the faults of the cluster.

use std::sync::atomic::Ordering;

use kube_memory::Versions;

use super::Simulation;
use crate::faults::ClusterFault;

impl Simulation {
    /// Injects a fault.
    pub async fn inject(&mut self, fault: &ClusterFault) {
        match fault {
            ClusterFault::Cut(resource) => {
                self.cluster.cut_watches(*resource);
            }
            ClusterFault::Compact => {
                self.cluster.compact();
                self.cluster.cut_watches(None);
            }
            ClusterFault::Freeze(resource) => {
                self.cluster.freeze_watches(Some(resource));
            }
            ClusterFault::EndWatches(after) => self.network.end_watches(*after),
            ClusterFault::Kill => {
                let operators = self.operators();
                self.kill().await;
                for _ in 0..operators {
                    self.start();
                }
            }
            ClusterFault::SetClock(seconds) => self.set_clock(*seconds),
            ClusterFault::Backup => self.back_up(),
            ClusterFault::Restore => self.restore(Versions::GoOn),
            ClusterFault::Capacity(pods) => self.set_capacity(*pods),
        }
    }

    /// Sets the capacity of the cluster for pods of gangs, or removes the limit. Bound pods stay bound.
    pub fn set_capacity(&self, pods: Option<usize>) {
        if let Some(scheduler) = &self.gang_scheduler {
            scheduler.set_capacity(pods);
        }
    }

    /// Sets the operators' clocks this many seconds ahead of the cluster's clock.
    pub fn set_clock(&self, ahead: i64) {
        self.clock.ahead.store(ahead, Ordering::Relaxed);
        if ahead != 0 {
            self.monitor.on_clocks_set();
        }
    }

    /// Backs up the cluster, and replaces an earlier backup.
    pub fn back_up(&mut self) {
        self.backup = Some(self.cluster.back_up());
    }

    /// Restores the cluster from its backup, if there is one.
    pub fn restore(&mut self, versions: Versions) {
        if let Some(backup) = &self.backup {
            self.cluster.restore(backup, versions);
            self.monitor.on_restored(&self.cluster, self.history.now());
            self.nodes.on_restored();
            if let Some(scheduler) = &self.gang_scheduler {
                scheduler.restart(&self.cluster);
            }
            self.restored = true;
        }
    }

    /// Returns true if the cluster was ever restored from a backup.
    pub fn was_restored(&self) -> bool {
        self.restored
    }
}
