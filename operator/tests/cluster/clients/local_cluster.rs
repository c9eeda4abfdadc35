//! kubectl on `local cluster`, and on the real API server where both can answer.

use std::ffi::OsStr;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::json;
use training_job_testbed::cluster::{Background, ControlPlane, Output, Program};

/// A local cluster, and the real API server that runs kubectl.
pub(super) struct Local {
    pub(super) real: &'static ControlPlane,
    cluster: Background,
    pub(super) kubeconfig: PathBuf,
    pub(super) namespace: String,
}

impl Local {
    pub(super) async fn start(name: &str) -> Self {
        Self::start_with(name, &[]).await
    }

    pub(super) async fn start_with(name: &str, flags: &[&OsStr]) -> Self {
        let real = ControlPlane::of_default_kinds().await;
        let namespace = real.namespace(name).await;
        let kubeconfig = real.directory().join(format!("{name}.kubeconfig"));
        let cluster = real.spawn(
            Program::new(env!("CARGO_BIN_EXE_training-operator"))
                .args(["local", "cluster", "--kubeconfig"])
                .args([&kubeconfig])
                .args(flags),
        );
        cluster.wait_for_line("cluster ready").await;
        Self {
            real,
            cluster,
            kubeconfig,
            namespace,
        }
    }

    /// Runs kubectl on the local cluster.
    pub(super) async fn kubectl(&self, arguments: &[&str], input: &str) -> Output {
        let kubeconfig = self.kubeconfig.to_str().unwrap();
        let first = ["--kubeconfig", kubeconfig, "--namespace", &self.namespace];
        self.real
            .kubectl_with_input(&[&first[..], arguments].concat(), input)
            .await
    }

    pub(super) async fn run(&self, arguments: &[&str]) -> String {
        self.kubectl(arguments, "").await.success()
    }

    /// Runs kubectl on both, which must print the same except for ages.
    pub(super) async fn same(&self, arguments: &[&str], input: &str) {
        let local = self.kubectl(arguments, input).await;
        let namespaced = [&["--namespace", self.namespace.as_str()][..], arguments].concat();
        let real = self.real.kubectl_with_input(&namespaced, input).await;
        let text = |output: &Output| {
            (
                output.code,
                without_ages(&output.stdout),
                without_ages(&output.stderr),
            )
        };
        assert_eq!(text(&local), text(&real), "local and real: {arguments:?}");
    }

    pub(super) async fn stop(self) {
        self.cluster.signal(Signal::INT);
        assert_eq!(self.cluster.exit_code().await, 0, "{}", self.cluster.text());
        assert!(!self.kubeconfig.exists());
    }
}

/// Replaces ages such as `3s`, and the spaces around them.
fn without_ages(text: &str) -> String {
    let is_age = |word: &str| {
        word.strip_suffix('s')
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let line = |line: &str| {
        let words = line
            .split_whitespace()
            .map(|word| if is_age(word) { "AGE" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A pod whose container `a` ends when the file GATE exists.
const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "talk"}, "spec": {"restartPolicy": "Never",
    "containers": [
        {"name": "a", "image": "none", "command": ["/bin/sh", "-c",
            "echo one; echo two; echo three >&2; until [ -e GATE ]; do sleep 0.1; done; echo last"]},
        {"name": "b", "image": "none", "command": ["/bin/echo", "other"]}]}}"#;

/// Each failure of the job is a warning of the operator, which the lines about the pods show already.
#[tokio::test]
async fn a_smoke_test_that_fails_prints_the_cause_first_and_the_cluster_prints_no_log_lines() {
    let local = Local::start("local-smoke").await;
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "broken"},
        "spec": {"runPolicy": {"backoffLimit": 1}, "pytorchReplicaSpecs": {"Worker": {
            "restartPolicy": "ExitCode",
            "template": {"spec": {"containers": [{"name": "pytorch", "image": "none", "command": [
                "/bin/sh", "-c", "echo 'ValueError: bad' >&2; exit 3",
            ]}]}},
        }}},
    });
    let file = local.real.directory().join("smoke.yaml");
    std::fs::write(&file, job.to_string()).unwrap();
    let program = async |arguments: &[&str]| {
        let program = Program::new(env!("CARGO_BIN_EXE_training-operator"));
        let program = program
            .args(arguments)
            .args(["--kubeconfig"])
            .args([&local.kubeconfig]);
        let run = local.real.spawn(program);
        (run.exit_code().await, run.text())
    };
    let test = [
        "smoke-test",
        file.to_str().unwrap(),
        "--namespace",
        &local.namespace,
    ];
    for keeps in [false, true] {
        let flag: &[&str] = if keeps { &["--keep-failed"] } else { &[] };
        let (code, text) = program(&[&test[..], flag].concat()).await;
        assert_eq!(code, 1, "{text}");
        let at = |line: &str| text.find(line).unwrap_or_else(|| panic!("{line}: {text}"));
        assert!(
            at("cause: worker-0: exit 3\n") < at("  ValueError: bad\n"),
            "{text}"
        );
        assert!(at("  ValueError: bad\n") < at("Failed: "), "{text}");
        let jobs = local.run(&["get", "pytorchjobs", "--output=name"]).await;
        let kept = if keeps {
            "pytorchjob.kubeflow.org/broken\n"
        } else {
            ""
        };
        assert_eq!(jobs, kept);
        at(match keeps {
            false => "the job is deleted; --keep-failed keeps it and its pods",
            true => "the job is kept; delete it with: kubectl delete pytorchjobs broken --namespace ",
        });
    }
    let (code, text) = program(&["doctor"]).await;
    assert_eq!(code, 0, "{text}");
    let printed = local.cluster.text();
    assert!(printed.contains("ValueError: bad"), "{printed}");
    assert!(
        !printed.contains("WARN") && !printed.contains("training_job_"),
        "{printed}"
    );
    local.stop().await;
}

#[tokio::test]
async fn output_is_read_and_commands_run_in_pods() {
    let local = Local::start("local-pods").await;
    let gate = local.real.directory().join("gate-of-talk");
    let gate = gate.to_str().unwrap();
    let pod = POD.replace("GATE", gate);
    local.kubectl(&["create", "-f", "-"], &pod).await.success();
    let ended = "--for=jsonpath={.status.containerStatuses[?(@.name==\"b\")].state.terminated.exitCode}=0";
    local.run(&["wait", "pod/talk", ended, "--timeout=60s"]).await;

    assert_eq!(local.run(&["logs", "talk", "-c", "b"]).await, "other\n");
    let log = format!("/api/v1/namespaces/{}/pods/talk/log", local.namespace);
    let unclear = local.kubectl(&["get", "--raw", &log], "").await;
    assert!(
        unclear.stderr.contains("choose one of: [a b]"),
        "{}",
        unclear.stderr
    );
    let previous = local
        .kubectl(&["logs", "talk", "-c", "b", "--previous"], "")
        .await;
    assert!(
        previous
            .stderr
            .contains("previous terminated container \"b\" in pod \"talk\" not found")
    );
    let limited = local
        .run(&["logs", "talk", "-c", "b", "--limit-bytes=3", "--timestamps"])
        .await;
    assert_eq!(limited.len(), 3);

    let ran = local
        .kubectl(
            &[
                "exec",
                "talk",
                "-c",
                "a",
                "--",
                "sh",
                "-c",
                "echo out; echo err >&2; exit 7",
            ],
            "",
        )
        .await;
    assert_eq!((ran.code, ran.stdout.as_str()), (7, "out\n"), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("err\n"), "{}", ran.stderr);
    let input = local
        .kubectl(&["exec", "-i", "talk", "-c", "a", "--", "cat"], "text")
        .await;
    assert_eq!(input.success(), "text");
    let missing = local
        .kubectl(&["exec", "talk", "-c", "a", "--", "no-such-program"], "")
        .await;
    assert_eq!(missing.code, 127, "{}", missing.stderr);

    // The follower sees what is written after it began.
    let go = [
        "exec",
        "talk",
        "-c",
        "a",
        "--",
        "sh",
        "-c",
        &format!("touch {gate}"),
    ];
    let attach = ["attach", "talk", "-c", "a"];
    let follow = ["logs", "talk", "-c", "a", "--follow", "--tail=1"];
    let (followed, attached, _) =
        tokio::join!(local.run(&follow), local.kubectl(&attach, ""), local.run(&go));
    assert!(followed.ends_with("last\n"), "{followed}");
    assert!(
        attached.code == 0 || attached.stderr.contains("completed pod"),
        "{}",
        attached.stderr
    );
    local
        .run(&[
            "wait",
            "pod/talk",
            "--for=jsonpath={.status.phase}=Succeeded",
            "--timeout=60s",
        ])
        .await;
    let mut lines: Vec<_> = local
        .run(&["logs", "talk", "-c", "a"])
        .await
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(lines, ["last", "one", "three", "two"]);
    local.stop().await;
}

#[tokio::test]
async fn kubectl_prints_the_same_as_on_a_real_api_server() {
    let local = Local::start("local-same").await;
    local.run(&["create", "namespace", "other"]).await;
    for arguments in [
        &["create", "configmap", "settings", "--from-literal=a=b"][..],
        &["create", "secret", "generic", "password", "--from-literal=a=b"],
        &["create", "quota", "few", "--hard=pods=0"],
        &["get", "configmap", "settings"],
        &["get", "configmap", "settings", "-o", "jsonpath={.data}"],
        &["get", "secret", "password"],
        &["label", "configmap", "settings", "x=y"],
        &["annotate", "configmap", "settings", "x=y"],
        &[
            "patch",
            "configmap",
            "settings",
            "-p",
            "{\"data\": {\"c\": \"d\"}}",
        ],
        &["get", "configmap", "settings", "-L", "x"],
        &["create", "-f", "examples/mxnet/train.yaml", "--dry-run=server"],
        &["explain", "mxjob.spec.mxReplicaSpecs", "--recursive"],
        &["auth", "can-i", "create", "pods"],
        &["get", "--raw", "/readyz"],
        &["get", "--raw", "/healthz"],
        &["get", "mxjob", "none"],
        &["logs", "none"],
        &["get", "configmaps,pytorchjobs", "--sort-by=.metadata.name"],
        &["get", "secrets,quota", "--sort-by=.metadata.name"],
        &["delete", "configmap", "settings"],
        &["delete", "secret,quota", "--all"],
    ] {
        local.same(arguments, "").await;
    }
    // kubectl reads OpenAPI v2 for lists, to check their items itself.
    for _ in 0..2 {
        local.same(&["apply", "-f", "-"], LIST).await;
    }
    local
        .same(&["get", "configmaps,pytorchjobs", "--sort-by=.metadata.name"], "")
        .await;
    let misspelled = LIST
        .replace("containers", "kontainers")
        .replace("restartPolicy", "restart");
    local
        .same(&["create", "--dry-run=client", "-f", "-"], &misspelled)
        .await;
    local.same(&["delete", "-f", "-"], LIST).await;
    for (kind, roles) in [
        (
            "MXJob",
            "mxReplicaSpecs: {Server: {template: {spec: {containers: [{name: x, image: i}]}}}}",
        ),
        (
            "MXJob",
            "mxReplicaSpecs: {Worker: {replicas: -1, template: {spec: {containers: [{name: mxnet, image: i}]}}}}",
        ),
        (
            "PyTorchJob",
            "pytorchReplicaSpecs: {Worker: {restartPolicy: Sometimes, template: {spec: {containers: []}}}}",
        ),
        ("TFJob", "tfReplicaSpecs: {}"),
        (
            "XGBoostJob",
            "xgbReplicaSpecs: {Typo: {template: {spec: {containers: [{name: xgboost, image: i}]}}}}",
        ),
    ] {
        let job = format!(
            "apiVersion: kubeflow.org/v1\nkind: {kind}\nmetadata: {{name: bad}}\nspec: {{{roles}}}\n"
        );
        local.same(&["create", "-f", "-"], &job).await;
    }
    local.stop().await;
}

/// A service, and a job that does not start.
const LIST: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "listed"}, "spec": {"clusterIP": "None",
        "selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": "http"}]}},
    {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "listed"}, "spec":
        {"runPolicy": {"suspend": true}, "pytorchReplicaSpecs": {"Worker": {"replicas": 1, "restartPolicy": "OnFailure",
            "template": {"spec": {"containers": [{"name": "pytorch", "image": "none"}]}}}}}}]}"#;

const GATED: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "short"}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "a", "image": "none", "command": ["/bin/echo", "kept"]}]}},
    {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "long"}, "spec":
        {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "restartPolicy": "OnFailure", "template": {"spec":
            {"containers": [{"name": "pytorch", "image": "none", "command": ["/bin/sh", "-c",
                "until [ -e GATE ]; do sleep 0.1; done"]}]}}}}}}]}"#;

#[tokio::test]
async fn objects_and_output_outlive_a_killed_cluster() {
    let data = std::env::temp_dir().join(format!("local-data-{}", std::process::id()));
    let local = Local::start_with("local-data", &["--data".as_ref(), data.as_ref()]).await;
    let gate = local.real.directory().join("gate-of-data");
    let objects = GATED.replace("GATE", gate.to_str().unwrap());
    local.kubectl(&["apply", "-f", "-"], &objects).await.success();
    let succeeded = "--for=jsonpath={.status.phase}=Succeeded";
    local
        .run(&["wait", "pod/short", succeeded, "--timeout=60s"])
        .await;
    let running = "--for=jsonpath={.status.phase}=Running";
    let workers = [
        "wait",
        "pod/long-worker-0",
        "pod/long-worker-1",
        running,
        "--timeout=60s",
    ];
    local.run(&workers).await;
    let uids = [
        "get",
        "pod/short",
        "pytorchjob/long",
        "-o",
        "jsonpath={.items[*].metadata.uid}",
    ];
    let before = local.run(&uids).await;
    local.cluster.signal(Signal::KILL);
    assert_ne!(local.cluster.exit_code().await, 0);

    let namespace = local.namespace;
    let local = Local {
        namespace,
        ..Local::start_with("local-data", &["--data".as_ref(), data.as_ref()]).await
    };
    assert_eq!(local.run(&uids).await, before);
    assert_eq!(local.run(&["logs", "short"]).await, "kept\n");
    let restarted = "--for=jsonpath={.status.restartCount}=1";
    local
        .run(&["wait", "pytorchjob/long", restarted, "--timeout=60s"])
        .await;
    std::fs::write(&gate, "").unwrap();
    let ended = "--for=condition=Succeeded";
    local
        .run(&["wait", "pytorchjob/long", ended, "--timeout=60s"])
        .await;
    local.stop().await;
    std::fs::remove_dir_all(data).unwrap();
}
