//! Tests of the progress of replicas.

use serde_json::{Value, json};
use training_job::api::FailureRecord;
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

#[test]
fn restarts_beyond_the_limit_are_not_announced() {
    let mut progress = progress();
    progress.plans[0].backoff_limit = Some(3);
    let line = |text: &str| Some((format!("worker-1 * {text}"), true));
    for (restarts, text) in [
        (0, "exited with 1; restart 1 in 10s"),
        (1, "exited with 1; restart 2 in 10s"),
        (
            2,
            "exited with 1; restart 3 in 10s (fails in the same way each time: 1 more restart, then the job fails)",
        ),
        (3, "exited with 1"),
    ] {
        assert_eq!(
            record(&mut progress, pod(1, restarts, &back_off(), &ended(1))),
            line(text)
        );
    }
}

#[test]
fn the_replica_that_failed_the_job_keeps_its_exit_code_when_it_is_stopped() {
    let mut progress = progress();
    record(&mut progress, pod(0, 4, &ended(143), &ended(1)));
    let failed = json!({"type": "Failed", "status": "True", "reason": "", "message": ""});
    let status = JobStatus {
        conditions: vec![serde_json::from_value(failed).unwrap()],
        restart_count: 3,
        failure: Some(FailureRecord {
            pod: Some("digits-worker-0".to_owned()),
            exit_code: Some(1),
            ..FailureRecord::default()
        }),
        ..JobStatus::default()
    };
    progress.settle([("digits", &status)].into_iter());
    let row = progress.rows()[0].1;
    assert_eq!(row.plain_phase(), "Failed");
    assert_eq!(row.exit_code, Some(1));
    assert_eq!(row.restarts, 3);
}

/// The API keeps the times of conditions a second apart, so they may be in the future.
#[test]
fn the_time_of_a_condition_is_never_in_the_future() {
    let mut progress = progress();
    let condition = json!({
        "type": "Running", "status": "True", "reason": "", "message": "", "lastTransitionTime": "9999-01-01T00:00:00Z",
    });
    let condition = serde_json::from_value(condition).unwrap();
    progress.record(&RunEvent::Condition {
        job: "digits".to_owned(),
        condition,
    });
    let time = progress.conditions("digits")[0]
        .last_transition_time
        .as_ref()
        .unwrap()
        .0;
    assert!(time <= Timestamp::now());
}
