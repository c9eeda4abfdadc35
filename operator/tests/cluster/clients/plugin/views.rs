//! `list`, `status`, `events` and `explain`.

use serde_json::Value;

use super::{json, run, until};
use crate::clients::stage::Stage;

/// Removes runs of spaces, because widths depend on ages.
fn squeezed(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_job_is_shown_from_its_start_to_its_failure() {
    let stage = Stage::new("plugin-views").await;
    let empty = run(&stage, &["list"]).await;
    assert_eq!((empty.code, &*empty.stdout), (0, ""));
    assert!(empty.stderr.contains("no jobs in namespace"), "{}", empty.stderr);

    stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    stage.all_run("spirals", 5, "0").await;
    until(&stage, "spirals", "Running").await;
    let rows = json(&stage, &["list"]).await;
    let row = &rows["jobs"][0];
    assert_eq!(row["kind"], "MXJob", "{row}");
    assert_eq!(row["state"], "Running", "{row}");
    assert_eq!(row["roles"][0]["role"], "Scheduler");
    assert_eq!(row["roles"][2]["replicas"], 2);

    stage.kubelet.exits("spirals-worker-1", "mxnet", 137).await;
    stage.all_run("spirals", 5, "1").await;
    until(&stage, "spirals", "Running").await;
    // The job is Running once its scheduler is; the last worker can be seen later.
    let both_run = "--for=jsonpath={.status.replicaStatuses.Worker.active}=2";
    stage
        .run(&["wait", "mxjob", "spirals", both_run, "--timeout=60s"])
        .await;
    let text = run(&stage, &["status", "mxjob/spirals"]).await.success();
    let text = squeezed(&text);
    for part in [
        "MXJob plugin-views",
        "Worker 2/2 ready, restartPolicy ExitCode",
        "├─ Last failure",
        "worker-1: exit 137",
        "restarts 1",
        "kubectl training explain MXJob/spirals",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }

    let patch = r#"{"spec":{"mxReplicaSpecs":{"Worker":{"restartPolicy":"Never"}}}}"#;
    stage
        .run(&["patch", "mxjob", "spirals", "--type=merge", "-p", patch])
        .await;
    stage.kubelet.exits("spirals-worker-0", "mxnet", 3).await;
    until(&stage, "spirals", "Failed").await;
    let listed = squeezed(&run(&stage, &["list", "mxjobs"]).await.success());
    let line = listed.lines().nth(1).unwrap();
    assert!(line.starts_with("MXJob spirals Failed "), "{listed}");
    assert!(line.ends_with("worker-0: exit 3"), "{listed}");
    let names = run(&stage, &["list", "--state", "failed", "-o", "name"])
        .await
        .success();
    assert_eq!(names, "mxjob.kubeflow.org/spirals\n");
    let none = run(&stage, &["list", "--state", "running", "-o", "name"])
        .await
        .success();
    assert_eq!(none, "");
    let none = run(&stage, &["list", "--state", "Running"]).await;
    assert!(none.stderr.contains("no such jobs in namespace"), "{none:?}");
    let unknown = run(&stage, &["list", "--state", "broken"]).await;
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("must be one of New, Deleting, Created"),
        "{}",
        unknown.stderr
    );

    let page = run(&stage, &["report", "spirals"]).await.success();
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"),
        "{page}"
    );
    let story = json(&stage, &["report", "spirals"]).await;
    assert_eq!(story["failure"]["summary"], "worker-0: exit 3");
    let workers = story["replicas"].as_array().unwrap().iter();
    let worker = workers
        .clone()
        .find(|replica| replica["role"] == "worker" && replica["index"] == 1);
    // The first pod of worker 1 is gone. Its end is in the status, and its creation in an event.
    let first = &worker.unwrap()["pods"][0];
    assert_eq!(first["isInferred"], true, "{story}");
    assert_eq!(first["runs"][0]["exitCode"], 137, "{story}");
    // The failed pod of worker 0 exists, the others were cleaned up.
    let failed = workers
        .clone()
        .find(|replica| replica["role"] == "worker" && replica["index"] == 0);
    let observed = failed.unwrap()["pods"].as_array().unwrap().last().unwrap();
    assert_eq!(observed["isInferred"], Value::Null, "{story}");
    assert_eq!(observed["attempt"], 1, "{story}");
    assert!(first["createdAt"].is_string(), "{story}");

    let status = json(&stage, &["status", "spirals"]).await;
    assert_eq!(status["rootCause"]["summary"], "worker-0: exit 3");
    assert_eq!(status["earlierFailures"][0]["summary"], "worker-1: exit 137");
    let events = run(&stage, &["events", "spirals"]).await.success();
    assert!(
        events.contains("MXJobRestarting") && events.contains("mxjob/spirals"),
        "{events}"
    );
    let explained = run(&stage, &["explain", "spirals"]).await.success();
    assert!(
        explained.contains("Success: when scheduler-0 has ended"),
        "{explained}"
    );
}

#[tokio::test]
async fn a_name_of_two_jobs_is_an_error_that_lists_them() {
    let stage = Stage::new("plugin-names").await;
    stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    let train = std::fs::read_to_string(
        training_job_testbed::cluster::repository().join("examples/pytorch/train.yaml"),
    )
    .unwrap();
    let job = train
        .lines()
        .find_map(|line| line.strip_prefix("  name: "))
        .unwrap()
        .trim();
    let second = train.replacen(&format!("  name: {job}"), "  name: spirals", 1);
    stage.cluster.create(&stage.namespace, &second).await;
    let ambiguous = run(&stage, &["status", "spirals"]).await;
    assert_eq!(ambiguous.code, 2);
    assert!(
        ambiguous
            .stderr
            .contains("use one of MXJob/spirals, PyTorchJob/spirals"),
        "{}",
        ambiguous.stderr
    );
    run(&stage, &["status", "pytorchjobs.kubeflow.org/spirals"])
        .await
        .success();
    for (argument, remedy) in [
        ("none", "list the jobs with: kubectl training list"),
        ("nojob/spirals", "use one of MXJob"),
        ("mxjob/", "must be NAME or KIND/NAME"),
    ] {
        let refused = run(&stage, &["status", argument]).await;
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.contains(remedy), "{argument}: {}", refused.stderr);
    }
}

/// The cluster of this stage serves the kinds of a default installation.
#[tokio::test]
async fn a_name_without_a_kind_is_found_although_some_kinds_are_not_served() {
    let stage = Stage::new("plugin-bare-names").await;
    stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    until(&stage, "spirals", "Created").await;
    for words in [
        "status spirals",
        "logs spirals",
        "events spirals",
        "report spirals -o json",
        "explain spirals",
        "wait spirals --for failed --timeout 1ms",
        "scale spirals --role worker=3",
        "suspend spirals",
        "resume spirals",
        "restart spirals --timeout 1ms",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let named = run(&stage, &words).await;
        assert!(!named.stderr.contains("404"), "{words:?}: {}", named.stderr);
        let mut absent = words.clone();
        absent[1] = "absent";
        let refused = run(&stage, &absent).await;
        assert_eq!(refused.code, 2, "{absent:?}: {refused:?}");
        assert!(
            refused.stderr.contains("no job \"absent\""),
            "{absent:?}: {refused:?}"
        );
        absent[1] = "mpijob/absent";
        let refused = run(&stage, &absent).await;
        assert!(
            refused
                .stderr
                .contains("the cluster does not serve mpijobs.kubeflow.org"),
            "{absent:?}: {refused:?}"
        );
    }
}

/// A missing definition is not an error, because most clusters have only a few kinds.
#[tokio::test]
async fn an_invalid_name_of_a_namespace_is_refused() {
    let stage = Stage::new("plugin-misnamed").await;
    let misnamed = run(&stage, &["list", "-n", "Foo_Bar"]).await;
    let problem = "must be the name of a namespace";
    assert!(
        misnamed.code == 2 && misnamed.stderr.contains(problem),
        "{misnamed:?}"
    );
}

#[tokio::test]
async fn kinds_that_are_not_installed_have_no_jobs() {
    use training_job_testbed::cluster::ControlPlane;
    let cluster = &ControlPlane::start(Default::default()).await;
    let listed = super::run_as(cluster, &cluster.kubeconfig(), &["list", "-A"]).await;
    assert_eq!((listed.code, &*listed.stdout), (0, ""));
    assert_eq!(listed.stderr, "note: no jobs in any namespace\n");
}
