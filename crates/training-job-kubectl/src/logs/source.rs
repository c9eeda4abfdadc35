//! The containers whose logs are printed (pure).

use anyhow::bail;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::Args;
use crate::observe::ObservedJob;
use crate::stored::StoredJob;

/// The replicas and the container that the arguments select.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    roles: Vec<String>,
    replicas: Vec<String>,
    container: Option<String>,
}

/// A run of a container, from its start to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// `<role in lower case>-<index>`.
    pub(super) replica: String,
    pub(super) pod: String,
    pub(super) uid: String,
    pub(super) container: String,
    /// The number of restarts by the kubelet before this run.
    pub(super) restarts: i32,
    /// True if the container or its pod failed.
    pub(super) is_failed: bool,
}

impl Selection {
    /// Reads the selection of replicas.
    ///
    /// # Errors
    /// The job has no such role or replica.
    pub(super) fn new(arguments: &Args, job: &StoredJob) -> anyhow::Result<Self> {
        let selection = Self {
            roles: arguments.role.iter().map(|role| role.to_lowercase()).collect(),
            replicas: arguments
                .replica
                .iter()
                .map(|replica| replica.to_lowercase())
                .collect(),
            container: arguments.container.clone(),
        };
        let Ok(outline) = &job.outline else {
            return Ok(selection);
        };
        let roles = || outline.roles.iter().filter(|role| role.replicas > 0);
        let slugs: Vec<&str> = roles().map(|role| role.slug.as_str()).collect();
        if let Some(unknown) = selection
            .roles
            .iter()
            .find(|role| !slugs.contains(&role.as_str()))
        {
            bail!(
                "--role {unknown}: the job has no such role with replicas; use one of {}",
                slugs.join(", ")
            );
        }
        let exists = |replica: &String| {
            let parts = replica
                .rsplit_once('-')
                .and_then(|(role, index)| Some((role, index.parse::<u32>().ok()?)));
            parts.is_some_and(|(role, index)| roles().any(|own| own.slug == role && index < own.replicas))
        };
        if let Some(unknown) = selection.replicas.iter().find(|replica| !exists(replica)) {
            let all: Vec<String> = roles()
                .map(|role| format!("{}-0 to {0}-{}", role.slug, role.replicas - 1))
                .collect();
            bail!(
                "--replica {unknown}: the job has no such replica; it has {}",
                all.join(", ")
            );
        }
        Ok(selection)
    }

    fn has(&self, role: &str, replica: &str) -> bool {
        let any = self.roles.is_empty() && self.replicas.is_empty();
        any || self.roles.iter().any(|own| own == role) || self.replicas.iter().any(|own| own == replica)
    }
}

/// Returns the container of a pod whose log is printed, if the pod is selected and the container has started.
pub(super) fn sources(pod: &Pod, observed: &ObservedJob, selection: &Selection) -> Option<Source> {
    let keys = observed.job.kind.framework.keys();
    let labels = pod.metadata.labels.as_ref()?;
    let role = labels.get(&keys.replica_type())?.as_str();
    let index = labels.get(&keys.replica_index()).map_or("0", String::as_str);
    let replica = format!("{role}-{index}");
    if !selection.has(role, &replica) {
        return None;
    }
    let outline = observed.job.outline.as_ref().ok();
    let main = outline.and_then(|outline| {
        let role = outline.roles.iter().find(|own| own.slug == role)?;
        role.main_container.as_deref()
    });
    let first = pod
        .spec
        .as_ref()?
        .containers
        .first()
        .map(|container| container.name.as_str());
    let container = selection.container.as_deref().or(main).or(first)?;
    let status = pod.status.as_ref()?;
    let mut all = [&status.container_statuses, &status.init_container_statuses]
        .into_iter()
        .flatten()
        .flatten();
    let status_of: &ContainerStatus = all.find(|status| status.name == container)?;
    let state = status_of.state.as_ref();
    let ended = state.and_then(|state| state.terminated.as_ref());
    let runs = state.is_some_and(|state| state.running.is_some());
    let has_log = runs || ended.is_some() || status_of.restart_count > 0;
    has_log.then(|| Source {
        replica,
        pod: pod.metadata.name.clone().unwrap_or_default(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        container: container.to_owned(),
        restarts: status_of.restart_count,
        is_failed: ended.is_some_and(|ended| ended.exit_code != 0)
            || status.phase.as_deref() == Some("Failed")
            || !runs && ended.is_none(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use training_job_mxnet::MXJob;

    use super::*;
    use training_job_review::Kinds;

    fn job() -> ObservedJob {
        let role = json!({"replicas": 2, "restartPolicy": "Never", "template": {"spec": {"containers": [
            {"name": "proxy", "image": "i"}, {"name": "mxnet", "image": "i"},
        ]}}});
        let object = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "MXJob",
            "metadata": {"name": "train", "namespace": "ml", "uid": "u"},
            "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {"Worker": role}},
        });
        let kinds = Kinds::default().kind::<MXJob>();
        ObservedJob {
            job: StoredJob::of_value(&kinds[0], object),
            pods: Vec::new(),
            events: Vec::new(),
            forbidden: Vec::new(),
            now: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    /// Returns the run of the selected container of worker 1, whose containers are in these states.
    fn source(
        container: Option<&str>,
        replicas: &[&str],
        state: serde_json::Value,
        restarts: i32,
    ) -> Option<Source> {
        let status = |name: &str| json!({"name": name, "image": "i", "imageID": "i", "ready": true, "restartCount": restarts, "state": state});
        let pod = json!({
            "metadata": {"name": "train-worker-1", "uid": "p", "labels": {
                "training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "1",
            }},
            "spec": {"containers": [{"name": "proxy"}, {"name": "mxnet"}]},
            "status": {"phase": "Running", "containerStatuses": [status("proxy"), status("mxnet")]},
        });
        let selection = Selection {
            roles: Vec::new(),
            replicas: replicas.iter().map(|replica| (*replica).to_owned()).collect(),
            container: container.map(str::to_owned),
        };
        sources(&serde_json::from_value(pod).unwrap(), &job(), &selection)
    }

    #[test]
    fn a_log_is_that_of_the_frameworks_container_once_it_has_started() {
        let runs = || json!({"running": {}});
        let found = source(None, &[], runs(), 0).unwrap();
        assert_eq!(&*found.replica, "worker-1");
        assert_eq!(&*found.container, "mxnet");
        assert!(!found.is_failed);
        assert_eq!(source(Some("proxy"), &[], runs(), 0).unwrap().container, "proxy");
        assert_eq!(source(Some("none"), &[], runs(), 0), None);
        assert_eq!(source(None, &["worker-0"], runs(), 0), None);
        assert!(source(None, &["worker-1"], runs(), 0).is_some());
        let waits = || json!({"waiting": {"reason": "ContainerCreating"}});
        assert_eq!(source(None, &[], waits(), 0), None);
        // A container that waits for its restart has failed, and the log of its last run can be read.
        assert!(source(None, &[], waits(), 1).unwrap().is_failed);
        let ended = |code: i32| json!({"terminated": {"exitCode": code}});
        assert!(!source(None, &[], ended(0), 0).unwrap().is_failed);
        assert!(source(None, &[], ended(3), 0).unwrap().is_failed);
    }
}
