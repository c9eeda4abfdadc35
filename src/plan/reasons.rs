//! The reasons of events, conditions and failure records.
//!
//! The reason of a condition, and of the event about it, has the kind of the job in front: `PyTorchJobRestarting`. The
//! controller composes the reasons of events about children from these parts: `SuccessfulCreatePod`, `FailedDeleteService`.

/// Condition Created: the operator has seen the job.
pub const CREATED: &str = "Created";

/// Condition Running: the job runs.
pub const RUNNING: &str = "Running";

/// Condition Running is False: all replicas have lost their pods or nodes.
pub const NOT_RUNNING: &str = "NotRunning";

/// Condition Restarting, and an event: replicas restart after a failure.
pub const RESTARTING: &str = "Restarting";

/// Condition Restarting, and an event: the whole job restarts because the number of replicas changed.
pub const RESIZED: &str = "Resized";

/// Condition Suspended, and an event: the job is suspended.
pub const SUSPENDED: &str = "Suspended";

/// Condition Suspended is False, and an event: the job is resumed.
pub const RESUMED: &str = "Resumed";

/// Condition Succeeded, and an event: the job has succeeded.
pub const SUCCEEDED: &str = "Succeeded";

/// Condition Failed, and an event: the job has failed.
pub const FAILED: &str = "Failed";

/// Condition Failed, and an event: the job is invalid.
pub const FAILED_VALIDATION: &str = "FailedValidation";

/// Condition HookPanicked, and an event: a hook of the kind panicked.
pub const HOOK_PANICKED: &str = "HookPanicked";

/// Event: the operator replaced invalid values in the status.
pub const STATUS_REPAIRED: &str = "StatusRepaired";

/// Event: the job was deleted at the end of its time to live.
pub const SUCCESSFUL_DELETE_JOB: &str = "SuccessfulDeleteJob";

/// Notice: a restart waits because the last attempts failed soon after their start.
pub const RESTART_BACK_OFF: &str = "RestartBackOff";

/// Notice: the framework's container has ended, and another container keeps its pod running.
pub const CONTAINERS_STILL_RUNNING: &str = "ContainersStillRunning";

/// Notice: a pod of a replica exists, and the job does not control it.
pub const POD_NOT_CONTROLLED: &str = "PodNotControlled";

/// Event: another client changed labels of pods, and the operator restored them.
pub const POD_LABELS_CHANGED: &str = "PodLabelsChanged";

/// Notice: pods still exist after their grace period.
pub const PODS_STUCK_TERMINATING: &str = "PodsStuckTerminating";

/// Notice: services or other objects still exist after their deletion.
pub const OBJECTS_STUCK_TERMINATING: &str = "ObjectsStuckTerminating";

/// Notice: the node of a pod does not respond.
pub const POD_STATE_UNKNOWN: &str = "PodStateUnknown";

/// Notice: the containers of a pod with a node do not start.
pub const POD_NOT_STARTED: &str = "PodNotStarted";

/// Notice: no scheduler has processed a pod.
pub const POD_NOT_SCHEDULED: &str = "PodNotScheduled";

/// Notice: a pod is held back by its scheduling gates.
pub const POD_GATED: &str = "PodGated";

/// Notice: a field of the job keeps an accelerator's addition out.
pub const ACCELERATOR_NOT_ADDED: &str = "AcceleratorNotAdded";

/// Notice of the Go operator: the restart policy of a pod template has no effect.
pub const SET_POD_TEMPLATE_RESTART_POLICY: &str = "SetPodTemplateRestartPolicy";

/// Notice of the Go operator: a pod template names another scheduler than the gang scheduler.
pub const SET_POD_TEMPLATE_SCHEDULER_NAME: &str = "SetPodTemplateSchedulerName";

/// Notice: a PodGroup waits for its queue or for nodes.
pub const POD_GROUP_WAITS: &str = "PodGroupWaits";

/// Notice: some pods have had no node for long while the others occupy theirs.
pub const PARTLY_SCHEDULED: &str = "PartlyScheduled";

/// Condition Stalled, an event, and the failure record of a job that restarts or fails for it: the job makes no progress.
pub const STALLED: &str = "Stalled";

/// Event: a stalled job makes progress again.
pub const ADVANCING: &str = "Advancing";

/// Notice: the operator may not read the output of a replica.
pub const LOGS_DENIED: &str = "LogsDenied";

/// Notice: the output of a replica cannot be read.
pub const LOGS_UNAVAILABLE: &str = "LogsUnavailable";

/// Failure record: the job exceeded its deadline.
pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";

/// Failure record: the job exceeded a limit of restarts.
pub const BACKOFF_LIMIT_EXCEEDED: &str = "BackoffLimitExceeded";

/// Failure record: a pod is gone, and its status does not say why.
pub const POD_DELETED: &str = "PodDeleted";

/// Failure record: a pod failed without a reason.
pub const POD_FAILED: &str = "PodFailed";

/// Failure record: the kubelet restarted a container, and the end of the earlier one is unknown.
pub const CONTAINER_RESTARTED: &str = "ContainerRestarted";

/// Failure record: a container ended without a reason. Kubelets use the same word.
pub const ERROR: &str = "Error";
