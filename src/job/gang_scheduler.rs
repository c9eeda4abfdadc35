//! Schedulers that bind either all pods of a job or none.

use super::{ObjectKind, Role};

/// The gang scheduler of a cluster. A PodGroup represents each job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GangScheduler {
    /// Volcano. The phase of the group determines when pods may be created.
    Volcano,
    /// The coscheduling plugin of scheduler-plugins, in a scheduler with this name. Pods are created immediately.
    Coscheduling(String),
}

impl GangScheduler {
    /// Returns the scheduler for a name, as in the Go operator's `--gang-scheduler-name`: `None` for an empty name,
    /// Volcano for its name in any case, and otherwise coscheduling in a scheduler with this name.
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

    /// Returns the name of the scheduler, as in pods.
    pub fn name(&self) -> &str {
        match self {
            Self::Volcano => "volcano",
            Self::Coscheduling(name) => name,
        }
    }

    /// Returns the kind of its PodGroups.
    pub const fn pod_group(&self) -> ObjectKind {
        match self {
            Self::Volcano => ObjectKind::new("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups"),
            Self::Coscheduling(_) => {
                ObjectKind::new("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups")
            }
        }
    }

    /// Returns true if this scheduler binds the pods of the role, because its template names no other scheduler, and it is
    /// not [outside of the gang](super::RoleDefinition::outside_gang).
    pub(crate) fn binds(&self, role: &Role<'_>) -> bool {
        let named = role.template().spec.as_ref();
        let named = named.and_then(|spec| spec.scheduler_name.as_deref());
        role.definition.in_gang && named.is_none_or(|named| named.is_empty() || named == self.name())
    }
}
