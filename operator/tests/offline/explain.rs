//! `training-operator explain`.

use training_operator_testing::program::{root, run, run_with_input};

fn case(name: &str) -> String {
    std::fs::read_to_string(root().join("operator/tests/cases").join(name)).unwrap()
}

/// Returns the explanation of the single worker, with `policy` for its role and `run_policy` for the job.
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

/// Returns the consequence of an event of the job's only role.
fn then<'t>(text: &'t str, event: &str) -> &'t str {
    let is_row = |line: &&str| {
        line.split("  ")
            .any(|cell| cell.split("; ").any(|part| is_covered(part.trim(), event)))
    };
    let line = text.lines().find(is_row);
    line.and_then(|line| line.rsplit("  ").next()).unwrap()
}

/// Returns true if a cell such as `exit codes 1–9, 128 and above` covers an event such as `exit code 139`.
fn is_covered(cell: &str, event: &str) -> bool {
    let Some(code) = event.strip_prefix("exit code ") else {
        return cell.starts_with(event);
    };
    let code: i32 = code.parse().unwrap();
    let has = |run: &str| match (run.strip_suffix(" and above"), run.split_once('–')) {
        (Some(first), _) => code >= first.parse().unwrap(),
        (None, Some((first, last))) => (first.parse().unwrap()..=last.parse().unwrap()).contains(&code),
        _ => run.parse() == Ok(code),
    };
    let codes = cell
        .strip_prefix("exit codes ")
        .or_else(|| cell.strip_prefix("exit code "));
    cell == "any exit code except 0" || codes.is_some_and(|codes| codes.split(", ").any(has))
}

/// Returns the cells of the events in the table of an explanation.
fn events(text: &str) -> Vec<&str> {
    let rows = text.lines().skip_while(|line| !line.starts_with("ROLE")).skip(1);
    rows.filter_map(|row| {
        row.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .nth(1)
    })
    .collect()
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
    assert_eq!(then(&never, "evicted"), "only the replica restarts without limit");
    assert_eq!(
        then(&never, "pod deleted"),
        "the replica gets a new pod, without limit"
    );

    let by_code = single("ExitCode", "{backoffLimit: 3}");
    assert_eq!(then(&by_code, "exit code 1"), "the job fails");
    assert_eq!(
        then(&by_code, "exit code 137"),
        "only the replica restarts up to 3 times; after that, the job fails"
    );
    // The kubelet has already restarted the container when the operator observes it, so one restart less is allowed.
    let on_failure = single("OnFailure", "{backoffLimit: 2}");
    assert_eq!(
        then(&on_failure, "exit code 1"),
        "only the container restarts once; after that, the job fails"
    );
    assert_eq!(
        then(&single("Always", "{}"), "exit code 1"),
        "only the container restarts without limit"
    );
    assert_eq!(
        then(&single("Always", "{backoffLimit: 0}"), "exit code 139"),
        "the job fails"
    );
    assert_eq!(
        then(&single("ExitCode", "{restartScope: Role}"), "exit code 143"),
        "the whole role restarts without limit"
    );
}

#[test]
fn exit_codes_are_listed_as_the_rule_that_the_kind_applies() {
    let by_code = single("ExitCode", "{}");
    let first = "exit codes 1–127";
    assert_eq!(events(&by_code)[0], first);
    assert!(
        events(&by_code)[1].starts_with("exit codes 128 and above; "),
        "{by_code}"
    );
    let never = single("Never", "{}");
    assert_eq!(events(&never)[0], "any exit code except 0");
    let table = case("single-worker.yaml")
        .replace("kubeflow.org/v1", "kubeflow.org/v1beta1")
        .replace("Worker:\n", "Worker:\n      restartPolicy: ExitCode\n");
    let table = run_with_input(&["explain", "-"], table.as_bytes()).stdout;
    assert_eq!(
        events(&table)[0],
        "exit codes 1–129, 131–136, 139–142, 144 and above"
    );
    assert!(
        events(&table)[1].starts_with("exit codes 130, 137, 138, 143; "),
        "{table}"
    );
    let rules = "{failurePolicy: {rules: [{action: Ignore, onExitCodes: {values: [3, 200]}}]}}";
    let rules = single("Never", rules);
    assert_eq!(events(&rules)[0], "exit codes 1, 2, 4–199, 201 and above");
}

/// A kind of 2017 does not restart a replica that was killed for its memory.
#[test]
fn the_end_for_memory_is_listed_where_its_exit_code_does_not_decide() {
    let job = "apiVersion: mlkube.io/v1beta1\nkind: TfJob\nmetadata: {name: a}\nspec: {replicaSpecs: [{tfReplicaType: MASTER, \
               template: {spec: {restartPolicy: OnFailure, containers: [{name: tensorflow, image: x}]}}}]}\n";
    let explained = run_with_input(&["explain", "-"], job.as_bytes());
    assert_eq!(explained.code, Some(0), "{}", explained.stderr);
    assert_eq!(
        then(&explained.stdout, "exit code 137"),
        "only the replica restarts without limit"
    );
    assert_eq!(
        then(&explained.stdout, "out of memory (OOMKilled)"),
        "the job fails"
    );
    assert!(!single("ExitCode", "{}").contains("OOMKilled"));
}

#[test]
fn services_are_named_only_where_there_are_any() {
    let end = |policy: &str| {
        let job = format!(
            "apiVersion: kubeflow.org/v1\nkind: MPIJob\nmetadata: {{name: a}}\nspec:\n  runPolicy: {{cleanPodPolicy: {policy}}}\n  \
             mpiReplicaSpecs:\n    Launcher: &r {{template: {{spec: {{containers: [{{name: mpi, image: x}}]}}}}}}\n    Worker: *r\n"
        );
        let run = run_with_input(&["explain", "-"], job.as_bytes());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{job}");
        run.stdout
            .lines()
            .find(|line| line.starts_with("End:"))
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        end("Running"),
        "End: running pods are deleted; finished pods are kept, with their logs."
    );
    assert_eq!(
        end("All"),
        "End: running pods are deleted; finished pods are deleted."
    );
    assert_eq!(
        end("None"),
        "End: running pods keep running; finished pods are kept, with their logs."
    );
}

#[test]
fn limits_and_suspension_are_named() {
    let late = single("Never", "{activeDeadlineSeconds: 60}");
    assert!(
        late.contains("\nDeadline: the job fails if it still runs 60 s after its start"),
        "{late}"
    );
    assert!(!single("Never", "{}").contains("Deadline"));
    let suspended = single("Never", "{suspend: true}");
    assert!(
        suspended.ends_with("nothing is created until it is resumed.\n"),
        "{suspended}"
    );
}

/// The job is as the API server stores it: an older version has the field set by default.
#[test]
fn explain_names_the_operator_whose_rules_apply() {
    let reading = |version: &str, fields: &str| {
        let text = case("single-worker.yaml")
            .replace("kubeflow.org/v1", &format!("kubeflow.org/{version}"))
            .replace("spec:\n  jobMode", &format!("spec:\n  {fields}\n  jobMode"))
            .replace("Worker:\n", "Worker:\n      restartPolicy: ExitCode\n");
        let run = run_with_input(&["explain", "-"], text.as_bytes());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{text}");
        let reading = run
            .stdout
            .lines()
            .find(|line| line.starts_with("Compatibility: "));
        (
            reading.unwrap_or_default().to_owned(),
            then(&run.stdout, "exit code 139").to_owned(),
        )
    };
    let stand_alone = |because: &str| {
        format!(
            "Compatibility: Rules of the stand-alone mxnet-operator apply, because {because}: under restart policy ExitCode, the exit codes \
             130, 137, 138 and 143 restart a replica; the default cleanPodPolicy is All."
        )
    };
    let fails = "the job fails".to_owned();
    let restarts = "only the replica restarts without limit".to_owned();
    let older = stand_alone("it was written under v1beta1");
    assert_eq!(reading("v1beta1", "runPolicy: {}"), (older, fails.clone()));
    let at_top = stand_alone("cleanPodPolicy is at the top of the spec");
    assert_eq!(reading("v1", "cleanPodPolicy: None"), (at_top, fails.clone()));
    let said = stand_alone("spec.compatibility is MXNetOperator");
    assert_eq!(reading("v1", "compatibility: MXNetOperator"), (said, fails));
    let (told, then) = reading("v1alpha2", "compatibility: TrainingOperator");
    assert!(
        told.starts_with(
            "Compatibility: Rules of the training operator apply, because spec.compatibility is TrainingOperator: "
        ),
        "{told}"
    );
    assert_eq!(then, restarts);
    assert_eq!(reading("v1", "runPolicy: {}"), (String::new(), restarts));
}

#[test]
fn an_explanation_has_forms_for_programs_and_comments() {
    let explained = run(&["explain", "examples/mpi/train.yaml", "-o", "json"]);
    assert_eq!((explained.code, explained.stderr.as_str()), (Some(0), ""));
    let explained: serde_json::Value = serde_json::from_str(&explained.stdout).unwrap();
    let job = &explained["jobs"][0];
    assert_eq!((&job["kind"], &job["name"]), (&"MPIJob".into(), &"moons".into()));
    let topics: Vec<_> = job["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| &rule["topic"])
        .collect();
    assert_eq!(topics, ["Start", "Order", "Success", "Deadline", "End"]);
    assert_eq!(job["events"][0]["role"], "launcher");
    let events = job["events"].as_array().unwrap().iter().take(3);
    let events: Vec<_> = events.map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(
        events,
        [
            "any exit code except 0",
            "evicted by the kubelet",
            "pod deleted, drained or preempted, or its node lost"
        ]
    );
    let comment = run(&["explain", "examples/mpi/train.yaml", "-o", "markdown"]).stdout;
    assert!(
        comment.starts_with("### MPIJob moons\n\n| Rule | Text |\n|---|---|\n| Start | "),
        "{comment}"
    );
    assert!(
        comment.contains("\n\n| Role | Event | Consequence |\n|---|---|---|\n"),
        "{comment}"
    );
}

#[test]
fn every_case_can_be_explained_and_no_bad_job() {
    let all = run(&["explain", "operator/tests/cases"]);
    assert_eq!((all.code, all.stderr.as_str()), (Some(0), ""));
    let bad = run(&["explain", "operator/tests/bad/no-worker.yaml"]);
    assert_eq!((bad.code, bad.stdout.as_str()), (Some(2), ""));
}

#[test]
fn explain_lists_the_pods_that_the_clean_up_policy_keeps() {
    let end = |run_policy: &str| {
        let text = single("Never", run_policy);
        text.lines()
            .find(|line| line.starts_with("End: "))
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        end("{cleanPodPolicy: All, ttlSecondsAfterFinished: 60}"),
        "End: running pods are deleted with their services; finished pods are deleted with their services. 60 s \
         later, the job is deleted with all its objects."
    );
    assert_eq!(
        end("{cleanPodPolicy: None}"),
        "End: running pods keep running; finished pods are kept, with their logs."
    );
}

/// TensorBoard remains when the job has ended.
#[test]
fn objects_beside_the_replicas_are_not_listed_as_ending() {
    let run = run(&["explain", "examples/legacy/tfjob.yaml"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let end = "End: running pods are deleted with their services; finished pods are kept, with their logs.";
    assert!(run.stdout.contains(end), "{}", run.stdout);
    assert!(run.stdout.contains("master-0 has ended"), "{}", run.stdout);
}

#[test]
fn explain_lists_the_rules_and_the_window_of_a_failure_policy() {
    let text = run(&["explain", "examples/pytorch/policies.yaml"]).stdout;
    assert_eq!(then(&text, "exit code 3"), "the job fails");
    assert_eq!(then(&text, "evicted"), "the whole job restarts without limit");
    assert_eq!(
        then(&text, "exit code 137"),
        "the whole job restarts up to 10 times within 3600 s; after that, the job fails"
    );
}

#[test]
fn explain_lists_gangs_queues_and_the_start_order() {
    let explain = |file: &str, scheduler: &str| {
        let run = run(&["explain", file, "--gang-scheduler-name", scheduler]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        let of_start = |line: &&str| {
            ["Order: ", "Queue: ", "Gang: "]
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
    assert_eq!(launcher[0], "Order: launcher starts when all pods of worker run.");
    let let_in = explain("examples/mpi/train.yaml", "volcano");
    let capacity = "Gang: no pod is created before volcano has capacity for 3 pods at once (";
    assert!(let_in[1].starts_with(capacity), "{let_in:?}");
    assert!(
        let_in[1].ends_with(". A restart of the whole job waits for the same capacity."),
        "{let_in:?}"
    );
    let bound = explain("examples/mpi/train.yaml", "gangs");
    let capacity = "Gang: gangs assigns no pod to a node before it has capacity for 3 pods at once (";
    assert!(bound[1].starts_with(capacity), "{bound:?}");

    let text = case("single-worker.yaml");
    let labelled = text.replacen(
        "metadata:\n",
        "metadata:\n  labels: {kueue.x-k8s.io/queue-name: team-a}\n",
        1,
    );
    let queue = "Queue: nothing is created before Kueue admits the job to team-a.";
    let explained = run_with_input(&["explain", "-"], labelled.as_bytes()).stdout;
    assert!(explained.contains(queue), "{explained}");
    assert!(
        !run_with_input(&["explain", "-"], text.as_bytes())
            .stdout
            .contains("Queue: ")
    );
}

/// Returns the sentence about the success of a PyTorchJob with workers.
fn success(workers: &str, fields: &str) -> String {
    let text = format!(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {{generateName: run-}}\nspec:\n  {fields}\n  \
         pytorchReplicaSpecs: {{Worker: {{{workers}, template: {{spec: {{containers: [{{name: pytorch, image: x}}]}}}}}}}}\n"
    );
    let run = run_with_input(&["explain", "-"], text.as_bytes());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.starts_with("PyTorchJob run-xxxxx\n"), "{}", run.stdout);
    let mut lines = run.stdout.lines();
    lines.find(|line| line.starts_with("Success")).unwrap().to_owned()
}

#[test]
fn the_explained_success_agrees_with_the_plan() {
    let any = "Success: when any one of the 2 replicas of worker has ended with exit code 0, regardless of the others.";
    let all = "Success: when all 2 replicas of worker have ended with exit code 0.";
    assert_eq!(success("replicas: 2", "runPolicy: {}"), all);
    let elastic = "elasticPolicy: {minReplicas: 1, maxReplicas: 3}";
    assert_eq!(success("replicas: 2", elastic), any);
    let policy = "runPolicy: {successPolicy: {operator: Any, roles: [Worker]}}";
    assert_eq!(success("replicas: 2", policy), any);
    let always = success("replicas: 2, restartPolicy: Always", "runPolicy: {}");
    assert!(
        always.starts_with("Success: by a rule of the kind only"),
        "{always}"
    );
}

/// Returns a job with these fields in its spec and in its run policy.
fn managed(spec: &str, policy: &str) -> String {
    format!(
        "\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: elsewhere}}
spec:
  {spec}
  runPolicy: {{{policy}}}
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers: [{{name: pytorch, image: none, command: [\"true\"]}}]
"
    )
}

const OTHER: &str = "managedBy: kueue.x-k8s.io/multikueue";
const OURS: &str = "managedBy: kubeflow.org/training-operator";

#[test]
fn a_job_of_another_controller_is_explained_and_not_run() {
    for (field, spec, policy) in [
        ("spec.managedBy", OTHER, ""),
        ("spec.runPolicy.managedBy", "", OTHER),
        ("spec.runPolicy.managedBy", OTHER, OTHER),
    ] {
        let text = managed(spec, policy);
        let explained = run_with_input(&["explain", "-"], text.as_bytes());
        assert_eq!((explained.code, explained.stderr.as_str()), (Some(0), ""));
        assert!(
            explained.stdout.ends_with(&format!(
                "\nController: {field} names another controller, kueue.x-k8s.io/multikueue: this operator ignores the job. It creates no \
                 pods, writes no status, and sends no events.\n"
            )),
            "{}",
            explained.stdout
        );
        let ran = run_with_input(&["local", "run", "-"], text.as_bytes());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let refusal = format!(
            "{field}: kueue.x-k8s.io/multikueue runs the job, and does not exist here; remove the field to run the job on this \
             machine"
        );
        assert!(ran.stderr.contains(&refusal), "{}", ran.stderr);
    }
}

#[test]
fn either_field_may_name_this_operator_and_both_must_agree() {
    for (spec, policy) in [
        (OURS, ""),
        ("", OURS),
        (OURS, OURS),
        ("managedBy: ''", OURS),
        ("managedBy: ''", ""),
    ] {
        let validated = run_with_input(&["validate", "-"], managed(spec, policy).as_bytes());
        assert_eq!(validated.code, Some(0), "{validated:?}");
        let explained = run_with_input(&["explain", "-"], managed(spec, policy).as_bytes());
        assert!(explained.stdout.contains("Success: "), "{}", explained.stdout);
    }
    for (spec, policy) in [(OURS, OTHER), (OTHER, OURS)] {
        let validated = run_with_input(&["validate", "-"], managed(spec, policy).as_bytes());
        assert_eq!(validated.code, Some(1));
        let error = "spec.managedBy: must have the same value as spec.runPolicy.managedBy; change or remove one of them";
        assert!(validated.stdout.contains(error), "{}", validated.stdout);
    }
    let validated = run_with_input(&["validate", "-"], managed("managedBy: me", "").as_bytes());
    let error = "spec.managedBy: unknown value \"me\"; use one of kubeflow.org/training-operator, kueue.x-k8s.io/multikueue";
    assert!(validated.stdout.contains(error), "{}", validated.stdout);
}
