//! The progress of jobs and their replicas, as far as it shows the end of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use kube::api::DynamicObject;

use training_job::api::labels::{Keys, OPERATOR_NAME};
use training_job::api::{ConditionStatus, ConditionType, JobStatus};

use super::RunEvent;

/// The default time that sidecars have after the end of a job. It is shorter than in a cluster because a user waits.
pub(super) const SIDECAR_GRACE_PERIOD: Duration = Duration::from_secs(30);

/// The reasons of containers that wait forever: there are no images, and no more objects are created.
const DEAD_ENDS: [&str; 2] = ["ImageCommandUnknown", "CreateContainerConfigError"];

/// The namespace and the name of an object.
pub(super) type Name = (String, String);

#[derive(Debug)]
pub(super) struct Progress {
    /// The keys of the labels of each controller's jobs.
    keys: BTreeMap<&'static str, Keys>,
    jobs: BTreeMap<Name, JobStatus>,
    /// The time that sidecars have after the end of the jobs.
    sidecar_grace_period: Duration,
    /// The replicas whose pods exist.
    replicas: BTreeMap<Name, Replica>,
}

#[derive(Debug)]
struct Replica {
    job: Name,
    /// True if its pod has ended and is not being deleted.
    has_ended: bool,
    /// True if one of its containers has ended while another one runs, and its pod is not being deleted.
    has_sidecar: bool,
    /// The reason that it can never start on this machine, if any.
    dead_end: Option<String>,
}

impl Progress {
    pub(super) fn new(keys: BTreeMap<&'static str, Keys>) -> Self {
        Self {
            keys,
            jobs: BTreeMap::new(),
            sidecar_grace_period: SIDECAR_GRACE_PERIOD,
            replicas: BTreeMap::new(),
        }
    }

    /// Adds a job that should run to its end.
    pub(super) fn add_job(&mut self, job: &DynamicObject) {
        let name = (namespace_of(job), job.name_any());
        self.jobs.insert(name, JobStatus::default());
        let field = "sidecarGracePeriodSeconds";
        let annotation = job.annotations().get(&Keys::DEFAULT.annotation_of(field));
        let own = job.data["spec"]["runPolicy"][field].as_u64();
        let own = own.or_else(|| annotation?.trim().parse().ok());
        let own = own.map(Duration::from_secs);
        self.sidecar_grace_period = self.sidecar_grace_period.max(own.unwrap_or_default());
    }

    /// Records a job's status. Returns an event for each condition that has become true.
    pub(super) fn update_job(&mut self, name: Name, status: JobStatus) -> Vec<RunEvent> {
        let job = name.1.clone();
        let known = self.jobs.insert(name, status.clone()).unwrap_or_default();
        let holds = status.conditions.into_iter();
        holds
            .filter(|c| c.status == ConditionStatus::True && !known.conditions.contains(c))
            .map(|condition| RunEvent::Condition {
                job: job.clone(),
                condition,
            })
            .collect()
    }

    /// Records a pod. Returns the reason that it can never start on this machine, if any.
    pub(super) fn update_pod(&mut self, pod: &Pod, gone: bool) -> Option<String> {
        let namespace = namespace_of(pod);
        let name = (namespace.clone(), pod.name_any());
        if gone {
            self.replicas.remove(&name);
            return None;
        }
        let controller = pod.labels().get(OPERATOR_NAME);
        let keys = controller.and_then(|controller| self.keys.get(&**controller));
        let keys = keys.copied().unwrap_or(Keys::DEFAULT);
        let job = pod.labels().get(&keys.job_name()).cloned().unwrap_or_default();
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let dead_end = dead_end(pod);
        // The run does not wait for pods that are not replicas.
        if pod.labels().contains_key(&keys.replica_type()) {
            let replica = Replica {
                job: (namespace, job),
                has_ended: matches!(phase, Some("Succeeded" | "Failed"))
                    && pod.metadata.deletion_timestamp.is_none(),
                has_sidecar: runs_in_part(pod) && pod.metadata.deletion_timestamp.is_none(),
                dead_end: dead_end.clone(),
            };
            self.replicas.insert(name, replica);
        }
        dead_end
    }

    /// Returns true if every job has ended or will never continue.
    pub(super) fn all_jobs_ended_or_stuck(&self) -> bool {
        let mut jobs = self.jobs.iter();
        jobs.all(|(job, status)| status.is_finished() || self.dead_ends_of(job, status).next().is_some())
    }

    /// Returns true if no replica of a finished job runs any more.
    pub(super) fn all_replicas_ended(&self) -> bool {
        let finished = |replica: &Replica| self.jobs.get(&replica.job).is_some_and(JobStatus::is_finished);
        self.replicas
            .values()
            .all(|replica| replica.has_ended || !finished(replica))
    }

    /// Returns the time that remaining replicas may take: more if they run because of sidecars that finish their work.
    /// The operator ends those that take too long.
    pub(super) fn grace_period(&self, of_others: Duration) -> Duration {
        let works = self.replicas.values().any(|replica| replica.has_sidecar);
        match works {
            true => of_others + self.sidecar_grace_period,
            false => of_others,
        }
    }

    pub(super) fn all_succeeded(&self) -> bool {
        self.jobs
            .values()
            .all(|status| status.is(ConditionType::Succeeded))
    }

    pub(super) fn statuses(&self) -> impl Iterator<Item = (&str, &JobStatus)> {
        self.jobs
            .iter()
            .map(|((_, name), status)| (name.as_str(), status))
    }

    /// Returns the reasons that unfinished jobs will never end.
    pub(super) fn dead_ends(&self) -> Vec<String> {
        let unfinished = self.jobs.iter().filter(|(_, status)| !status.is_finished());
        let why = unfinished.flat_map(|(job, status)| self.dead_ends_of(job, status));
        why.collect()
    }

    fn dead_ends_of<'a>(
        &'a self,
        job: &'a Name,
        status: &JobStatus,
    ) -> impl Iterator<Item = String> + use<'a> {
        let suspended = status.is(ConditionType::Suspended).then(|| {
            let name = &job.1;
            format!("{name} is suspended, and is not resumed on this machine; set `suspend: false`")
        });
        let panicked = status.condition(ConditionType::HookPanicked);
        let panicked = panicked.map(|condition| condition.message.clone());
        suspended.into_iter().chain(panicked).chain(self.stuck(job))
    }

    fn stuck<'a>(&'a self, job: &'a Name) -> impl Iterator<Item = String> + 'a {
        let of_job = self
            .replicas
            .iter()
            .filter(move |(_, replica)| replica.job == *job);
        of_job.filter_map(|((_, pod), replica)| {
            Some(format!("{pod} cannot start: {}", replica.dead_end.as_ref()?))
        })
    }
}

/// Returns true if a container of the pod has ended and another one runs.
fn runs_in_part(pod: &Pod) -> bool {
    let containers = || {
        pod.status
            .iter()
            .flat_map(|status| status.container_statuses.iter().flatten())
    };
    let mut states = containers().filter_map(|container| container.state.as_ref());
    let has_ended = states.any(|state| state.terminated.is_some());
    let mut states = containers().filter_map(|container| container.state.as_ref());
    has_ended && states.any(|state| state.running.is_some())
}

fn dead_end(pod: &Pod) -> Option<String> {
    let containers = || {
        pod.status
            .iter()
            .flat_map(|status| status.container_statuses.iter().flatten())
    };
    if let Some(missing) = containers().find_map(missing_program) {
        return Some(missing);
    }
    let mut waiting = containers().filter_map(|c| c.state.as_ref()?.waiting.as_ref());
    let dead = waiting.find(|w| DEAD_ENDS.iter().any(|end| w.reason.as_deref() == Some(end)))?;
    Some(dead.message.clone().unwrap_or_default())
}

/// Returns the cause if a container waits for a restart after its program could not be started. On one machine a
/// restart changes nothing.
fn missing_program(container: &ContainerStatus) -> Option<String> {
    container.state.as_ref()?.waiting.as_ref()?;
    let end = container.last_state.as_ref()?.terminated.as_ref()?;
    let is_missing = end.container_id.is_none() && matches!(end.exit_code, 126 | 127);
    is_missing.then(|| end.message.clone().unwrap_or_default())
}

pub(crate) fn namespace_of(job: &impl ResourceExt) -> String {
    job.namespace().unwrap_or_else(|| "default".to_owned())
}
