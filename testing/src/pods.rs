//! What kubelets and users do to pods.

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    Pod, PodCondition, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use training_job::TrainingJob;

use crate::world::World;

/// One pod of a story.
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

    /// It runs.
    pub fn running(self) {
        self.set("Running", |_, _| ContainerState {
            running: Some(ContainerStateRunning::default()),
            ..ContainerState::default()
        });
    }

    /// All its containers end with 0.
    pub fn succeeds(self) {
        self.set("Succeeded", |_, now| terminated(0, "Completed", now));
    }

    /// The framework's container ends with this code, all others with 0.
    pub fn exits(self, code: i32) {
        self.exits_in(main_container::<J>(), code);
    }

    /// This container ends with this code, all others with 0.
    pub fn exits_in(self, container: &str, code: i32) {
        self.set("Failed", |name, now| {
            if name == container {
                terminated(code, "Error", now)
            } else {
                terminated(0, "Completed", now)
            }
        });
    }

    /// All its containers end with this code, at once.
    pub fn exits_in_all(self, code: i32) {
        self.set("Failed", |_, now| terminated(code, "Error", now));
    }

    /// The kubelet evicts it for want of memory; it has no container statuses.
    pub fn evicted(self) {
        self.taken("Failed", "Evicted", "The node was low on resource: memory.");
    }

    /// The pod has a phase and a reason of its own, and no container statuses.
    pub fn taken(self, phase: &str, reason: &str, message: &str) {
        self.status().replace(PodStatus {
            phase: Some(phase.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            ..PodStatus::default()
        });
    }

    /// An old kubelet ends it for this reason and sets no condition; its container ends with this code.
    pub fn ends_as_it_is_taken(self, reason: &str, code: i32) {
        self.exited(code).reason = Some(reason.to_owned());
    }

    /// A drain or preemption ends it: its container ends with 1 at the SIGTERM, and the pod has the condition DisruptionTarget.
    pub fn disrupted(self) {
        self.exited(1).conditions = Some(vec![PodCondition {
            type_: "DisruptionTarget".to_owned(),
            status: "True".to_owned(),
            ..PodCondition::default()
        }]);
    }

    /// The framework's container ends with this code. Returns the pod's status for further changes.
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

    /// The kubelet restarts the framework's container, which ended with this code.
    pub fn restarts_in_place(self, code: i32) {
        self.restarts_in(main_container::<J>(), code);
    }

    /// The kubelet restarts this container, which ended with this code.
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

    /// An init container fails and is tried again; the pod has not started.
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

    /// It cannot start.
    pub fn waits(self, reason: &str, message: &str) {
        self.set("Pending", |_, _| ContainerState {
            waiting: Some(ContainerStateWaiting {
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
            }),
            ..ContainerState::default()
        });
    }

    /// A scheduler has found a node for it, which has not started it yet.
    pub fn is_scheduled(self) {
        self.status().replace(PodStatus {
            phase: Some("Pending".to_owned()),
            conditions: Some(vec![PodCondition {
                type_: "PodScheduled".to_owned(),
                status: "True".to_owned(),
                ..PodCondition::default()
            }]),
            ..PodStatus::default()
        });
    }

    /// No node takes it, for this reason.
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

    /// Somebody deletes it: a running pod lingers until it is reaped.
    pub fn deleted_by_user(self) {
        self.world.delete_pod(&self.name);
    }

    /// It is deleted and gone.
    pub fn vanishes(self) {
        self.world.remove_pod(&self.name);
    }

    /// The object, to be changed at will.
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

/// The state of a container that ended.
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

/// The framework's container, as the tests' jobs name it.
pub(crate) fn main_container<J: TrainingJob>() -> &'static str {
    match J::FRAMEWORK.container {
        "" => "main",
        name => name,
    }
}
