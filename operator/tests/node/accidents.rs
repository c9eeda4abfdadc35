//! Processes and pods that fail.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::job::{RUN, TRAINS, each_pod, pod, script, small};
use crate::stage::{Stage, is};
use crate::times;

#[tokio::test]
async fn a_killed_process() {
    let stage = Stage::new("killed").await;
    let job = small("killed");
    stage.create(&job).await;
    stage.condition(&job, "Running").await;
    let (scheduler, _) = stage.prints("killed-scheduler-0", TRAINS, None).await;
    let (worker, _) = stage.prints("killed-worker-1", TRAINS, None).await;
    let killed = stage.kill(&worker).await;
    // All replicas restart, because the others of a synchronous training would hang.
    stage.prints("killed-scheduler-0", TRAINS, Some(&scheduler)).await;
    let (_, again) = stage.prints("killed-worker-1", TRAINS, Some(&worker)).await;
    times::record("small job: worker killed -> trains again", killed, again);
    let status = stage.restarted(&job, 1).await;
    let failure = &status["failure"];
    assert_eq!(failure["summary"], "worker-1: exit 137", "{status:#}");
    assert_eq!(failure["signal"], 9, "{status:#}");
    let message = stage.event(&job, "MXJobRestarting").await;
    assert!(message.contains("Worker"), "{message}");
    stage.condition(&job, "Running").await;
    let columns = stage.columns(&job).await;
    assert_eq!(columns["STATE"], "Running", "{columns:?}");
    assert_eq!(columns["RESTARTS"], "1", "{columns:?}");
    assert_eq!(columns["FAILURE"], "worker-1: exit 137", "{columns:?}");
}

/// The kubelet's log is read, and the stopped process does not end when it is asked to.
#[tokio::test]
async fn a_stopped_process() {
    let stage = Stage::new("stopped").await;
    let mut job = small("stopped");
    job["spec"]["runPolicy"]["progress"] = json!({"stalledAfterSeconds": 15, "onStall": "Restart"});
    let prints = "step=0; while sleep 1; do step=$((step + 1)); echo step $step/1000; done";
    script(&mut job, "Worker", prints);
    stage.create(&job).await;
    let progress = |status: &Value| status["progress"]["total"] == 1000;
    stage.until(&job, progress).await;
    let (worker, _) = stage.prints("stopped-worker-0", "step", None).await;
    let stopped = stage.signal(&worker, "SIGSTOP").await;
    let status = stage.restarted(&job, 1).await;
    let failure = &status["failure"];
    assert_eq!(failure["reason"], "Stalled", "{status:#}");
    let (_, again) = stage.prints("stopped-worker-0", "step", Some(&worker)).await;
    times::record("small job: worker stopped -> trains again", stopped, again);
    let message = stage.event(&job, "MXJobRestarting").await;
    assert!(message.contains("stopped-worker-0"), "{message}");
    let advances = |status: &Value| !is(status, "Stalled") && progress(status);
    stage.until(&job, advances).await;
}

#[tokio::test]
async fn out_of_memory() {
    let stage = Stage::new("oom").await;
    let mut job = small("oom");
    // The line that never ends is kept in memory.
    script(&mut job, "Worker", "exec tail /dev/zero");
    pod(&mut job, "Worker")["containers"][0]["resources"] = json!({"limits": {"memory": "32Mi"}});
    stage.create(&job).await;
    let status = stage.restarted(&job, 1).await;
    let failure = &status["failure"];
    assert_eq!(failure["reason"], "OOMKilled", "{status:#}");
    assert_eq!(failure["exitCode"], 137, "{status:#}");
    let summary = failure["summary"].as_str().unwrap();
    assert!(summary.ends_with(": exit 137 (OOMKilled)"), "{summary}");
}

#[tokio::test]
async fn an_error_of_the_program_is_final() {
    let stage = Stage::new("error").await;
    let mut job = small("error");
    script(&mut job, "Worker", "echo 'no such data set' >&2; exit 3");
    pod(&mut job, "Worker")["containers"][0]["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
    let from = stage.create(&job).await;
    let status = stage.condition(&job, "Failed").await;
    times::record(
        "small job: created -> failed with an error",
        from,
        Timestamp::now(),
    );
    assert_eq!(status["failure"]["exitCode"], 3, "{status:#}");
    let message = status["failure"]["message"].as_str().unwrap();
    assert!(message.contains("no such data set"), "{message}");
    stage.event(&job, "MXJobFailed").await;
}

/// The kubelet looks at volumes every ten seconds.
#[tokio::test]
async fn an_evicted_pod_is_replaced() {
    let stage = Stage::new("evicted").await;
    let mut job = small("evicted");
    script(
        &mut job,
        "Server",
        &format!("dd if=/dev/zero of=/scratch/file bs=1M count=20; {RUN}"),
    );
    let server = pod(&mut job, "Server");
    server["containers"][0]["volumeMounts"] = json!([{"name": "scratch", "mountPath": "/scratch"}]);
    server["volumes"] = json!([{"name": "scratch", "emptyDir": {"sizeLimit": "5Mi"}}]);
    stage.create(&job).await;
    let (server, _) = stage.prints("evicted-server-0", TRAINS, None).await;
    let status = stage.restarted(&job, 1).await;
    let failure = &status["failure"];
    assert_eq!(failure["role"], "Server", "{status:#}");
    assert_eq!(failure["reason"], "Evicted", "{status:#}");
    assert!(
        failure["message"].as_str().unwrap().contains("exceeds the limit"),
        "{status:#}"
    );
    assert_eq!(
        failure["node"],
        json!(server.spec.as_ref().unwrap().node_name),
        "{status:#}"
    );
    stage.prints("evicted-server-0", TRAINS, Some(&server)).await;
}

#[tokio::test]
async fn an_absent_image() {
    let stage = Stage::new("image").await;
    let mut job = small("image");
    each_pod(&mut job, |pod| {
        pod["containers"][0]["image"] = json!("example.com/absent:1")
    });
    stage.create(&job).await;
    let reasons = ["ErrImagePull", "ImagePullBackOff"];
    let waits = |status: &Value| reasons.contains(&status["waitingReason"].as_str().unwrap_or_default());
    let status = stage.until(&job, waits).await;
    assert_eq!(status["restartCount"], Value::Null, "{status:#}");
    let columns = stage.columns(&job).await;
    assert!(reasons.contains(&columns["REASON"].as_str()), "{columns:?}");
    assert_eq!(columns["READY"], "0/4", "{columns:?}");
    assert_eq!(columns["FAILURE"], "", "{columns:?}");
}

#[tokio::test]
async fn programs_that_ignore_sigterm() {
    let stage = Stage::new("deaf").await;
    let mut job = small("deaf");
    each_pod(&mut job, |pod| {
        pod["containers"][0]["command"] = json!(["sh", "-c", "trap '' TERM; echo trains; sleep 3600 & wait"]);
    });
    stage.create(&job).await;
    let (scheduler, _) = stage.prints("deaf-scheduler-0", TRAINS, None).await;
    let (worker, _) = stage.prints("deaf-worker-0", TRAINS, None).await;
    let killed = stage.kill(&worker).await;
    let (_, again) = stage.prints("deaf-scheduler-0", TRAINS, Some(&scheduler)).await;
    times::record(
        "small job, SIGTERM ignored, grace 5 s: worker killed -> trains again",
        killed,
        again,
    );
    let status = stage.restarted(&job, 1).await;
    // The kills of the grace period are no failures of their own.
    assert_eq!(status["failure"]["summary"], "worker-0: exit 137", "{status:#}");
}
