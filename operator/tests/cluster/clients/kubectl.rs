//! kubectl: create, get, wait, describe, delete.

use super::stage::Stage;

/// Returns the cells of a table whose columns begin where the words of its header do. A cell may be empty.
fn table(text: &str) -> Vec<Vec<&str>> {
    let head = text.lines().next().unwrap();
    let begins = |n: &usize| !head[*n..].starts_with(' ') && (*n == 0 || head[..*n].ends_with(' '));
    let begins: Vec<_> = (0..head.len()).filter(begins).collect();
    let cell = |line: &'_ str, n: usize| {
        let end = begins.get(n + 1).map_or(line.len(), |end| line.len().min(*end));
        begins[n].min(end)..end
    };
    let lines = text.lines();
    lines
        .map(|line| (0..begins.len()).map(|n| line[cell(line, n)].trim()).collect())
        .collect()
}

/// Returns the reasons of a job's events in the order of their first occurrence. Consecutive duplicates are merged.
async fn reasons(stage: &Stage, job: &str) -> Vec<String> {
    let of_job = format!("--field-selector=involvedObject.name={job}");
    // The names of events begin with their times.
    let sorted = ["--sort-by=.metadata.name", "-o", "jsonpath={.items[*].reason}"];
    let told = stage
        .run(&[&["get", "events", &of_job], &sorted[..]].concat())
        .await;
    let mut reasons: Vec<_> = told.split(' ').map(str::to_owned).collect();
    reasons.dedup();
    reasons
}

#[tokio::test]
async fn a_job_is_made_watched_and_deleted() {
    let stage = Stage::new("kubectl").await;
    let created = stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    assert_eq!(created, "mxjob.kubeflow.org/spirals created\n");
    let pods = stage.all_run("spirals", 5, "0").await;
    assert_eq!(pods[0], "spirals-scheduler-0");
    let wait = ["wait", "mxjob/spirals", "--timeout=60s"];
    let met = "mxjob.kubeflow.org/spirals condition met\n";
    assert_eq!(
        stage
            .run(&[&wait[..], &["--for=condition=Running"]].concat())
            .await,
        met
    );

    let got = stage.run(&["get", "mxjob"]).await;
    let lines = table(&got);
    assert_eq!(lines[0], ["NAME", "STATE", "AGE", "READY", "REASON", "FAILURE"]);
    assert_eq!(lines[1][..2], ["spirals", "Running"]);
    assert_eq!(lines[1][3..], ["5/5", "", ""]);
    assert!(lines[1][2].ends_with('s'), "{got}");

    stage.kubelet.exits("spirals-worker-1", "mxnet", 137).await;
    stage.all_run("spirals", 5, "1").await;
    stage
        .run(&[&wait[..], &["--for=condition=Running"]].concat())
        .await;
    for pod in ["spirals-worker-0", "spirals-worker-1", "spirals-scheduler-0"] {
        stage.kubelet.succeeds(pod).await;
    }
    assert_eq!(
        stage
            .run(&[&wait[..], &["--for=condition=Succeeded"]].concat())
            .await,
        met
    );
    // Servers never end by themselves.
    stage
        .run(&[
            "wait",
            "pod/spirals-server-0",
            "pod/spirals-server-1",
            "--for=delete",
            "--timeout=60s",
        ])
        .await;
    let got = stage.run(&["get", "mxjobs", "-o", "wide"]).await;
    let lines = table(&got);
    assert_eq!(
        lines[0],
        [
            "NAME", "STATE", "AGE", "READY", "REASON", "FAILURE", "PROGRESS", "OUTPUT", "STARTED",
            "FINISHED", "RESTARTS"
        ]
    );
    assert_eq!(lines[1][..2], ["spirals", "Succeeded"]);
    // A succeeded job keeps the failure in its history.
    assert_eq!(lines[1][3..8], ["0/5", "", "", "", ""]);
    assert!([2, 8, 9].iter().all(|&age| lines[1][age].ends_with('s')), "{got}");
    assert_eq!(lines[1][10], "1");

    let described = stage.run(&["describe", "mxjob", "spirals"]).await;
    assert!(
        described.contains("MXJob spirals is successfully completed."),
        "{described}"
    );
    assert_eq!(
        reasons(&stage, "spirals").await,
        [
            "SuccessfulCreateService",
            // The second batch is counted in the event of the first.
            "SuccessfulCreatePod",
            "MXJobRestarting",
            "SuccessfulDeletePod",
            "MXJobSucceeded",
            "SuccessfulDeletePod",
            "SuccessfulDeleteService",
        ],
        "{described}"
    );

    let deleted = stage.run(&["delete", "mxjob", "spirals"]).await;
    assert!(
        deleted.starts_with("mxjob.kubeflow.org \"spirals\" deleted"),
        "{deleted}"
    );
    stage.none_left("spirals").await;
    let gone = stage.kubectl(&["get", "mxjob", "spirals"]).await;
    assert!(gone.code == 1 && gone.stderr.contains("NotFound"), "{gone:?}");
    assert_eq!(stage.operator.ended(), None);
}

/// Returns the cells READY, REASON and FAILURE of a job once one of them has this value.
async fn cells_with(stage: &Stage, job: &str, value: &str) -> [String; 3] {
    loop {
        let got = stage.run(&["get", "mxjob", job]).await;
        if let [.., ready, reason, failure] = &table(&got)[1][..]
            && [ready, reason, failure].contains(&&value)
        {
            return [ready, reason, failure].map(|cell| (*cell).to_owned());
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn the_table_has_the_reasons_of_waiting_and_failed_jobs() {
    let stage = Stage::new("kubectl-waits").await;
    let quota = ["create", "quota", "none", "--hard=pods=0"];
    stage.run(&quota).await;
    let is_counted = [
        "wait",
        "quota/none",
        "--for=jsonpath={.status.used.pods}=0",
        "--timeout=60s",
    ];
    stage.run(&is_counted).await;
    stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    let refused = cells_with(&stage, "spirals", "FailedCreatePod").await;
    assert_eq!(refused, ["0/5", "FailedCreatePod", ""]);

    stage.run(&["delete", "quota", "none"]).await;
    // An edit makes the operator try again at once.
    let patch = r#"{"spec":{"mxReplicaSpecs":{"Worker":{"restartPolicy":"Never"}}}}"#;
    stage
        .run(&["patch", "mxjob", "spirals", "--type=merge", "-p", patch])
        .await;
    stage.all_run("spirals", 5, "0").await;
    assert_eq!(cells_with(&stage, "spirals", "5/5").await, ["5/5", "", ""]);
    stage.kubelet.exits("spirals-worker-1", "mxnet", 3).await;
    let failed = cells_with(&stage, "spirals", "worker-1: exit 3").await;
    assert_eq!(failed, ["0/5", "", "worker-1: exit 3"]);
    assert_eq!(stage.operator.ended(), None);
}

/// The status has types, and descriptions have one line per paragraph.
#[tokio::test]
async fn the_status_is_explained() {
    let stage = Stage::new("kubectl-explain").await;
    let failure = stage.run(&["explain", "mxjob.status.failure"]).await;
    for field in ["exitCode\t<integer>", "pod\t<string>", "summary\t<string>"] {
        assert!(failure.contains(field), "{field} in\n{failure}");
    }
    let status = stage.run(&["explain", "mxjob.status"]).await;
    for field in [
        "conditions\t<[]Object>",
        "completionTime\t<string>",
        "replicaStatuses\t<map[string]Object>",
    ] {
        assert!(status.contains(field), "{field} in\n{status}");
    }
    let policy = stage
        .run(&["explain", "mxjob.spec.runPolicy.stableAddress"])
        .await;
    assert!(policy.contains("FIELD: stableAddress <boolean>"), "{policy}");
}
