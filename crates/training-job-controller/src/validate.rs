//! Step 2: validates a job, and chooses its kind of plan by the result.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use training_job::api::JobStatus;
use training_job::job::{Settings, Topology};
use training_job::plan::observed::Observed;
use training_job::plan::{self, Plan, PlannedPod, StatusChange};
use training_job::validate::{ValidJob, other_manager, validate_again, validate_any};

use super::cache::stored_job::StoredJob;

/// The result of validating a job.
pub(crate) enum Validated<'a> {
    /// The job belongs to another controller, or it is being deleted and the garbage collector deletes its children.
    /// `news` is true if its kind has a different status for it then.
    LeftAlone {
        news: bool,
    },
    Valid(Box<ValidJob<'a>>),
    /// The job cannot run in its current form.
    Invalid {
        name: &'a str,
        /// The seconds from its end to its deletion, if that field could be decoded.
        ttl: Option<i64>,
        problem: String,
    },
}

impl<'a> Validated<'a> {
    /// Validates the job. The size of the replicas' environments and the rules of the kind itself are checked once
    /// for each version of the spec.
    pub(crate) fn of(stored: &'a StoredJob, settings: &Settings) -> Self {
        if stored.meta().deletion_timestamp.is_some() {
            let status = stored.status();
            let change = stored.status_change(&status, &status, None);
            return Self::LeftAlone {
                news: change.is_ok_and(|change| change.as_object().is_some_and(|change| !change.is_empty())),
            };
        }
        let name = stored.meta().name.as_deref().unwrap_or_default();
        let (kind, job, valid) = match stored {
            StoredJob::Job { kind, job, valid, .. } => (kind, job, valid),
            StoredJob::Unreadable { error, .. } => {
                return Self::Invalid {
                    name,
                    ttl: None,
                    problem: error.clone(),
                };
            }
        };
        // The settings do not change during the life of the process.
        let checked = match valid.get() {
            None => validate_any(kind, &**job, settings),
            Some(()) => validate_again(kind, &**job, settings),
        };
        match checked {
            Ok(checked) => {
                valid.get_or_init(|| ());
                Self::Valid(Box::new(checked))
            }
            Err(_) if other_manager(&**job).is_some() => Self::LeftAlone { news: false },
            Err(errors) => Self::Invalid {
                name,
                ttl: job.run_policy().ttl_seconds_after_finished.map(i64::from),
                problem: errors.to_string(),
            },
        }
    }

    /// Lets the hooks of a valid job read the contents of these objects.
    pub(crate) fn reading(mut self, observed: &Observed) -> Self {
        if let Self::Valid(job) = &mut self {
            job.read_contents(observed);
        }
        self
    }

    /// Returns the topology of a valid job.
    pub(crate) fn topology(&self) -> Option<&Topology<'_>> {
        match self {
            Self::Valid(job) => Some(&job.topology),
            Self::LeftAlone { .. } | Self::Invalid { .. } => None,
        }
    }

    /// Returns the pod for a planned pod; `None` unless the job is valid.
    pub(crate) fn render(&self, pod: &PlannedPod) -> Option<Pod> {
        match self {
            Self::Valid(job) => pod.render(job),
            Self::LeftAlone { .. } | Self::Invalid { .. } => None,
        }
    }

    /// Plans the job. `status` is its stored status. The plan replaces those of its fields that have invalid values.
    pub(crate) fn plan(
        &self,
        job: &StoredJob,
        status: &JobStatus,
        observed: &Observed,
        now: Timestamp,
    ) -> Plan {
        let kind = job.kind().name();
        let mut plan = match self {
            Self::LeftAlone { news } => Plan {
                status: news.then(|| StatusChange::urgent(status.clone())),
                ..Plan::default()
            },
            Self::Valid(job) => plan::plan(job, observed, now),
            Self::Invalid { name, ttl, problem } => {
                plan::invalid(kind, name, status, *ttl, problem, observed, now)
            }
        };
        let leaves_alone = match self {
            Self::LeftAlone { .. } => true,
            Self::Valid(job) => job.policy.is_for_another_controller,
            Self::Invalid { .. } => false,
        };
        if !leaves_alone {
            plan.repair_status(kind, status, job.unsound());
        }
        plan
    }
}
