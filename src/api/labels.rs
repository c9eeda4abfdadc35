//! Keys of labels and annotations, as the Kubeflow training operator v1.8.1 writes them, and ours.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The controller that made the object, such as `tfjob-controller`. All watches select by it.
pub const OPERATOR_NAME: &str = "training.kubeflow.org/operator-name";
/// The job's name.
pub const JOB_NAME: &str = "training.kubeflow.org/job-name";
/// The replica's role in lower case.
pub const REPLICA_TYPE: &str = "training.kubeflow.org/replica-type";
/// The replica's index within its role, from 0.
pub const REPLICA_INDEX: &str = "training.kubeflow.org/replica-index";
/// `master` on the pods whose logs stand for the job's.
pub const JOB_ROLE: &str = "training.kubeflow.org/job-role";

/// Label of a job that starts when Kueue admits it to this queue.
pub const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";

/// The queue that a job with this metadata is in: by its label, or else by the annotation of the same key, as Kueue reads them
/// (`pkg/controller/jobframework/interface.go` of v0.10.1).
pub fn queue(meta: &ObjectMeta) -> Option<&str> {
    let of = [&meta.labels, &meta.annotations].into_iter().flatten();
    let named = of.filter_map(|all: &BTreeMap<_, _>| all.get(QUEUE_NAME));
    named.map(String::as_str).find(|name| !name.is_empty())
}

/// Annotation of a gang's PodGroup: when its scheduler was last told that there may be room.
pub const TOLD_OF_ROOM: &str = "training.kubeflow.org/told-of-room";

/// Annotation of a pod that replaces an earlier one: how many times its replica had been restarted
/// when it was made. Absent means 0, so a job that never failed has the same pods as under the
/// Go operator.
pub const RESTART_ATTEMPT: &str = "training.kubeflow.org/restart-attempt";
