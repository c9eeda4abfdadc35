//! Tests of the progress of replicas.

use serde_json::{Value, json};
use training_job_jax::JAXJob;

use super::*;

/// Returns the pod of a worker. `state` and `last` are those of its container.
fn pod(index: u32, restarts: i32, state: &Value, last: &Value) -> Pod {
    let index_text = index.to_string();
    serde_json::from_value(json!({
        "metadata": {"name": format!("digits-worker-{index}"), "labels": {
            "training.kubeflow.org/operator-name": "jaxjob-controller",
            "training.kubeflow.org/job-name": "digits",
            "training.kubeflow.org/replica-type": "worker",
            "training.kubeflow.org/replica-index": index_text,
        }},
        "spec": {"containers": [{"name": "jax"}]},
        "status": {"phase": "Running", "containerStatuses": [{
            "name": "jax", "image": "", "imageID": "", "ready": true,
            "restartCount": restarts, "state": state, "lastState": last,
        }]},
    }))
    .unwrap()
}

fn running() -> Value {
    json!({"running": {"startedAt": "2024-01-01T00:00:00Z"}})
}

fn ended(code: i32) -> Value {
    json!({"terminated": {"exitCode": code, "containerID": "1", "finishedAt": "2024-01-01T00:00:00Z"}})
}

fn back_off() -> Value {
    let message = "back-off 10s restarting failed container=jax pod=digits-worker-1";
    json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}})
}

fn progress() -> Progress {
    let plan = JobPlan {
        name: "digits".to_owned(),
        pods: (0..3)
            .map(|index| pod(index, 0, &running(), &json!({})))
            .collect(),
        ..JobPlan::default()
    };
    Progress::new(vec![plan], &Kinds::default().kind::<JAXJob>())
}

/// Records a pod. Returns the line and true if it is printed beside a table.
fn record(progress: &mut Progress, pod: Pod) -> Option<(String, bool)> {
    let event = RunEvent::Pod {
        pod: Box::new(pod),
        gone: false,
        dead_end: None,
    };
    let change = progress.record(&event)?;
    Some((
        format!("{} * {}", progress.short(&change.who), change.what),
        change.is_news,
    ))
}

#[test]
fn replicas_in_trouble_have_rows_of_their_own() {
    let mut progress = progress();
    assert_eq!(progress.role_rows()[0].phase, ["3/3 pending"]);
    record(&mut progress, pod(0, 2, &running(), &ended(3)));
    record(&mut progress, pod(1, 1, &back_off(), &ended(3)));
    let [role] = &progress.role_rows()[..] else {
        panic!()
    };
    assert_eq!((role.name.as_str(), role.restarts), ("Worker", 3));
    assert_eq!(role.phase, ["1/3 running", "1 waiting", "1 pending"]);
    let troubled = progress.troubled_rows();
    let shown: Vec<_> = troubled
        .iter()
        .map(|row| (&*row.name, &*row.phase[0], row.exit_code))
        .collect();
    assert_eq!(shown, [("worker-1", "Waiting 10s", Some(3))]);
    assert_eq!(progress.writer_width(), "worker-0".len());
}

#[test]
fn an_end_is_reported_once() {
    let mut progress = progress();
    let line = |text: &str, is_news| Some((format!("worker-1 * {text}"), is_news));
    assert_eq!(
        record(&mut progress, pod(1, 0, &running(), &json!({}))),
        line("Running", false)
    );
    // The restart without a delay is seen, and the end before it is not.
    let again = pod(1, 1, &running(), &ended(3));
    assert_eq!(
        record(&mut progress, again.clone()),
        line("exited with 3; restart 1", true)
    );
    assert_eq!(record(&mut progress, again), None);
    let waits = pod(1, 1, &back_off(), &ended(4));
    assert_eq!(
        record(&mut progress, waits),
        line("exited with 4; restart 2 in 10s", true)
    );
    let again = pod(1, 2, &running(), &ended(4));
    assert_eq!(record(&mut progress, again), line("Running, restart 2", false));
}

#[test]
fn the_exit_code_of_a_stopped_replica_is_that_of_the_frameworks_container() {
    let mut progress = progress();
    let mut pod = pod(0, 0, &ended(0), &Value::Null);
    let status = pod.status.as_mut().unwrap();
    status.phase = Some("Failed".to_owned());
    let containers = status.container_statuses.as_mut().unwrap();
    let mut proxy = containers[0].clone();
    proxy.name = "proxy".to_owned();
    proxy.state = serde_json::from_value(ended(143)).unwrap();
    containers.push(proxy);
    progress.record_pod(&pod, true, None);
    assert_eq!(progress.replicas["digits-worker-0"].exit_code, Some(0));
}
