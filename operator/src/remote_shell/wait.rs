//! Waits for a container that can run a command.

use std::time::Duration;

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::wait::{Error, await_condition};
use kube::{Api, ResourceExt};
use tokio::time::{Instant, sleep, timeout_at};

use training_job_cli::cluster::with_timeout;

/// The maximum time to wait for a missing pod or an unreachable server.
const ABSENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// The delay before a request to an unreachable server is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The annotation that names the default container for commands.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The state of a pod, as far as commands are concerned.
#[derive(Debug, PartialEq, Eq)]
enum ContainerState {
    PodMissing,
    /// The container does not run yet, or is between two runs.
    NotRunning,
    Running,
    PodEnded,
}

/// Waits until the container runs, and returns its name.
///
/// # Errors
/// The pod is missing for a minute, has ended, or lacks the container, or the server rejects the request.
pub(super) async fn wait_until_running(
    pods: &Api<Pod>,
    name: &str,
    container: Option<&str>,
) -> anyhow::Result<String> {
    let mut deadline = Instant::now() + ABSENCE_TIMEOUT;
    loop {
        match with_timeout(pods.get_opt(name)).await {
            Ok(Ok(pod)) => match container_state(pod.as_ref(), container) {
                ContainerState::Running => return container_name(pod.as_ref(), container),
                ContainerState::PodEnded => bail!("the pod has ended"),
                ContainerState::NotRunning => {
                    container_name(pod.as_ref(), container)?;
                    note(name, "the container is not running yet");
                    let changed =
                        |pod: Option<&Pod>| container_state(pod, container) != ContainerState::NotRunning;
                    let seen = await_condition(pods.clone(), name, changed).await;
                    deadline = Instant::now() + ABSENCE_TIMEOUT;
                    check_deadline(deadline, seen)?;
                }
                ContainerState::PodMissing => {
                    note(name, "the pod does not exist yet");
                    let is_there = await_condition(pods.clone(), name, |pod: Option<&Pod>| pod.is_some());
                    let Ok(ended) = timeout_at(deadline, is_there).await else {
                        bail!("the pod does not exist");
                    };
                    check_deadline(deadline, ended)?;
                }
            },
            Ok(Err(kube::Error::Api(status))) if status.code < 500 => bail!("{}", status.message),
            Ok(Err(error)) if Instant::now() >= deadline => return Err(error.into()),
            Err(error) if Instant::now() >= deadline => return Err(error),
            _ => sleep(RETRY_DELAY).await,
        }
    }
}

/// Prints the reason for the delay.
fn note(name: &str, why: &str) {
    anstream::eprintln!("training-operator: waiting for {name}: {why}");
}

/// Returns an error only after the deadline. A watch of a pod ends with the server, which may come back.
fn check_deadline(deadline: Instant, ended: Result<Option<Pod>, Error>) -> anyhow::Result<()> {
    match ended {
        Err(error) if Instant::now() >= deadline => Err(error).context("cannot watch the pod"),
        _ => Ok(()),
    }
}

/// Returns the state of the pod. A container that was restarted in the pod runs again.
fn container_state(pod: Option<&Pod>, container: Option<&str>) -> ContainerState {
    let Some(pod) = pod else {
        return ContainerState::PodMissing;
    };
    let Some(status) = &pod.status else {
        return ContainerState::NotRunning;
    };
    if ["Succeeded", "Failed"].contains(&status.phase.as_deref().unwrap_or_default()) {
        return ContainerState::PodEnded;
    }
    let name = container_name(Some(pod), container).unwrap_or_default();
    let mut statuses = status.container_statuses.iter().flatten();
    let state = statuses
        .find(|status| status.name == name)
        .and_then(|status| status.state.as_ref());
    match state.is_some_and(|state| state.running.is_some()) {
        true => ContainerState::Running,
        false => ContainerState::NotRunning,
    }
}

/// Returns the name of the container for the command.
///
/// # Errors
/// The pod has no container of this name.
fn container_name(pod: Option<&Pod>, container: Option<&str>) -> anyhow::Result<String> {
    let annotation = pod.and_then(|pod| pod.annotations().get(DEFAULT_CONTAINER));
    let wanted = container.or(annotation.map(String::as_str));
    let mut all = pod
        .and_then(|pod| pod.spec.as_ref())
        .into_iter()
        .flat_map(|spec| &spec.containers);
    let found = all.find(|one| wanted.is_none_or(|wanted| one.name == wanted));
    match found {
        Some(found) => Ok(found.name.clone()),
        None => bail!("the pod has no container {}", wanted.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(annotations: Value, status: Value) -> Option<Pod> {
        let containers = json!([{"name": "mpi"}, {"name": "proxy"}]);
        let pod = json!({
            "metadata": {"annotations": annotations}, "spec": {"containers": containers}, "status": status,
        });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn the_selected_container_must_run() {
        let running = |name: &str| json!({"name": name, "state": {"running": {}}});
        let statuses = |list: Value| json!({"phase": "Running", "containerStatuses": list});
        let proxy = pod(json!({}), statuses(json!([running("proxy")])));
        assert_eq!(container_state(proxy.as_ref(), None), ContainerState::NotRunning);
        assert_eq!(
            container_state(proxy.as_ref(), Some("proxy")),
            ContainerState::Running
        );
        let annotated = pod(
            json!({DEFAULT_CONTAINER: "proxy"}),
            statuses(json!([running("proxy")])),
        );
        assert_eq!(container_state(annotated.as_ref(), None), ContainerState::Running);
        assert_eq!(
            container_state(annotated.as_ref(), Some("mpi")),
            ContainerState::NotRunning
        );
        let restarts = json!({"name": "mpi", "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
        assert_eq!(
            container_state(pod(json!({}), statuses(json!([restarts]))).as_ref(), None),
            ContainerState::NotRunning
        );
    }

    #[test]
    fn a_pod_that_has_ended_is_not_awaited() {
        for phase in ["Succeeded", "Failed"] {
            assert_eq!(
                container_state(pod(json!({}), json!({"phase": phase})).as_ref(), None),
                ContainerState::PodEnded
            );
        }
        assert_eq!(container_state(None, None), ContainerState::PodMissing);
        assert_eq!(
            container_state(pod(json!({}), Value::Null).as_ref(), None),
            ContainerState::NotRunning
        );
    }

    #[test]
    fn a_missing_container_is_named() {
        let pod = pod(json!({}), json!({}));
        let wrong = container_name(pod.as_ref(), Some("mpirun"))
            .unwrap_err()
            .to_string();
        assert_eq!(wrong, "the pod has no container mpirun");
        assert_eq!(container_name(pod.as_ref(), None).unwrap(), "mpi");
    }
}
