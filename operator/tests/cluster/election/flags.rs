//! Invalid and valid flags, and their environment variables.

use std::collections::BTreeSet;
use std::net::TcpListener;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use serde_json::json;
use training_job::api::ConditionType;
use training_job_tensorflow::TFJob;
use training_job_testbed::cluster::{ControlPlane, On, Program};
use training_operator_testing::operator::{Operator, command, of_all_kinds};

use super::candidates::control_plane;
use crate::rig::jobs::{is, job};
use crate::rig::stage::Stage;

const PROGRAM: &str = env!("CARGO_BIN_EXE_training-operator");

/// Runs `run` with these flags and variables. Returns the exit code and the output.
async fn ends(flags: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let cluster = control_plane().await;
    let program = Program::new(PROGRAM).args(["run"]).args(flags);
    let program = variables
        .iter()
        .fold(program, |program, (name, value)| program.env(name, value));
    let ended = cluster.spawn(program);
    (ended.exit_code().await, ended.text())
}

#[tokio::test]
async fn invalid_flags_are_reported_with_an_exit_code() {
    let usage = r#"
        --enable-scheme=MXJob,PyJob | --enable-scheme: "PyJob" is not supported; must be one of MXJob, TFJob, XGBoostJob, PyTorchJob, JAXJob, PaddleJob, MPIJob
        --leader-election-renew-deadline=15s | --leader-election-renew-deadline must be less than --leader-election-lease-duration
        --leader-election-retry-period=10s | --leader-election-retry-period must be less than --leader-election-renew-deadline
        --leader-election-retry-period=0s | --leader-election-retry-period must be more than 0s
        --leader-election-lease-duration=20500ms | --leader-election-lease-duration must be whole seconds
        --leader-election-id= | --leader-election-id must not be empty
        --namespace=Foo_Bar | '--namespace <NAME>': must be the name of a namespace:
        --no-such-flag | unexpected argument '--no-such-flag'
    "#;
    for (flag, message) in usage
        .trim()
        .lines()
        .map(|row| row.trim().split_once(" | ").unwrap())
    {
        let (code, text) = ends(&[flag], &[]).await;
        assert!(code == 2 && text.contains(message), "{flag}: {code}\n{text}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for flag in ["--metrics-bind-address", "--health-probe-bind-address"] {
        let given = format!("{flag}={address}");
        let nothing = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];
        let other = nothing
            .into_iter()
            .find(|other| !other.starts_with(flag))
            .unwrap();
        let (code, text) = ends(&[&given, other], &[]).await;
        let message = format!("{flag} {address}: Address already in use");
        assert!(code == 1 && text.contains(&message), "{flag}: {code}\n{text}");
    }
    let nowhere = [("KUBECONFIG", "/nowhere"), ("HOME", "/nowhere")];
    for (flags, variables) in [
        (&[][..], &nowhere[..]),
        (&["--kubeconfig=/nowhere/else"][..], &[][..]),
    ] {
        let (code, text) = ends(flags, variables).await;
        assert_eq!(code, 1, "{text}");
        let message = "failed to find a cluster";
        assert!(
            text.contains(message) && text.contains("set --kubeconfig or KUBECONFIG"),
            "{text}"
        );
    }
}

/// Each variable, a value, and output that shows that the value is read. A flag without effect, and a setting that affects
/// pods, only show that the operator starts.
const VARIABLES: &str = r#"
KUBEFLOW_NAMESPACE | team | namespace="team"
TRAINING_OPERATOR_ENABLE_SCHEME | PyJob | --enable-scheme: "PyJob"
TRAINING_OPERATOR_CLUSTER_DOMAIN | no domain | --cluster-domain
TRAINING_OPERATOR_CONTROLLER_THREADS | 0 | --controller-threads
TRAINING_OPERATOR_DEFAULT_CLEAN_POD_POLICY | Some | --default-clean-pod-policy
TRAINING_OPERATOR_DEFAULT_RESTART_SCOPE | Cluster | --default-restart-scope
TRAINING_OPERATOR_FORCE_DELETE_AFTER | soon | --force-delete-after
TRAINING_OPERATOR_LEADER_ELECT | perhaps | --leader-elect
TRAINING_OPERATOR_LEADER_ELECTION_ID |  | --leader-election-id must not be empty
TRAINING_OPERATOR_LEADER_ELECTION_NAMESPACE | nowhere | namespaces "nowhere" not found
TRAINING_OPERATOR_LEADER_ELECTION_LEASE_DURATION | soon | --leader-election-lease-duration
TRAINING_OPERATOR_LEADER_ELECTION_RENEW_DEADLINE | soon | --leader-election-renew-deadline
TRAINING_OPERATOR_LEADER_ELECTION_RETRY_PERIOD | soon | --leader-election-retry-period
TRAINING_OPERATOR_METRICS_BIND_ADDRESS | here | --metrics-bind-address here
TRAINING_OPERATOR_HEALTH_PROBE_BIND_ADDRESS | here | --health-probe-bind-address here
TRAINING_OPERATOR_GANG_SCHEDULER_NAME | volcano | podgroups.scheduling.volcano.sh
TRAINING_OPERATOR_HISTORY | /dev/null/history | --history /dev/null/history
TRAINING_OPERATOR_HISTORY_MAX_AGE | soon | --history-max-age
TRAINING_OPERATOR_HISTORY_MAX_BYTES | much | --history-max-bytes
TRAINING_OPERATOR_HISTORY_MAX_JOBS | 0 | --history-max-jobs
TRAINING_OPERATOR_ZAP_DEVEL | perhaps | --zap-devel
TRAINING_OPERATOR_ZAP_ENCODER | xml | --zap-encoder
TRAINING_OPERATOR_ZAP_LOG_LEVEL | loud | --zap-log-level
TRAINING_OPERATOR_ZAP_STACKTRACE_LEVEL | error | running jobs
TRAINING_OPERATOR_PYTORCH_INIT_CONTAINER_IMAGE | example.com/wait:1 | running jobs
TRAINING_OPERATOR_PYTORCH_INIT_CONTAINER_MAX_TRIES | 4321 | running jobs
TRAINING_OPERATOR_MPI_KUBECTL_DELIVERY_IMAGE | example.com/kubectl:1 | running jobs
TRAINING_OPERATOR_MPI_REMOTE_SHELL_IMAGE | example.com/operator:1 | running jobs
"#;

/// Returns the rows of the table of variables.
fn variables() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    VARIABLES.trim().lines().map(|row| {
        let [variable, value, shows] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row} has not three columns");
        };
        (variable, value, shows)
    })
}

/// The variables of settings that concern a single kind.
const SETTINGS: [(&str, &str); 3] = [
    (
        "TRAINING_OPERATOR_PYTORCH_INIT_CONTAINER_IMAGE",
        "example.com/wait:1",
    ),
    ("TRAINING_OPERATOR_PYTORCH_INIT_CONTAINER_MAX_TRIES", "4321"),
    (
        "TRAINING_OPERATOR_MPI_KUBECTL_DELIVERY_IMAGE",
        "example.com/kubectl:1",
    ),
];

#[tokio::test]
async fn each_flag_can_be_given_by_a_variable() {
    let cluster = control_plane().await;
    for (variable, value, shows) in variables() {
        let mut program = Program::new(PROGRAM).args(["run"]).env(variable, value);
        for (name, address) in [
            ("TRAINING_OPERATOR_METRICS_BIND_ADDRESS", "0"),
            ("TRAINING_OPERATOR_HEALTH_PROBE_BIND_ADDRESS", "0"),
        ] {
            if name != variable {
                program = program.env(name, address);
            }
        }
        if variable.ends_with("ELECTION_NAMESPACE") {
            program = program.args(["--leader-elect"]);
        } else {
            // The other variables need only one kind.
            program = program.args(
                ["--enable-scheme=MXJob"]
                    .into_iter()
                    .filter(|_| !variable.ends_with("SCHEME")),
            );
        }
        if variable != "KUBEFLOW_NAMESPACE" {
            program = program.env("KUBEFLOW_NAMESPACE", "nowhere");
        }
        cluster.spawn(program).wait_for_line(shows).await;
    }
    // The table must contain every variable of the help text.
    let help = cluster.spawn(Program::new(PROGRAM).args(["run", "--help"]));
    assert_eq!(help.exit_code().await, 0);
    let text = help.text();
    let told = text
        .split("[env: ")
        .skip(1)
        .map(|rest| rest.split('=').next().unwrap().trim());
    let told: BTreeSet<_> = told.filter(|name| !name.ends_with("TIME_ENCODING")).collect();
    assert_eq!(told, variables().map(|(name, ..)| name).collect());
}

#[tokio::test]
async fn settings_of_single_kinds_show_in_their_pods() {
    let cluster = control_plane().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("settings").await;
    let flags = ["--enable-scheme=PyTorchJob,MPIJob", "--namespace", &namespace];
    let program = SETTINGS.iter().fold(
        command(&cluster.kubeconfig(), &flags),
        |program, (name, value)| program.env(name, value),
    );
    let operator = Operator(cluster.spawn(program));
    let role = |container: &str| {
        let containers = json!([{"name": container, "image": "i"}]);
        json!({"replicas": 1, "template": {"spec": {"containers": containers}}})
    };
    let jobs = [
        json!({
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "torch"},
            "spec": {"pytorchReplicaSpecs": {"Master": role("pytorch"), "Worker": role("pytorch")}},
        }),
        json!({
            "apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": "mpi"},
            "spec": {"launcherCreationPolicy": "AtStartup", "mpiReplicaSpecs": {"Launcher": role("mpi")}},
        }),
    ];
    for job in jobs {
        cluster.create(&namespace, &job).await;
    }
    let init = async |pod: &str| {
        let found = cluster.wait::<Pod>(&namespace, pod, |pod| pod.is_some()).await;
        let spec = found.and_then(|pod| pod.spec).unwrap();
        serde_json::to_value(spec.init_containers).unwrap()
    };
    let (waits, brings) = (init("torch-worker-0").await, init("mpi-launcher").await);
    assert_eq!(waits[0]["image"], SETTINGS[0].1);
    assert!(waits[0].to_string().contains(SETTINGS[1].1), "{waits}");
    assert_eq!(brings[0]["image"], SETTINGS[2].1);
    operator.expect_well();
}

/// The variables that deployments of older operators set.
#[tokio::test]
async fn flags_take_precedence_over_variables_and_variables_over_detected_values() {
    // It takes precedence over KUBECONFIG, which each program of a test has.
    let (code, text) = ends(&[], &[("USE_KUBE_CONFIG", "/nowhere/at-all")]).await;
    assert!(code == 1 && text.contains("/nowhere/at-all"), "{code}\n{text}");

    let cluster = control_plane().await;
    let namespace = cluster.namespace("older").await;
    let kubeconfig = format!("--kubeconfig={}", cluster.kubeconfig().display());
    let run = |flags: &[&str], own: &str| {
        let always = [
            "run",
            "--leader-elect",
            "--leader-election-id=older",
            "--enable-scheme=MXJob",
        ];
        let nowhere = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];
        let program = Program::new(PROGRAM).args(always).args(nowhere).args(flags);
        let program = program
            .env("MY_POD_NAMESPACE", own)
            .env("MY_POD_NAME", "pod-of-mine");
        let older = if flags.iter().any(|flag| flag.starts_with("--kubeconfig")) {
            "/nowhere"
        } else {
            ""
        };
        cluster.spawn(
            program
                .env("KUBEFLOW_NAMESPACE", "nowhere")
                .env("USE_KUBE_CONFIG", older),
        )
    };
    // An empty variable counts as unset.
    run(&[], "nowhere")
        .wait_for_line("namespaces \"nowhere\" not found")
        .await;
    let behind_flags = ["--leader-election-namespace=elsewhere"];
    run(&behind_flags, "nowhere")
        .wait_for_line("namespaces \"elsewhere\" not found")
        .await;
    // A flag takes precedence over the variable.
    let program = run(&[&kubeconfig], &namespace);
    let is_held = |lease: Option<&Lease>| {
        let holder = lease.and_then(|lease| lease.spec.as_ref()?.holder_identity.as_deref());
        holder.is_some_and(|holder| holder.starts_with("pod-of-mine_"))
    };
    cluster.wait::<Lease>(&namespace, "older", is_held).await;
    drop(program);
}

#[tokio::test]
async fn jobs_of_other_namespaces_and_kinds_are_not_touched() {
    let cluster = control_plane().await;
    let stage = Stage::of(cluster, "here").await;
    let elsewhere = Stage::of(cluster, "elsewhere").await;
    elsewhere.create(job("a", 1)).await;
    let api: Api<TFJob> = Api::namespaced(cluster.client(), &stage.namespace);
    let tf = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "tf"},
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": {"containers": [
            {"name": "tensorflow", "image": "i"}
        ]}}}}},
    });
    api.create(&Default::default(), &serde_json::from_value(tf).unwrap())
        .await
        .unwrap();
    let operator = stage.operator_with(&["--enable-scheme", "mxjob"]);
    stage.create(job("a", 1)).await;
    stage.until_all_run("a", 1).await;
    stage.succeed("a", 1).await;
    assert!(elsewhere.jobs().get("a").await.unwrap().status.is_none());
    assert!(!is(
        &elsewhere.jobs().get("a").await.unwrap(),
        ConditionType::Created
    ));
    assert!(api.get("tf").await.unwrap().status.is_none());
    for call in stage.proxy.calls() {
        assert_eq!(call.namespace, stage.namespace, "{}", call.summary());
    }
    assert_eq!(stage.proxy.count(&On::resource("tfjobs")), 0);
    assert_eq!(stage.proxy.count(&On::resource("xgboostjobs")), 0);
    assert_eq!(stage.proxy.count(&On::resource("pytorchjobs")), 0);

    // Each line is one JSON object. Each decision includes its replica.
    let log = operator.log();
    let made = log
        .iter()
        .find(|line| line["message"] == "created pod a-worker-0")
        .unwrap();
    let fields = ["kind", "namespace", "job", "role", "level"].map(|f| made[f].as_str().unwrap_or_default());
    assert_eq!(fields, ["MXJob", &stage.namespace, "a", "Worker", "INFO"]);
    assert_eq!(made["index"], 0, "a number, as in the lines about failures");
    operator.expect_well();
}

/// The default is the whole cluster.
#[tokio::test]
async fn without_flags_all_namespaces_and_default_kinds_are_served() {
    let cluster = ControlPlane::start(Default::default()).await;
    let stage = Stage::of(&cluster, "all").await;
    let operator = Operator(cluster.spawn(of_all_kinds(stage.proxy.kubeconfig())));
    stage.create(job("a", 1)).await;
    stage.until_all_run("a", 1).await;
    for kind in [
        "mxjobs",
        "tfjobs",
        "xgboostjobs",
        "pytorchjobs",
        "jaxjobs",
        "paddlejobs",
        "pods",
        "services",
    ] {
        stage.proxy.watched(kind, 1).await;
    }
    let mut watches = stage
        .proxy
        .calls()
        .into_iter()
        .filter(|call| call.verb == "watch");
    assert!(watches.all(|call| call.namespace.is_empty() && call.resource != "mpijobs"));
    operator.expect_well();
}
