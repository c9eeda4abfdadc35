//! Schedulers that bind the pods of a job together or not at all.

use k8s_openapi::api::core::v1::PodSpec;

use super::ObjectKind;

/// The gang scheduler of a cluster: it is told of each job by a PodGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GangScheduler {
    /// Volcano, which says by the group's phase when pods may be made.
    Volcano,
    /// The coscheduling plugin of scheduler-plugins, in a scheduler of this name. Pods are made at once.
    Coscheduling(String),
}

impl GangScheduler {
    /// The one that a word stands for, as in the Go operator's `--gang-scheduler-name`: none for an empty one, Volcano for
    /// its name in any case, and else the scheduler of this name.
    ///
    /// ```
    /// use training_job::GangScheduler;
    ///
    /// assert_eq!(GangScheduler::named(""), None);
    /// assert_eq!(GangScheduler::named("Volcano"), Some(GangScheduler::Volcano));
    /// assert_eq!(GangScheduler::named("my-scheduler").unwrap().name(), "my-scheduler");
    /// ```
    pub fn named(word: &str) -> Option<Self> {
        match word.to_lowercase().as_str() {
            "" => None,
            "volcano" => Some(Self::Volcano),
            _ => Some(Self::Coscheduling(word.to_owned())),
        }
    }

    /// The scheduler's name, as pods have it.
    pub fn name(&self) -> &str {
        match self {
            Self::Volcano => "volcano",
            Self::Coscheduling(name) => name,
        }
    }

    /// The kind of its groups.
    pub const fn pod_group(&self) -> ObjectKind {
        match self {
            Self::Volcano => ObjectKind::new("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups"),
            Self::Coscheduling(_) => {
                ObjectKind::new("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups")
            }
        }
    }

    /// Whether pods of this template are its to bind: no other scheduler is named.
    pub(crate) fn binds(&self, template: Option<&PodSpec>) -> bool {
        let named = template.and_then(|spec| spec.scheduler_name.as_deref());
        named.is_none_or(|named| named.is_empty() || named == self.name())
    }
}
