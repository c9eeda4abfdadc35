//! Options, and commands that this machine lacks.

use std::fs;

use serde_json::{Value, json};
use training_operator_testing::local_run::manifest::{Manifest, examples};
use training_operator_testing::local_run::run::Run;
use training_operator_testing::local_run::trial::{Trial, local_run, train};

#[test]
fn kept_logs_are_files() {
    let trial = Trial::new();
    let logs = trial.dir.join("logs/deep");
    let job = Manifest::shell("noisy", 2, "echo out of $$HOSTNAME; echo err >&2");
    let mut run = local_run();
    run.arg("--keep-logs").arg(&logs).arg(trial.write(&job));
    let ended = Run::start(&mut run).end();
    ended.expect_code(0);
    ended.only(&[&format!(
        "training-operator: the logs are below {}",
        logs.display()
    )]);
    for index in 0..2 {
        let file = logs.join(format!("default/noisy-worker-{index}.log"));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["err", &format!("out of noisy-worker-{index}")]);
    }
}

#[test]
fn option_why_lists_the_differences_from_a_cluster() {
    let _trial = Trial::new();
    let mut run = train(&examples());
    run.arg("--why").arg(examples().join("train.yaml"));
    let mut run = Run::start(&mut run);
    // The first replica that starts shows the differences of all, whichever it is. The training is not needed for this output.
    let kubernetes = run.line(&[" ? DMLC_USE_KUBERNETES"]);
    run.line(&["worker-0 | worker rank="]);
    run.signal(rustix::process::Signal::INT);
    let ended = run.end();
    ended.expect_code(130);
    assert!(
        kubernetes.contains("1 → 0") || kubernetes.contains("1 -> 0"),
        "{kubernetes}"
    );
    // A difference of all replicas is shown once.
    let root = ended.only(&[" ? DMLC_PS_ROOT_URI", "spirals-scheduler-0"]);
    assert!(root.contains("127."), "{root}");
    ended.only(&[" ? image", "example.com/mxnet-train:1.9.1"]);
    for replica in super::training::REPLICAS {
        ended.only(&[&format!("{replica} ? DMLC_NODE_HOST"), "127."]);
    }
}

#[test]
fn without_why_no_differences_are_listed() {
    let trial = Trial::new();
    let ended = trial.run(&Manifest::shell("quiet", 1, "exit 0")).end();
    assert_eq!(ended.all(&[" ? "]), [""; 0]);
}

#[test]
fn the_working_directory_is_the_manifests_or_the_given_one() {
    let trial = Trial::new();
    let job = Manifest::shell("where", 1, "pwd");
    let ended = trial.run(&job).end();
    ended.only(&["worker-0 | ", &trial.dir.display().to_string()]);

    let other = trial.dir.join("other");
    fs::create_dir(&other).unwrap();
    let ended = trial
        .run_with(&job, &["--workdir", other.to_str().unwrap()])
        .end();
    ended.only(&["worker-0 | ", &other.display().to_string()]);
}

#[test]
fn a_missing_directory_is_named() {
    let trial = Trial::new();
    let file = trial.write(&Manifest::shell("nowhere", 1, "echo never"));
    for option in ["--workdir", "--venv", "--path"] {
        let ended = Run::start(local_run().args([option, "/not/there"]).arg(&file)).end();
        ended.expect_code(2);
        let err = ended.err.join("\n");
        assert!(
            err.contains("/not/there") && err.contains("does not exist"),
            "{option}: {err}"
        );
        assert_eq!(ended.all(&["never"]), [""; 0]);
    }
}

#[test]
fn a_program_that_this_machine_lacks_is_named_with_the_remedy() {
    let trial = Trial::new();
    let job = Manifest::shell("absent", 1, "").command(&json!(["no-such-program", "train.py"]));
    let ended = trial.run(&job).end();
    ended.expect_code(1);
    ended.only(&["  failed: absent-worker-0 (container mxnet) exited with 127"]);
    let remedy = ended.only(&["    | ", "\"no-such-program\" is not in PATH"]);
    assert!(remedy.contains("--path") && remedy.contains("--venv"), "{remedy}");
}

/// The kubelet would restart it forever. On one machine a restart changes nothing.
#[test]
fn a_program_that_cannot_be_started_ends_the_run_at_once_with_the_remedy() {
    let trial = Trial::new();
    let job = Manifest::shell("vain", 1, "")
        .command(&json!(["no-such-program"]))
        .restart_policy("OnFailure");
    let ended = trial.run(&job).end();
    ended.expect_code(1);
    assert_eq!(
        ended.err.last().unwrap(),
        "training-operator: vain-worker-0 cannot start: \"no-such-program\" is not in PATH; images are not pulled; name \
         its directory with --path or --venv"
    );
}

/// The kubelet restarts the container once more before the job fails, and the run stops it.
#[test]
fn the_replica_that_exceeds_the_limit_has_its_own_exit_code_and_the_counted_restarts() {
    let trial = Trial::new();
    let job = Manifest::shell("limited", 1, "exit 3")
        .restart_policy("OnFailure")
        .policy("backoffLimit", 1);
    let ended = trial.run(&job).end();
    ended.expect_code(1);
    ended.only(&[
        "failed: limited-worker-0",
        " exited with 3; backoffLimit 1 is used up",
    ]);
    assert_eq!(ended.all(&["    | "]), [""; 0], "it printed nothing");
    let table = ended.table();
    let row = &table["worker-0"];
    assert_eq!(
        (&*row.phase, row.exit, row.restarts),
        ("Failed", Some(3), 1),
        "{}",
        ended.transcript()
    );
    assert_eq!(ended.all(&["restart 2"]), [""; 0]);
}

#[test]
fn python_prints_at_once_in_each_kind_unless_the_user_decides() {
    let trial = Trial::new();
    let job = Manifest::shell("prints", 1, "echo is $PYTHONUNBUFFERED");
    let ended = trial.run(&job).end();
    ended.only(&["worker-0 | is 1"]);
    let ended = trial.run_with(&job, &["-e", "PYTHONUNBUFFERED=0"]).end();
    ended.only(&["worker-0 | is 0"]);
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_start() {
    let trial = Trial::new();
    let ended = trial
        .run_with(
            &Manifest::shell("never", 1, "true"),
            &["--report", "/nonexistent/x.html"],
        )
        .end();
    ended.expect_code(2);
    assert!(
        ended
            .err
            .concat()
            .contains("--report /nonexistent/x.html: the file cannot be written")
    );
    assert_eq!(ended.all(&["never"]), [""; 0]);
}

#[test]
fn variables_are_given_to_the_processes() {
    let trial = Trial::new();
    let file = trial.file("variables", "# Of this project\nA=file\nB=file\n");
    let job = Manifest::shell("asks", 1, "echo $A-$B-$C-$DMLC_ROLE");
    let ended = trial
        .run_with(
            &job,
            &[
                "--env-file",
                file.to_str().unwrap(),
                "-e",
                "B=flag",
                "--env",
                "C=x=y",
                "-e",
                "DMLC_ROLE=none",
            ],
        )
        .end();
    ended.expect_code(0);
    ended.only(&["worker-0 | file-flag-x=y-worker"]);
    let ended = trial.run_with(&job, &["-e", "NOT_IN_THIS_SHELL"]).end();
    ended.expect_code(2);
    let remedy = "--env: NOT_IN_THIS_SHELL is not set in this shell; set it, or use NOT_IN_THIS_SHELL=VALUE";
    assert!(ended.err.concat().contains(remedy), "{}", ended.transcript());
}

#[test]
fn fields_are_set_before_the_check() {
    let trial = Trial::new();
    let job = Manifest::shell("changed", 1, "exit 3").restart_policy("ExitCode");
    let workers = "spec.mxReplicaSpecs.Worker.replicas=2";
    let ended = trial
        .run_with(
            &job,
            &[
                "--set",
                workers,
                "--set",
                "spec.mxReplicaSpecs.Worker.template.spec.containers[0].args=[]",
                "--set",
                "spec.mxReplicaSpecs.Worker.template.spec.containers[0].command=[echo, set]",
            ],
        )
        .end();
    ended.expect_code(0);
    ended.only(&["worker-0 | set"]);
    ended.only(&["worker-1 | set"]);
    let ended = trial
        .run_with(&job, &["--set", "spec.mxReplicaSpecs.Worker.replicas=two"])
        .end();
    ended.expect_code(2);
    let error = "spec.mxReplicaSpecs.Worker.replicas: must be an integer (is \"two\")";
    assert!(ended.err.concat().contains(error), "{}", ended.transcript());
    let ended = trial.run_with(&job, &["--set", "spec.jobMode.x=1"]).end();
    ended.expect_code(2);
    let error =
        "spec.jobMode.x: cannot be set, because spec.jobMode is not an object; change the path of --set";
    assert!(ended.err.concat().contains(error), "{}", ended.transcript());
}

#[test]
fn the_output_of_one_replica_is_shown() {
    let trial = Trial::new();
    let job = Manifest::shell("chatty", 2, "echo words");
    let ended = trial.run_with(&job, &["--only", "worker-1"]).end();
    ended.expect_code(0);
    assert_eq!(ended.all(&[" | "]), ["worker-1 | words"]);
    ended.only(&["worker-0 * Succeeded"]);
    let ended = trial.run_with(&job, &["--only", "worker-2"]).end();
    ended.expect_code(2);
    let last = ended.err.last().unwrap();
    assert_eq!(
        last,
        "training-operator: --only: no job has the replica worker-2; use one of worker-0 to worker-1"
    );
}

#[test]
fn the_result_is_json() {
    let trial = Trial::new();
    let job = Manifest::shell("counted", 1, "echo words; exit 3");
    let ended = trial.run_with(&job, &["--output", "json"]).end();
    ended.expect_code(1);
    assert!(
        ended.err.iter().any(|line| line == "worker-0 | words"),
        "{}",
        ended.transcript()
    );
    let result: Value = serde_json::from_str(&ended.out.join("\n")).unwrap();
    assert_eq!(result["succeeded"], false);
    let job = &result["jobs"][0];
    assert_eq!(
        json!([
            job["kind"],
            job["name"],
            job["condition"],
            job["restarts"],
            job["failure"]["exitCode"]
        ]),
        json!(["MXJob", "counted", "Failed", 0, 3])
    );
    let timeline: Vec<_> = job["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| &event["condition"])
        .collect();
    assert_eq!(
        (timeline[0], timeline.last()),
        (&json!("Created"), Some(&&json!("Failed")))
    );
    let replica = &job["replicas"][0];
    assert_eq!(
        json!([
            replica["name"],
            replica["role"],
            replica["phase"],
            replica["exitCode"]
        ]),
        json!(["counted-worker-0", "Worker", "Failed", 3])
    );
}

/// A progress bar writes no line feed before its end.
#[test]
fn a_line_that_overwrites_itself_is_shown_before_its_end() {
    let trial = Trial::new();
    let script = "printf '\\r10%%'; sleep 1.5; printf '\\r60%%'; sleep 0.1; printf '\\r100%%\\n'";
    let ended = trial.run(&Manifest::shell("bar", 1, script)).end();
    ended.expect_code(0);
    let bar: Vec<_> = ended.all(&["worker-0 | ", "%"]);
    assert_eq!(bar, ["worker-0 | 10%", "worker-0 | 60%", "worker-0 | 100%"]);
}

/// Nothing can add the key in this API.
#[test]
fn a_value_that_cannot_be_had_ends_the_run() {
    let trial = Trial::new();
    let key = json!({"configMapKeyRef": {"name": "settings", "key": "rate"}});
    let job = Manifest::shell("lacking", 1, "exit 0")
        .each_container(|container| container["env"] = json!([{"name": "RATE", "valueFrom": key}]));
    let settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {epochs: '3'}}";
    let settings = trial.file("settings.yaml", settings);
    let ended = trial.run_with(&job, &[settings.to_str().unwrap()]).end();
    ended.expect_code(1);
    let line = ended.err.join("\n");
    assert!(
        line.contains("lacking-worker-0") && line.contains("rate"),
        "{line}"
    );
}

/// This machine has no gang scheduler and needs none.
#[test]
fn another_scheduler_is_not_waited_for() {
    let trial = Trial::new();
    let job = Manifest::shell("gang", 2, "exit 0")
        .each_role(|role| role["template"]["spec"]["schedulerName"] = json!("volcano"));
    let ended = trial.run_with(&job, &["--why"]).end();
    ended.expect_code(0);
    ended.only(&[" ? schedulerName", "volcano"]);
}

#[test]
fn a_command_runs_without_a_manifest() {
    let _trial = Trial::new();
    let command = "echo $RANK of $WORLD_SIZE";
    let arguments = [
        "--kind",
        "pytorch",
        "--workers",
        "2",
        "--name",
        "plain",
        "--print-job",
    ];
    let ended = Run::start(local_run().args(arguments).args(["--", "sh", "-c", command])).end();
    ended.expect_code(0);
    ended.only(&["worker-0 | 0 of 2"]);
    ended.only(&["worker-1 | 1 of 2"]);
    let err = ended.err.join("\n");
    assert!(
        err.contains("kind: PyTorchJob\nmetadata:\n  name: plain\n"),
        "{err}"
    );

    let without = Run::start(local_run().args(["--kind", "pytorch"])).end();
    without.expect_code(2);
    let err = without.err.concat();
    assert!(err.contains("<COMMAND>"), "{err}");
    let words = Run::start(local_run().args(["--kind", "torch", "python3", "net.py"])).end();
    words.expect_code(2);
    let remedy = "must follow --; write: training-operator local run --kind torch -- python3 net.py";
    assert!(words.err.concat().contains(remedy), "{}", words.transcript());
    // A number of workers needs a kind, because the workers of a file are in the file.
    let file = Run::start(local_run().args(["job.yaml", "--workers", "2"])).end();
    file.expect_code(2);
    assert!(file.err.concat().contains("--kind"), "{}", file.transcript());
}
