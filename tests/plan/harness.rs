//! The harnesses of the tests.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, PodSpec};
use training_job::{Settings, validate};
use training_job_testbed::{ELASTIC, ToyJob};

pub(crate) type PlanHarness = training_job_testbed::PlanHarness<ToyJob>;

/// A change of the cluster.
pub(crate) type Act = fn(&mut PlanHarness) -> &mut PlanHarness;

pub(crate) trait Stories {
    /// Creates a harness with a job of these roles, such as `Scheduler=1 Worker=2:OnFailure`, and these fields of its
    /// run policy.
    fn train(roles: &str, run_policy: &str) -> Self;

    /// Lets the replicas of the job come and go.
    fn elastic(self) -> Self;

    /// Edits the pod templates of all roles.
    fn edit_pods(&mut self, change: impl Fn(&mut PodSpec)) -> &mut Self;

    /// Gives all pods a container of this name, before the framework's or after it.
    fn with_container(self, name: &str, is_first: bool) -> Self;

    /// Returns the end of the first container of a replica's pod.
    fn end_of(&mut self, replica: &str) -> &mut ContainerStateTerminated;

    /// Returns the errors of the job; empty if it is valid.
    fn errors(&self) -> Vec<String>;
}

/// Returns the notices of the plan, each as its reason and message.
pub(crate) fn notices(w: &PlanHarness) -> Vec<String> {
    let all = w.plan().notices.into_iter();
    all.map(|n| format!("{}: {}", n.reason, n.message)).collect()
}

impl Stories for PlanHarness {
    fn train(roles: &str, run_policy: &str) -> Self {
        Self::with(roles, &format!("runPolicy: {{{run_policy}}}"))
    }

    fn elastic(mut self) -> Self {
        let annotations = self.job.metadata.annotations.get_or_insert_default();
        annotations.insert(ELASTIC.to_owned(), String::new());
        self
    }

    fn edit_pods(&mut self, change: impl Fn(&mut PodSpec)) -> &mut Self {
        self.edit(|job| {
            for role in job.spec.replica_specs.values_mut().flatten() {
                change(role.template.spec.get_or_insert_default());
            }
        })
    }

    fn with_container(mut self, name: &str, is_first: bool) -> Self {
        self.edit_pods(|spec| {
            let mut container = spec.containers[0].clone();
            container.name = name.to_owned();
            spec.containers.insert(usize::from(!is_first), container);
        });
        self
    }

    fn end_of(&mut self, replica: &str) -> &mut ContainerStateTerminated {
        let status = self.pod(replica).object().status.as_mut().unwrap();
        let container = &mut status.container_statuses.as_mut().unwrap()[0];
        container.state.as_mut().unwrap().terminated.as_mut().unwrap()
    }

    fn errors(&self) -> Vec<String> {
        let found = validate(&self.job, &Settings::default())
            .err()
            .unwrap_or_default();
        found.iter().map(ToString::to_string).collect()
    }
}
