//! Keys of labels and annotations: those of the Kubeflow training operator v1.8.1, and those of this operator.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Label of all objects of a job of any kind: the controller that made the object, such as `tfjob-controller`. All watches
/// select by it, so its key is the same for all kinds.
pub const OPERATOR_NAME: &str = "training.kubeflow.org/operator-name";

/// Label of pods by which the plugin coscheduling of a kube-scheduler finds the PodGroup that they are members of.
pub(crate) const POD_GROUP: &str = "scheduling.x-k8s.io/pod-group";

/// The keys of the labels and annotations of a kind's jobs that have the kind's
/// [prefix](crate::job::Framework::key_prefix).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    prefix: &'static str,
}

impl Keys {
    /// The keys of kinds that declare no prefix: `training.kubeflow.org/job-name` and so on.
    pub const DEFAULT: Self = Self::new("training.kubeflow.org");

    /// Returns the keys with this prefix, a DNS name such as `farm.example.com`.
    pub const fn new(prefix: &'static str) -> Self {
        Self { prefix }
    }

    /// Label with the job's name.
    pub fn job_name(self) -> String {
        self.key("job-name")
    }

    /// Label with the replica's role in lower case.
    pub fn replica_type(self) -> String {
        self.key("replica-type")
    }

    /// Label with the replica's index within its role, from 0.
    pub fn replica_index(self) -> String {
        self.key("replica-index")
    }

    /// Label with the value `master` on the pods whose logs represent the job's.
    pub fn job_role(self) -> String {
        self.key("job-role")
    }

    /// Annotation that stands for `field` of a job's spec, such as `training.kubeflow.org/failure-policy` for
    /// `failurePolicy`.
    pub fn annotation_of(self, field: &str) -> String {
        let mut name = String::with_capacity(field.len());
        for letter in field.chars() {
            if letter.is_ascii_uppercase() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        self.key(&name)
    }

    fn key(self, name: &str) -> String {
        [self.prefix, "/", name].concat()
    }
}

/// Returns true if a label of this key may be one that the operator sets on pods, under any prefix. The operator, services
/// or a gang scheduler select pods by it.
pub fn is_own(key: &str) -> bool {
    let name = key.rsplit_once('/').map_or("", |(_, name)| name);
    [
        "pod-group",
        "operator-name",
        "job-name",
        "replica-type",
        "replica-index",
    ]
    .contains(&name)
}

/// Returns a hash that stands for a label, because records of pods must be small. It may differ between releases.
pub(crate) fn fingerprint(key: &str, value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, value).hash(&mut hasher);
    hasher.finish()
}

/// The keys of a pod's labels as texts, because each pod of a job copies them.
#[derive(Clone, Debug)]
pub(crate) struct LabelKeys {
    pub(crate) job_name: String,
    pub(crate) replica_type: String,
    pub(crate) replica_index: String,
}

impl From<Keys> for LabelKeys {
    fn from(keys: Keys) -> Self {
        Self {
            job_name: keys.job_name(),
            replica_type: keys.replica_type(),
            replica_index: keys.replica_index(),
        }
    }
}

/// Label of a job that Kueue's MultiKueue copied here from another cluster.
pub const MULTIKUEUE_ORIGIN: &str = "kueue.x-k8s.io/multikueue-origin";

/// Label of a job that starts when Kueue admits it to this queue.
pub const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";

/// Returns the queue of a job with this metadata: from its label, or else from the annotation of the same key, which
/// Kueue reads before 0.15, and so in the last version that supports MXJob (0.10).
pub fn queue(meta: &ObjectMeta) -> Option<&str> {
    let of = [&meta.labels, &meta.annotations].into_iter().flatten();
    let named = of.filter_map(|all: &BTreeMap<_, _>| all.get(QUEUE_NAME));
    named.map(String::as_str).find(|name| !name.is_empty())
}

/// Annotation of a gang's PodGroup: the time when its scheduler was last notified that there may be capacity.
pub const CAPACITY_FREED_AT: &str = "training.kubeflow.org/capacity-freed-at";

/// The former name of [`CAPACITY_FREED_AT`], which is still read: groups that waited during an upgrade have it.
pub(crate) const FORMER_CAPACITY_FREED_AT: &str = "training.kubeflow.org/told-of-room";

/// Annotation of a pod that replaces an earlier one: the number of restarts of its replica before the pod was
/// created. Missing means 0, so a job that never failed has the same pods as under the Go operator.
pub const RESTART_ATTEMPT: &str = "training.kubeflow.org/restart-attempt";
