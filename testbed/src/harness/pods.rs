//! Changes that kubelets, the cluster and users make to pods. Each returns the harness for the next step.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use training_job::TrainingJob;
use training_job_testing::PodScript;

use super::{PlanHarness, main_container};

/// A pod of a [`PlanHarness`], for changes to it.
pub struct PodHandle<'h, J> {
    harness: &'h mut PlanHarness<J>,
    name: String,
}

impl<J: TrainingJob> PlanHarness<J> {
    /// Returns the pod of a replica, such as `worker-0`.
    pub fn pod(&mut self, replica: &str) -> PodHandle<'_, J> {
        self.pod_named(format!("job-{replica}"))
    }

    fn pod_named(&mut self, name: String) -> PodHandle<'_, J> {
        assert!(
            self.pods.contains_key(&name),
            "no pod {name}; there are {:?}",
            self.pods.keys()
        );
        PodHandle { harness: self, name }
    }

    /// Sets all pods running that have not ended, and reconciles.
    pub fn all_running(&mut self) -> &mut Self {
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        let has_ended = |pod: &Pod| matches!(phase(pod).as_deref(), Some("Succeeded" | "Failed"));
        let going = self.pods.iter().filter(|(_, pod)| !has_ended(pod));
        let names: Vec<String> = going.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.pod_named(name).running();
        }
        self.reconcile()
    }

    /// Reconciles, removes the pods that are being deleted, and sets all pods running, their successors too.
    pub fn all_replaced(&mut self) -> &mut Self {
        self.reconcile().finish_deletions().reconcile().all_running()
    }
}

impl<'h, J: TrainingJob> PodHandle<'h, J> {
    /// All containers run.
    pub fn running(self) -> &'h mut PlanHarness<J> {
        self.write(|script| script.runs())
    }

    /// All containers exit with 0.
    pub fn succeeds(self) -> &'h mut PlanHarness<J> {
        self.write(|script| script.succeeds())
    }

    /// The framework's container exits with this code, and all others exit with 0.
    pub fn exits(self, code: i32) -> &'h mut PlanHarness<J> {
        self.exits_in(main_container::<J>(), code)
    }

    /// This container exits with this code, and all others exit with 0.
    pub fn exits_in(self, container: &str, code: i32) -> &'h mut PlanHarness<J> {
        self.write(|script| fails(&script, container, code))
    }

    /// All containers exit with this code at the same time.
    pub fn exits_in_all(self, code: i32) -> &'h mut PlanHarness<J> {
        self.write(|script| script.fails(|_| code))
    }

    /// The kubelet evicts the pod because the node is low on memory. The pod has no container statuses.
    pub fn evicted(self) -> &'h mut PlanHarness<J> {
        self.write(|script| script.evicted())
    }

    /// The pod gets this phase, reason and message, and no container statuses.
    pub fn taken(self, phase: &str, reason: &str, message: &str) -> &'h mut PlanHarness<J> {
        self.write(|_| PodStatus {
            phase: Some(phase.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            ..PodStatus::default()
        })
    }

    /// An old kubelet ends the pod for this reason and sets no condition. The framework's container exits with this
    /// code.
    pub fn ends_as_it_is_taken(self, reason: &str, code: i32) -> &'h mut PlanHarness<J> {
        self.write(|script| PodStatus {
            reason: Some(reason.to_owned()),
            ..fails(&script, main_container::<J>(), code)
        })
    }

    /// A drain or preemption ends the pod. Its container exits with 1 at the SIGTERM, and the pod has the condition
    /// DisruptionTarget.
    pub fn disrupted(self) -> &'h mut PlanHarness<J> {
        self.write(|script| PodStatus {
            conditions: Some(vec![condition("DisruptionTarget", "True")]),
            ..fails(&script, main_container::<J>(), 1)
        })
    }

    /// The pod gets the condition DisruptionTarget with this reason, because the cluster is about to remove it. Its
    /// node is `node-1`.
    pub fn becomes_disruption_target(self, reason: &str) -> &'h mut PlanHarness<J> {
        self.change(|pod, now| {
            pod.spec.get_or_insert_default().node_name = Some("node-1".to_owned());
            let conditions = &mut pod.status.get_or_insert_default().conditions;
            conditions.get_or_insert_default().push(PodCondition {
                reason: Some(reason.to_owned()),
                message: Some("it is taken away".to_owned()),
                last_transition_time: Some(Time(now)),
                ..condition("DisruptionTarget", "True")
            });
        })
    }

    /// All containers exit with 0, and the pod's conditions stay.
    pub fn succeeds_as_it_is_taken(self) -> &'h mut PlanHarness<J> {
        let conditions = self.conditions();
        self.write(|script| PodStatus {
            conditions,
            ..script.succeeds()
        })
    }

    /// The framework's container exits with this code, and the pod's conditions stay.
    pub fn exits_as_it_is_taken(self, code: i32) -> &'h mut PlanHarness<J> {
        let conditions = self.conditions();
        self.write(|script| PodStatus {
            conditions,
            ..fails(&script, main_container::<J>(), code)
        })
    }

    /// The framework's container exits with this code, and the others keep running.
    pub fn main_container_ends(self, code: i32) -> &'h mut PlanHarness<J> {
        self.write(|script| script.container_exits(main_container::<J>(), code))
    }

    /// The kubelet restarts the framework's container, which exited with this code.
    pub fn restarts_in_place(self, code: i32) -> &'h mut PlanHarness<J> {
        self.restarts_in(main_container::<J>(), code)
    }

    /// The kubelet restarts this container, which exited with this code.
    pub fn restarts_in(self, container: &str, code: i32) -> &'h mut PlanHarness<J> {
        self.write(|script| script.restarts(container, code))
    }

    /// An init container fails and is restarted. The pod has not started.
    pub fn init_restarts(self, container: &str, restarts: i32) -> &'h mut PlanHarness<J> {
        self.change(|pod, now| {
            let last_state = Some(PodScript::new(pod, now).terminated(1));
            let status = pod.status.get_or_insert_default();
            status.phase = Some("Pending".to_owned());
            status.init_container_statuses = Some(vec![ContainerStatus {
                name: container.to_owned(),
                restart_count: restarts,
                last_state,
                ..ContainerStatus::default()
            }]);
        })
    }

    /// The pod cannot start, and its containers wait for this reason.
    pub fn waits(self, reason: &str, message: &str) -> &'h mut PlanHarness<J> {
        self.write(|script| script.waits(reason, message))
    }

    /// A scheduler has assigned the pod to a node, which has not started it yet.
    pub fn is_scheduled(self) -> &'h mut PlanHarness<J> {
        self.pends(condition("PodScheduled", "True"))
    }

    /// No node accepts the pod, for this reason.
    pub fn is_not_scheduled(self, reason: &str, message: &str) -> &'h mut PlanHarness<J> {
        self.pends(PodCondition {
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            ..condition("PodScheduled", "False")
        })
    }

    fn pends(self, condition: PodCondition) -> &'h mut PlanHarness<J> {
        let now = Time(self.harness.now);
        self.write(|_| PodStatus {
            phase: Some("Pending".to_owned()),
            conditions: Some(vec![PodCondition {
                last_transition_time: Some(now),
                ..condition
            }]),
            ..PodStatus::default()
        })
    }

    /// A user deletes the pod. A running pod keeps terminating until it is removed.
    pub fn deleted_by_user(self) -> &'h mut PlanHarness<J> {
        self.harness.delete_pod(&self.name);
        self.harness
    }

    /// The pod is deleted and removed at once.
    pub fn vanishes(self) -> &'h mut PlanHarness<J> {
        self.harness.remove_pod(&self.name);
        self.harness
    }

    /// Returns the pod for arbitrary changes.
    pub fn object(self) -> &'h mut Pod {
        self.harness.pods.get_mut(&self.name).expect("the pod is there")
    }

    fn conditions(&self) -> Option<Vec<PodCondition>> {
        self.harness.pods[&self.name].status.clone()?.conditions
    }

    fn write(self, status: impl FnOnce(PodScript<'_>) -> PodStatus) -> &'h mut PlanHarness<J> {
        self.change(|pod, now| pod.status = Some(status(PodScript::new(pod, now))))
    }

    fn change(self, change: impl FnOnce(&mut Pod, Timestamp)) -> &'h mut PlanHarness<J> {
        let now = self.harness.now;
        change(
            self.harness.pods.get_mut(&self.name).expect("the pod is there"),
            now,
        );
        self.harness
    }
}

/// Returns the status of a pod in which this container exits with this code, and all others with 0.
fn fails(script: &PodScript<'_>, container: &str, code: i32) -> PodStatus {
    script.fails(|name| if name == container { code } else { 0 })
}

fn condition(type_: &str, status: &str) -> PodCondition {
    PodCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        ..PodCondition::default()
    }
}
