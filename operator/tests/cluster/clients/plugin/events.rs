//! `events -f`.

use rustix::process::Signal;
use serde_json::Value;
use training_job_testbed::cluster::Program;

use super::{links, run, until};
use crate::clients::stage::Stage;

#[tokio::test]
async fn events_are_followed_until_the_job_is_deleted() {
    let stage = Stage::new("plugin-events").await;
    stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    stage.all_run("spirals", 5, "0").await;
    until(&stage, "spirals", "Running").await;
    let follow = |arguments: &[&str]| {
        stage.cluster.spawn(
            Program::new(links(stage.cluster).join("kubectl-training"))
                .args([&["events", "spirals", "-f"], arguments].concat())
                .env("KUBECONFIG", stage.cluster.kubeconfig_in(&stage.namespace)),
        )
    };
    let follower = follow(&[]);
    let interrupted = follow(&[]);
    let warnings = follow(&["--warnings", "-o", "json"]);
    let heading = follower.wait_for_line("LAST SEEN").await;
    assert!(heading.ends_with("COUNT  MESSAGE"), "{heading}");
    follower.wait_for_line("SuccessfulCreatePod").await;
    interrupted.wait_for_line("SuccessfulCreatePod").await;
    interrupted.signal(Signal::INT);
    assert_eq!(interrupted.exit_code().await, 130);

    let patch = r#"{"spec":{"mxReplicaSpecs":{"Worker":{"restartPolicy":"Never"}}}}"#;
    stage
        .run(&["patch", "mxjob", "spirals", "--type=merge", "-p", patch])
        .await;
    stage.kubelet.exits("spirals-worker-0", "mxnet", 3).await;
    follower.wait_for_line("MXJobFailed").await;
    warnings.wait_for_line("\"reason\": \"MXJobFailed\"").await;
    stage
        .run(&["delete", "mxjob", "spirals", "--cascade=background"])
        .await;
    for follower in [&follower, &warnings] {
        follower
            .wait_for_line("note: MXJob/spirals: the job was deleted")
            .await;
        assert_eq!(follower.exit_code().await, 0);
    }
    assert_eq!(
        follower.text().matches("LAST SEEN").count(),
        1,
        "{}",
        follower.text()
    );
    let text = warnings.text();
    let (documents, _) = text.split_once("note: ").unwrap();
    let documents = serde_json::Deserializer::from_str(documents).into_iter::<Value>();
    for event in documents {
        assert_eq!(event.unwrap()["type"], "Warning");
    }
    let missing = run(&stage, &["events", "spirals", "-f"]).await;
    assert_eq!(missing.code, 2, "{missing:?}");
}
