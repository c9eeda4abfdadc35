//! kubectl shows jobs and changes them on `local cluster`.

use rustix::process::Signal;
use training_job_testbed::cluster::Program;

use super::local_cluster::Local;

const JOB: &str = r#"{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "shown"}, "spec":
    {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"terminationGracePeriodSeconds": 0, "containers":
        [{"name": "pytorch", "image": "none", "command": ["/bin/sh", "-c", "echo begun; exec sleep 1000"]}]}}}}}}"#;

/// A pod whose container fails once, and then runs.
const RESTARTED: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "again"}, "spec": {
    "terminationGracePeriodSeconds": 0, "containers": [{"name": "a", "image": "none", "command": ["/bin/sh", "-c",
        "[ -e MARK ] && exec sleep 1000; touch MARK; echo first; exit 1"]}]}}"#;

impl Local {
    /// Returns kubectl on the local cluster, to run in the background.
    fn program(&self, arguments: &[&str]) -> Program {
        Program::new(self.real.kubectl_path())
            .args(["--kubeconfig".as_ref(), self.kubeconfig.as_os_str()])
            .args(["--namespace", &self.namespace])
            .args(arguments)
    }

    async fn created_and_running(name: &str) -> Self {
        let local = Self::start(name).await;
        let apply = ["apply", "--server-side", "-f", "-"];
        local.kubectl(&apply, JOB).await.success();
        let running = [
            "wait",
            "pytorchjob/shown",
            "--for=condition=Running",
            "--timeout=60s",
        ];
        local.run(&running).await;
        local
    }
}

#[tokio::test]
async fn a_job_is_described_selected_and_watched() {
    let local = Local::created_and_running("local-shown").await;
    let job = local.run(&["describe", "pytorchjob", "shown"]).await;
    for text in ["shown is running.", "Events:", "SuccessfulCreatePod"] {
        assert!(job.contains(text), "{text}: {job}");
    }
    let pod = local.run(&["describe", "pod", "shown-worker-0"]).await;
    assert!(pod.contains("Controlled By:  PyTorchJob/shown"), "{pod}");
    let events = local.run(&["events", "--for", "pytorchjob/shown"]).await;
    assert!(
        events.contains("Created pods: shown-worker-0, shown-worker-1"),
        "{events}"
    );
    let columns = "custom-columns=NAME:.metadata.name,NODE:.spec.nodeName";
    let columns = [
        "get",
        "pods",
        "-o",
        columns,
        "--sort-by=.metadata.name",
        "--no-headers",
    ];
    let rows = local.run(&columns).await;
    let rows: Vec<Vec<&str>> = rows
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows, [["shown-worker-0", "local"], ["shown-worker-1", "local"]]);
    let wide = local.run(&["get", "pod", "shown-worker-0", "-o", "wide"]).await;
    assert!(wide.contains("NODE") && wide.contains(" local "), "{wide}");
    let selector = "--field-selector=metadata.name=shown-worker-1";
    let selected = local.run(&["get", "pods", selector, "-o", "name"]).await;
    assert_eq!(selected, "pod/shown-worker-1\n");
    let label = "training.kubeflow.org/job-name=shown";
    let logs = ["logs", "-l", label, "--all-containers", "--prefix", "--tail=1"];
    let logs = local.run(&logs).await;
    let mut lines: Vec<&str> = logs.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "[pod/shown-worker-0/pytorch] begun",
            "[pod/shown-worker-1/pytorch] begun"
        ]
    );
    let kinds = [
        "api-resources",
        "--api-group=kubeflow.org",
        "--no-headers",
        "--sort-by=name",
    ];
    local.same(&kinds, "").await;

    let watch = ["get", "pods", "--watch", "--output-watch-events", "--no-headers"];
    let watch = local.real.spawn(local.program(&watch));
    watch.wait_for_lines("ADDED", 2).await;
    local
        .run(&["delete", "pytorchjob", "shown", "--cascade=foreground"])
        .await;
    watch.wait_for_lines("DELETED", 2).await;
    watch.signal(Signal::INT);
    local.stop().await;
}

#[tokio::test]
async fn a_job_is_patched_edited_and_deleted_without_its_pods() {
    let local = Local::created_and_running("local-changed").await;
    let patch = async |object: &[&str], type_: &str, patch: &str| {
        let arguments = [&["patch", "--type", type_, "-p", patch], object].concat();
        local.run(&arguments).await
    };
    let job = ["pytorchjob", "shown"];
    patch(&job, "merge", r#"{"metadata": {"labels": {"a": "merged"}}}"#).await;
    patch(
        &job,
        "json",
        r#"[{"op": "replace", "path": "/metadata/labels/a", "value": "replaced"}]"#,
    )
    .await;
    let pod = ["pod", "shown-worker-0"];
    patch(&pod, "strategic", r#"{"metadata": {"labels": {"b": "added"}}}"#).await;
    let label = [
        "get",
        "pod",
        "shown-worker-0",
        "-o",
        "jsonpath={.metadata.labels.b}",
    ];
    assert_eq!(local.run(&label).await, "added");
    let edit = local.program(&["edit", "pytorchjob", "shown"]);
    let edited = local
        .real
        .spawn(edit.env("KUBE_EDITOR", "sed -i s/replaced/edited/"));
    assert_eq!(edited.exit_code().await, 0, "{}", edited.text());
    let label = [
        "get",
        "pytorchjob",
        "shown",
        "-o",
        "jsonpath={.metadata.labels.a}",
    ];
    assert_eq!(local.run(&label).await, "edited");

    local
        .run(&["delete", "pytorchjob", "shown", "--cascade=orphan"])
        .await;
    let left = local.run(&["get", "pods", "-o", "name"]).await;
    assert_eq!(left, "pod/shown-worker-0\npod/shown-worker-1\n");
    local.run(&["delete", "pods", "--all"]).await;
    local.stop().await;
}

#[tokio::test]
async fn the_log_before_a_restart_is_printed() {
    let local = Local::start("local-again").await;
    let mark = local.real.directory().join("mark-of-again");
    let pod = RESTARTED.replace("MARK", mark.to_str().unwrap());
    local.kubectl(&["create", "-f", "-"], &pod).await.success();
    let restarted = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1";
    local
        .run(&["wait", "pod/again", restarted, "--timeout=60s"])
        .await;
    assert_eq!(local.run(&["logs", "again", "--previous"]).await, "first\n");
    local.stop().await;
}
