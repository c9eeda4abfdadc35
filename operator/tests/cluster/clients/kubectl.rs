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
    assert_eq!(lines[0], ["NAME", "STATE", "AGE"]);
    assert_eq!(lines[1][..2], ["spirals", "Running"]);
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
            "NAME", "STATE", "AGE", "STARTED", "FINISHED", "RESTARTS", "FAILURE"
        ]
    );
    assert_eq!(lines[1][..2], ["spirals", "Succeeded"]);
    assert!(lines[1][2..5].iter().all(|age| age.ends_with('s')), "{got}");
    // A succeeded job keeps the failure in its history.
    assert_eq!(lines[1][5..], ["1", ""]);

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
