//! Changes that kubelets and users make to pods.

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    Pod, PodCondition, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use training_job::TrainingJob;

use crate::world::World;

/// A pod of a [`World`], for changes to it.
pub struct PodHandle<'w, J> {
    world: &'w mut World<J>,
    name: String,
}

impl<'w, J: TrainingJob> PodHandle<'w, J> {
    pub(crate) fn new(world: &'w mut World<J>, name: String) -> Self {
        assert!(
            world.pods.contains_key(&name),
            "no pod {name}; there are {:?}",
            world.pods.keys()
        );
        Self { world, name }
    }

    /// All containers run.
    pub fn running(self) {
        self.set("Running", |_, _| ContainerState {
            running: Some(ContainerStateRunning::default()),
            ..ContainerState::default()
        });
    }

    /// All containers exit with 0.
    pub fn succeeds(self) {
        self.set("Succeeded", |_, now| terminated(0, "Completed", now));
    }

    /// The framework's container exits with this code, and all others exit with 0.
    pub fn exits(self, code: i32) {
        self.exits_in(main_container::<J>(), code);
    }

    /// This container exits with this code, and all others exit with 0.
    pub fn exits_in(self, container: &str, code: i32) {
        self.set("Failed", |name, now| {
            if name == container {
                terminated(code, "Error", now)
            } else {
                terminated(0, "Completed", now)
            }
        });
    }

    /// All containers exit with this code at the same time.
    pub fn exits_in_all(self, code: i32) {
        self.set("Failed", |_, now| terminated(code, "Error", now));
    }

    /// The kubelet evicts the pod because the node is low on memory. The pod has no container statuses.
    pub fn evicted(self) {
        self.taken("Failed", "Evicted", "The node was low on resource: memory.");
    }

    /// The pod gets this phase, reason and message, and no container statuses.
    pub fn taken(self, phase: &str, reason: &str, message: &str) {
        self.status().replace(PodStatus {
            phase: Some(phase.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            ..PodStatus::default()
        });
    }

    /// An old kubelet ends the pod for this reason and sets no condition. The framework's container exits with this
    /// code.
    pub fn ends_as_it_is_taken(self, reason: &str, code: i32) {
        self.exited(code).reason = Some(reason.to_owned());
    }

    /// A drain or preemption ends the pod. Its container exits with 1 at the SIGTERM, and the pod has the condition
    /// DisruptionTarget.
    pub fn disrupted(self) {
        self.exited(1).conditions = Some(vec![PodCondition {
            type_: "DisruptionTarget".to_owned(),
            status: "True".to_owned(),
            ..PodCondition::default()
        }]);
    }

    /// The pod gets the condition DisruptionTarget with this reason, because the cluster is about to remove it. Its
    /// node is `node-1`.
    pub fn becomes_disruption_target(self, reason: &str) {
        let now = Time(self.world.now);
        let pod = self.object();
        pod.spec.get_or_insert_default().node_name = Some("node-1".to_owned());
        let conditions = &mut pod.status.get_or_insert_default().conditions;
        conditions.get_or_insert_default().push(PodCondition {
            type_: "DisruptionTarget".to_owned(),
            status: "True".to_owned(),
            reason: Some(reason.to_owned()),
            message: Some("it is taken away".to_owned()),
            last_transition_time: Some(now),
            ..PodCondition::default()
        });
    }

    /// All containers exit with 0, and the pod's conditions stay.
    pub fn succeeds_as_it_is_taken(self) {
        self.keeping_conditions(|pod| pod.succeeds());
    }

    /// The framework's container exits with this code, and the pod's conditions stay.
    pub fn exits_as_it_is_taken(self, code: i32) {
        self.keeping_conditions(|pod| pod.exits(code));
    }

    fn keeping_conditions(self, change: impl FnOnce(PodHandle<'_, J>)) {
        let Self { world, name } = self;
        let status = |pods: &mut std::collections::BTreeMap<String, Pod>| {
            pods.get_mut(&name)
                .and_then(|pod| pod.status.clone())
                .unwrap_or_default()
        };
        let conditions = status(&mut world.pods).conditions;
        change(PodHandle {
            world: &mut *world,
            name: name.clone(),
        });
        let pod = world.pods.get_mut(&name).expect("the pod is there");
        pod.status.get_or_insert_default().conditions = conditions;
    }

    /// The framework's container exits with this code, and the others keep running.
    pub fn main_container_ends(self, code: i32) {
        let now = Time(self.world.now);
        let main = main_container::<J>();
        let status = self.status().as_mut().expect("the pod runs");
        let mut containers = status.container_statuses.iter_mut().flatten();
        let container = containers.find(|c| c.name == main).expect("it has a status");
        container.state = Some(terminated(code, "Error", &now));
    }

    /// The framework's container exits with this code. Returns the pod's status for further changes.
    fn exited(self, code: i32) -> &'w mut PodStatus {
        let Self { world, name } = self;
        PodHandle {
            world: &mut *world,
            name: name.clone(),
        }
        .exits(code);
        let status = PodHandle { world, name }.status();
        status.as_mut().expect("it has ended")
    }

    /// The kubelet restarts the framework's container, which exited with this code.
    pub fn restarts_in_place(self, code: i32) {
        self.restarts_in(main_container::<J>(), code);
    }

    /// The kubelet restarts this container, which exited with this code.
    pub fn restarts_in(self, container: &str, code: i32) {
        let now = Time(self.world.now);
        let status = self.status().as_mut().expect("the pod runs");
        let all = status
            .container_statuses
            .iter_mut()
            .chain(&mut status.init_container_statuses)
            .flatten();
        let one = all
            .into_iter()
            .find(|c| c.name == container)
            .expect("the container has a status");
        one.restart_count += 1;
        one.last_state = Some(terminated(code, "Error", &now));
    }

    /// An init container fails and is restarted. The pod has not started.
    pub fn init_restarts(self, container: &str, restarts: i32) {
        let now = Time(self.world.now);
        let status = self.status().get_or_insert_default();
        status.phase = Some("Pending".to_owned());
        status.init_container_statuses = Some(vec![ContainerStatus {
            name: container.to_owned(),
            restart_count: restarts,
            last_state: Some(terminated(1, "Error", &now)),
            ..ContainerStatus::default()
        }]);
    }

    /// The pod cannot start, and its containers wait for this reason.
    pub fn waits(self, reason: &str, message: &str) {
        self.set("Pending", |_, _| ContainerState {
            waiting: Some(ContainerStateWaiting {
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
            }),
            ..ContainerState::default()
        });
    }

    /// A scheduler has assigned the pod to a node, which has not started it yet.
    pub fn is_scheduled(self) {
        let now = Time(self.world.now);
        self.status().replace(PodStatus {
            phase: Some("Pending".to_owned()),
            conditions: Some(vec![PodCondition {
                type_: "PodScheduled".to_owned(),
                status: "True".to_owned(),
                last_transition_time: Some(now),
                ..PodCondition::default()
            }]),
            ..PodStatus::default()
        });
    }

    /// No node accepts the pod, for this reason.
    pub fn is_not_scheduled(self, reason: &str, message: &str) {
        let now = Time(self.world.now);
        self.status().replace(PodStatus {
            phase: Some("Pending".to_owned()),
            conditions: Some(vec![PodCondition {
                type_: "PodScheduled".to_owned(),
                status: "False".to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
                last_transition_time: Some(now),
                ..PodCondition::default()
            }]),
            ..PodStatus::default()
        });
    }

    /// A user deletes the pod. A running pod keeps terminating until it is removed.
    pub fn deleted_by_user(self) {
        self.world.delete_pod(&self.name);
    }

    /// The pod is deleted and removed at once.
    pub fn vanishes(self) {
        self.world.remove_pod(&self.name);
    }

    /// Returns the pod for arbitrary changes.
    pub fn object(self) -> &'w mut Pod {
        self.world.pods.get_mut(&self.name).expect("the pod is there")
    }

    fn status(self) -> &'w mut Option<PodStatus> {
        &mut self.object().status
    }

    fn set(self, phase: &str, state: impl Fn(&str, &Time) -> ContainerState) {
        let now = Time(self.world.now);
        let pod = self.object();
        let old = pod.status.take().unwrap_or_default();
        let restarts = |name: &str| {
            let of = old.container_statuses.iter().flatten().find(|c| c.name == name);
            of.map_or((0, None), |c| (c.restart_count, c.last_state.clone()))
        };
        let containers = pod.spec.iter().flat_map(|s| &s.containers).map(|c| {
            let (restart_count, last_state) = restarts(&c.name);
            ContainerStatus {
                name: c.name.clone(),
                state: Some(state(&c.name, &now)),
                restart_count,
                last_state,
                ..ContainerStatus::default()
            }
        });
        pod.status = Some(PodStatus {
            phase: Some(phase.to_owned()),
            container_statuses: Some(containers.collect()),
            init_container_statuses: old.init_container_statuses.clone(),
            ..PodStatus::default()
        });
    }
}

/// Returns the state of a terminated container.
pub fn terminated(code: i32, reason: &str, at: &Time) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: code,
            reason: Some(reason.to_owned()),
            finished_at: Some(at.clone()),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

/// Returns the name of the framework's container, or `main` if the framework has no such name.
pub(crate) fn main_container<J: TrainingJob>() -> &'static str {
    match J::FRAMEWORK.main_container {
        "" => "main",
        name => name,
    }
}
