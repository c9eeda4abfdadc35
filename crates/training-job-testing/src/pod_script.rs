//! The statuses that kubelets write.

#![expect(
    clippy::panic,
    reason = "tests call this module, and a panic is how a test fails"
)]

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    Pod, PodCondition, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A pod and a time, and the status that a kubelet writes for each event in the pod's life.
///
/// Restart counts and the statuses of init containers stay as they are.
///
/// ```
/// use jiff::Timestamp;
/// use k8s_openapi::api::core::v1::Pod;
/// use training_job_testing::PodScript;
///
/// let mut pod = Pod::default();
/// pod.status = Some(PodScript::new(&pod, Timestamp::UNIX_EPOCH).runs());
/// let evicted = PodScript::new(&pod, Timestamp::UNIX_EPOCH).evicted();
/// assert_eq!(evicted.reason.as_deref(), Some("Evicted"));
/// ```
#[derive(Clone, Debug)]
pub struct PodScript<'p> {
    pod: &'p Pod,
    now: Time,
}

impl<'p> PodScript<'p> {
    /// Creates the script of a pod at this time.
    pub fn new(pod: &'p Pod, now: Timestamp) -> Self {
        Self { pod, now: Time(now) }
    }

    /// All containers run and are ready.
    pub fn runs(&self) -> PodStatus {
        self.containers("Running", true, |_| self.running())
    }

    /// All containers run, and none is ready: their readiness probes have not succeeded yet.
    pub fn starts(&self) -> PodStatus {
        self.containers("Running", false, |_| self.running())
    }

    /// All containers exit with 0.
    pub fn succeeds(&self) -> PodStatus {
        self.containers("Succeeded", false, |_| self.terminated(0))
    }

    /// Each container exits with the code for its name, and the pod fails.
    pub fn fails(&self, code: impl Fn(&str) -> i32) -> PodStatus {
        self.containers("Failed", false, |name| self.terminated(code(name)))
    }

    /// The kubelet evicts the pod because the node is low on memory. The status has no containers.
    pub fn evicted(&self) -> PodStatus {
        PodStatus {
            phase: Some("Failed".to_owned()),
            reason: Some("Evicted".to_owned()),
            message: Some("The node was low on resource: memory.".to_owned()),
            start_time: Some(self.start_time()),
            ..PodStatus::default()
        }
    }

    /// All containers wait for this reason.
    pub fn waits(&self, reason: &str, message: &str) -> PodStatus {
        self.containers("Pending", false, |_| ContainerState {
            waiting: Some(ContainerStateWaiting {
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
            }),
            ..ContainerState::default()
        })
    }

    /// The kubelet restarts this container or init container, which exited with this code.
    ///
    /// # Panics
    /// Panics if the pod has no status of the container.
    pub fn restarts(&self, container: &str, code: i32) -> PodStatus {
        self.changed(container, |one| {
            one.restart_count += 1;
            one.last_state = Some(self.terminated(code));
        })
    }

    /// This container exits with this code, and the others stay as they are.
    ///
    /// # Panics
    /// Panics if the pod has no status of the container.
    pub fn container_exits(&self, container: &str, code: i32) -> PodStatus {
        self.changed(container, |one| one.state = Some(self.terminated(code)))
    }

    /// Returns the state of a container that exited with this code.
    pub fn terminated(&self, code: i32) -> ContainerState {
        let reason = if code == 0 { "Completed" } else { "Error" };
        ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code: code,
                reason: Some(reason.to_owned()),
                finished_at: Some(self.now.clone()),
                ..ContainerStateTerminated::default()
            }),
            ..ContainerState::default()
        }
    }

    fn running(&self) -> ContainerState {
        ContainerState {
            running: Some(ContainerStateRunning {
                started_at: Some(self.now.clone()),
            }),
            ..ContainerState::default()
        }
    }

    fn start_time(&self) -> Time {
        let status = self.pod.status.as_ref();
        let started = status.and_then(|status| status.start_time.clone());
        started.unwrap_or_else(|| self.now.clone())
    }

    fn changed(&self, container: &str, change: impl FnOnce(&mut ContainerStatus)) -> PodStatus {
        let mut status = self.pod.status.clone().unwrap_or_default();
        let containers = status.container_statuses.iter_mut();
        let mut all = containers.chain(&mut status.init_container_statuses).flatten();
        match all.find(|one| one.name == container) {
            Some(one) => change(one),
            None => panic!("the pod has no status of container {container}"),
        }
        status
    }

    fn containers(&self, phase: &str, ready: bool, state: impl Fn(&str) -> ContainerState) -> PodStatus {
        let old = self.pod.status.clone().unwrap_or_default();
        let containers = self.pod.spec.iter().flat_map(|spec| &spec.containers);
        let containers = containers.map(|container| {
            let mut before = old.container_statuses.iter().flatten();
            let before = before.find(|before| before.name == container.name);
            let image = container.image.clone().unwrap_or_default();
            ContainerStatus {
                name: container.name.clone(),
                state: Some(state(&container.name)),
                image_id: image.clone(),
                image,
                ready,
                started: Some(phase == "Running"),
                restart_count: before.map_or(0, |before| before.restart_count),
                last_state: before.and_then(|before| before.last_state.clone()),
                ..ContainerStatus::default()
            }
        });
        PodStatus {
            phase: Some(phase.to_owned()),
            start_time: Some(self.start_time()),
            container_statuses: Some(containers.collect()),
            init_container_statuses: old.init_container_statuses.clone(),
            conditions: Some(vec![PodCondition {
                type_: "Ready".to_owned(),
                status: if ready { "True" } else { "False" }.to_owned(),
                last_transition_time: Some(self.now.clone()),
                ..PodCondition::default()
            }]),
            ..PodStatus::default()
        }
    }
}
