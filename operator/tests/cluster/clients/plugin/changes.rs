//! `suspend`, `resume`, `restart`, `scale` and `wait`.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::{json, run, until};
use crate::clients::stage::Stage;

#[tokio::test]
async fn a_job_is_suspended_resumed_restarted_and_scaled() {
    let stage = Stage::new("plugin-changes").await;
    stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    stage.all_run("spirals", 5, "0").await;
    let met = run(
        &stage,
        &["wait", "spirals", "--for", "running", "--timeout", "1m"],
    )
    .await
    .success();
    assert_eq!(met, "mxjob.kubeflow.org/spirals condition met\n");

    let suspended = run(&stage, &["suspend", "spirals"]).await.success();
    assert_eq!(suspended, "mxjob.kubeflow.org/spirals suspended\n");
    let again = run(&stage, &["suspend", "spirals"]).await.success();
    assert_eq!(again, "mxjob.kubeflow.org/spirals was suspended before\n");
    run(
        &stage,
        &["wait", "spirals", "--for", "suspended", "--timeout", "1m"],
    )
    .await
    .success();
    stage.none_left("spirals").await;
    let refused = run(&stage, &["restart", "spirals"]).await;
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("kubectl training resume MXJob/spirals"),
        "{}",
        refused.stderr
    );
    run(&stage, &["resume", "spirals"]).await.success();
    stage.all_run("spirals", 5, "0").await;
    until(&stage, "spirals", "Running").await;

    let mut before = Vec::new();
    let remember = |pods: &[Pod]| {
        before = pods.iter().map(|pod| pod.uid().unwrap()).collect();
        true
    };
    stage.until_pods("spirals", remember).await;
    let restarted = run(&stage, &["restart", "spirals"]).await.success();
    assert_eq!(restarted, "mxjob.kubeflow.org/spirals restarted\n");
    // These pods have no node, so they may be gone before the job is resumed.
    let is_new = |pod: &Pod| {
        let uid = pod.uid().unwrap();
        pod.metadata.deletion_timestamp.is_none() && !before.contains(&uid)
    };
    let pods = stage
        .until_pods("spirals", |pods| pods.len() == 5 && pods.iter().all(is_new))
        .await;
    for pod in &pods {
        stage.kubelet.runs(pod).await;
    }
    until(&stage, "spirals", "Running").await;
    // A restart by a user counts against no limit.
    assert_eq!(json(&stage, &["list"]).await["jobs"][0]["restarts"], 0);

    let scaled = run(&stage, &["scale", "spirals", "--role", "worker=3"]).await;
    assert!(
        scaled.stderr.contains("all replicas restart") && scaled.stderr.contains("-> 3); the restart counts"),
        "{}",
        scaled.stderr
    );
    assert_eq!(scaled.success(), "mxjob.kubeflow.org/spirals scaled\n");
    let is_second = |pod: &Pod| {
        pod.annotations()
            .contains_key("training.kubeflow.org/restart-attempt")
    };
    let pods = stage
        .until_pods("spirals", |pods| pods.len() > 5 && pods.iter().all(is_second))
        .await;
    for pod in &pods {
        stage.kubelet.runs(pod).await;
    }
    until(&stage, "spirals", "Running").await;
    let again = run(&stage, &["scale", "spirals", "--role", "Worker=3"])
        .await
        .success();
    assert!(
        again.ends_with("has these numbers of replicas already\n"),
        "{again}"
    );
    let unknown = run(&stage, &["scale", "spirals", "--role", "master=3"]).await;
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("use one of"), "{}", unknown.stderr);
    let twice = ["scale", "spirals", "--role", "worker=3", "--role", "Worker=4"];
    let twice = run(&stage, &twice).await;
    let problem = "--role: worker has the numbers 3 and 4; keep one of them";
    assert!(twice.code == 2 && twice.stderr.contains(problem), "{twice:?}");

    let late = run(&stage, &["wait", "spirals", "--timeout", "1ms"]).await;
    assert_eq!(late.code, 1, "{late:?}");
    // A wait sees the end of the job that it waits for.
    let patch = r#"{"spec":{"mxReplicaSpecs":{"Worker":{"restartPolicy":"Never"}}}}"#;
    stage
        .run(&["patch", "mxjob", "spirals", "--type=merge", "-p", patch])
        .await;
    let fails = async {
        stage.kubelet.exits("spirals-worker-0", "mxnet", 3).await;
    };
    let wait = run(
        &stage,
        &["wait", "spirals", "--for", "succeeded", "--timeout", "1m"],
    );
    let (ended, ()) = tokio::join!(wait, fails);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.stderr.contains("the job has failed: worker-0: exit 3"),
        "{}",
        ended.stderr
    );
    run(&stage, &["wait", "spirals", "--for", "finished"])
        .await
        .success();
    for change in [
        &["suspend", "spirals"][..],
        &["scale", "spirals", "--role", "worker=5"],
    ] {
        let refused = run(&stage, change).await;
        assert!(
            refused.code == 2 && refused.stderr.contains("has ended (Failed)"),
            "{refused:?}"
        );
    }
    assert_eq!(stage.operator.ended(), None);
}
