//! `training-operator explain`.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod program;

use program::{root, run, run_with_input};

fn case(name: &str) -> String {
    std::fs::read_to_string(root().join("operator/tests/cases").join(name)).unwrap()
}

/// The explanation of the single worker, with `policy` for its role and `run_policy` for the job.
fn single(policy: &str, run_policy: &str) -> String {
    let text = case("single-worker.yaml")
        .replace("Worker:\n", &format!("Worker:\n      restartPolicy: {policy}\n"))
        .replace(
            "spec:\n  jobMode",
            &format!("spec:\n  runPolicy: {run_policy}\n  jobMode"),
        );
    let run = run_with_input(&["explain", "-"], text.as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{text}");
    run.stdout
}

/// What follows from an event, by the table.
fn then<'t>(text: &'t str, event: &str) -> &'t str {
    let line = text.lines().find(|line| line.contains(event));
    line.and_then(|line| line.rsplit("  ").next()).unwrap()
}

#[test]
fn a_training_is_explained() {
    let run = run(&["explain", "examples/mxnet/train.yaml", "examples/mxnet/tune.yaml"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(run.stdout);
}

#[test]
fn each_policy_has_its_own_ends() {
    let never = single("Never", "{}");
    assert_eq!(then(&never, "exit code 137"), "the job fails");
    assert_eq!(then(&never, "evicted"), "the job fails");
    assert_eq!(
        then(&never, "its pod deleted"),
        "it gets a new pod, without limit"
    );

    let by_code = single("ExitCode", "{backoffLimit: 3}");
    assert_eq!(then(&by_code, "exit code 1 "), "the job fails");
    assert_eq!(
        then(&by_code, "exit code 137"),
        "it alone restarts, 3 times; the next time the job fails"
    );
    // The kubelet has restarted the container when it is seen, so one less is allowed.
    let on_failure = single("OnFailure", "{backoffLimit: 2}");
    assert_eq!(
        then(&on_failure, "exit code 1 "),
        "its container, in place restarts once; the next time the job fails"
    );
    assert_eq!(
        then(&single("Always", "{}"), "exit code 1 "),
        "its container, in place restarts, without limit"
    );
    assert_eq!(
        then(&single("Always", "{backoffLimit: 0}"), "exit code 139"),
        "the job fails"
    );
    assert_eq!(
        then(&single("ExitCode", "{restartScope: Role}"), "exit code 143"),
        "its role restarts, without limit"
    );
}

#[test]
fn limits_and_suspension_are_named() {
    let late = single("Never", "{activeDeadlineSeconds: 60}");
    assert!(late.contains("\nDeadline: 60 s after its start"), "{late}");
    assert!(!single("Never", "{}").contains("Deadline"));
    let suspended = single("Never", "{suspend: true}");
    assert!(
        suspended.ends_with("nothing is made until it is resumed.\n"),
        "{suspended}"
    );
}

/// As the API server stores it: under an older version the field is filled in.
#[test]
fn it_is_told_whose_manifest_a_job_is_read_as_and_what_follows() {
    let reading = |version: &str, fields: &str| {
        let text = case("single-worker.yaml")
            .replace("kubeflow.org/v1", &format!("kubeflow.org/{version}"))
            .replace("spec:\n  jobMode", &format!("spec:\n  {fields}\n  jobMode"))
            .replace("Worker:\n", "Worker:\n      restartPolicy: ExitCode\n");
        let run = run_with_input(&["explain", "-"], text.as_bytes());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{text}");
        let reading = run.stdout.lines().find(|line| line.starts_with("Read as"));
        (
            reading.unwrap_or_default().to_owned(),
            then(&run.stdout, "exit code 139").to_owned(),
        )
    };
    let stand_alone = |since: &str| {
        format!(
            "Read as a manifest of the stand-alone mxnet-operator, since {since}: by ExitCode the exit codes 130, 137, 138 \
             and 143 restart a replica, and an unset cleanPodPolicy is All."
        )
    };
    let fails = "the job fails".to_owned();
    let restarts = "it alone restarts, without limit".to_owned();
    let older = stand_alone("it was written under v1beta1");
    assert_eq!(reading("v1beta1", "runPolicy: {}"), (older, fails.clone()));
    let at_top = stand_alone("cleanPodPolicy stands at the top of its spec");
    assert_eq!(reading("v1", "cleanPodPolicy: None"), (at_top, fails.clone()));
    let said = stand_alone("compatibility says so");
    assert_eq!(reading("v1", "compatibility: MXNetOperator"), (said, fails));
    let (told, then) = reading("v1alpha2", "compatibility: TrainingOperator");
    assert!(
        told.starts_with("Read as a manifest of the training operator, since compatibility says so: "),
        "{told}"
    );
    assert_eq!(then, restarts);
    assert_eq!(reading("v1", "runPolicy: {}"), (String::new(), restarts));
}

#[test]
fn every_case_can_be_explained_and_no_bad_job() {
    let all = run(&["explain", "operator/tests/cases"]);
    assert_eq!((all.code, all.stderr.as_str()), (Some(0), ""));
    let bad = run(&["explain", "operator/tests/bad/no-worker.yaml"]);
    assert_eq!((bad.code, bad.stdout.as_str()), (Some(2), ""));
}

#[test]
fn what_is_left_follows_the_clean_up_policy() {
    let end = |run_policy: &str| {
        let text = single("Never", run_policy);
        text.lines()
            .find(|line| line.starts_with("End: "))
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        end("{cleanPodPolicy: All, ttlSecondsAfterFinished: 60}"),
        "End: pods that still run are deleted with their services; those that have ended are deleted with \
         their services. 60 s later the job is deleted with all it has."
    );
    assert_eq!(
        end("{cleanPodPolicy: None}"),
        "End: pods that still run go on; those that have ended stay, with their logs."
    );
}

/// TensorBoard stays when the job has ended.
#[test]
fn what_is_beside_the_replicas_is_not_among_those_that_end() {
    let run = run(&["explain", "examples/legacy/tfjob.yaml"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let end = "End: pods that still run are deleted with their services; those that have ended stay, with their logs.";
    assert!(run.stdout.contains(end), "{}", run.stdout);
    assert!(run.stdout.contains("master-0 has ended"), "{}", run.stdout);
}

#[test]
fn rules_and_windows_of_a_failure_policy_are_told() {
    let text = run(&["explain", "examples/pytorch/policies.yaml"]).stdout;
    assert_eq!(then(&text, "exit code 3 "), "the job fails");
    assert_eq!(then(&text, "evicted"), "the whole job restarts, without limit");
    assert_eq!(
        then(&text, "exit code 137"),
        "the whole job restarts, 10 times within 3600 s; the next time the job fails"
    );
}

#[test]
fn gangs_and_queues_and_who_waits_for_whom_are_told() {
    let explain = |file: &str, scheduler: &str| {
        let run = run(&["explain", file, "--gang-scheduler-name", scheduler]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        let of_start = |line: &&str| {
            ["Start: ", "Queue: ", "Gang: "]
                .iter()
                .any(|word| line.starts_with(word))
        };
        run.stdout
            .lines()
            .filter(of_start)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let launcher = explain("examples/mpi/train.yaml", "");
    assert_eq!(launcher.len(), 1, "{launcher:?}");
    let waits = "3 pods in this order: moons-worker-0, moons-worker-1, moons-launcher. The launcher starts when all pods of worker run.";
    assert!(launcher[0].ends_with(waits), "{launcher:?}");
    let let_in = explain("examples/mpi/train.yaml", "volcano");
    assert!(let_in[0].starts_with("Start: a PodGroup, then "), "{let_in:?}");
    let room = "Gang: no pod is made before volcano has room for 3 pods at once (";
    assert!(let_in[1].starts_with(room), "{let_in:?}");
    assert!(
        let_in[1].ends_with("; a restart of the whole job waits for that again."),
        "{let_in:?}"
    );
    let bound = explain("examples/mpi/train.yaml", "gangs");
    let room = "Gang: gangs gives no pod a node before it has room for 3 pods at once (";
    assert!(bound[1].starts_with(room), "{bound:?}");

    let text = case("single-worker.yaml");
    let labelled = text.replacen(
        "metadata:\n",
        "metadata:\n  labels: {kueue.x-k8s.io/queue-name: team-a}\n",
        1,
    );
    let queue = "Queue: nothing is made before Kueue admits the job to team-a.";
    let explained = run_with_input(&["explain", "-"], labelled.as_bytes()).stdout;
    assert!(explained.contains(queue), "{explained}");
    assert!(
        !run_with_input(&["explain", "-"], text.as_bytes())
            .stdout
            .contains("Queue: ")
    );
}
