//! `training-operator remote-shell` as launchers call it: by the script of a job's ConfigMap, with the permissions of
//! the job's own service account, through a real API server to a server that runs the exec code of a kubelet.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tokio::sync::OnceCell;
use training_job_testbed::cluster::{Background, ControlPlane, Kubelet, Options, Program};
use training_operator_testing::program::{empty_directory, run, run_with_input};
use training_operator_testing::venv::venv;

const PROGRAM: &str = env!("CARGO_BIN_EXE_training-operator");
const NODE: &str = "answers-exec";

/// A control plane with a node that serves exec.
struct Cluster {
    plane: ControlPlane,
    _node: Background,
}

async fn cluster() -> &'static Cluster {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    CLUSTER
        .get_or_init(async || {
            let plane = ControlPlane::start_at_once(Options::default()).await;
            // The commands include those of Open MPI.
            let path = format!(
                "{}:{}",
                venv("mpi").join("bin").display(),
                std::env::var("PATH").unwrap()
            );
            let node = plane.answering_node(NODE, "PATH", path).await;
            Cluster { plane, _node: node }
        })
        .await
}

/// A job whose workers run, and the environment of its launcher.
struct Launcher {
    cluster: &'static Cluster,
    namespace: String,
    kubelet: Kubelet,
    kubeconfig: PathBuf,
    directory: PathBuf,
    script: PathBuf,
    hosts: PathBuf,
}

impl Launcher {
    /// Creates the objects that an operator with these flags creates for a job with two workers of two containers
    /// each.
    async fn new(name: &str, flags: &[&str]) -> Self {
        let cluster = cluster().await;
        let plane = &cluster.plane;
        let namespace = plane.namespace(name).await;
        let role = |replicas: u32| {
            let containers = json!([{"name": "proxy", "image": "none"}, {"name": "mpi", "image": "none"}]);
            json!({"replicas": replicas, "template": {"spec": {"containers": containers}}})
        };
        let job = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": "job", "namespace": namespace},
            "spec": {"mainContainer": "mpi", "mpiReplicaSpecs": {"Launcher": role(1), "Worker": role(2)}},
        });
        let rendered = run_with_input(
            &[&["render", "-", "--output", "json"], flags].concat(),
            job.to_string().as_bytes(),
        );
        assert_eq!(rendered.code, Some(0), "{}", rendered.stderr);
        let rendered: Value = rendered.stdout.parse().unwrap();
        let directory = empty_directory(&format!("remote-shell-{name}"));
        let [script, hosts] = ["kubexec.sh", "hostfile"].map(|file| directory.join(file));
        let kubelet = plane.kubelet(&namespace).await;
        for object in rendered["items"].as_array().unwrap() {
            let mut object = object.clone();
            // The job does not exist, and the garbage collector would delete objects that it owns.
            object["metadata"]["ownerReferences"] = json!([]);
            plane.create(&namespace, &object).await;
            if let Some(text) = object["data"]["kubexec.sh"].as_str() {
                let here = text.replace("/opt/kube", directory.to_str().unwrap());
                assert_ne!(here, text);
                fs::write(&script, here).unwrap();
                fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
                fs::write(&hosts, object["data"]["hostfile"].as_str().unwrap()).unwrap();
            }
        }
        let installed = run(&["remote-shell", "install", directory.to_str().unwrap()]);
        assert_eq!(installed.code, Some(0), "{}", installed.stderr);
        let kubeconfig = plane
            .kubeconfig_once_allowed(&namespace, "job-launcher", "list", "pods")
            .await;
        let launcher = Self {
            cluster,
            namespace,
            kubelet,
            kubeconfig,
            directory,
            script,
            hosts,
        };
        for worker in ["job-worker-0", "job-worker-1"] {
            launcher.runs(worker).await;
        }
        launcher
    }

    async fn with_own_shell(name: &str) -> Self {
        Self::new(
            name,
            &["--mpi-remote-shell-image=example.com/training-operator:1"],
        )
        .await
    }

    async fn create_pod(&self, name: &str) {
        let containers = json!([{"name": "mpi", "image": "none"}]);
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers},
        });
        self.cluster.plane.create(&self.namespace, &pod).await;
    }

    async fn runs(&self, pod: &str) {
        self.kubelet.bind(pod, NODE).await;
        self.kubelet.runs(pod).await;
    }

    /// Calls the script as `mpirun` does.
    async fn shell(&self, pod: &str, words: &[&str]) -> Output {
        let mut command = Command::new(&self.script);
        self.call(command.arg(pod).args(words), b"").await
    }

    /// Calls the program itself.
    async fn exec(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = Command::new(self.directory.join("training-operator"));
        self.call(command.args(["remote-shell", "exec"]).args(arguments), input)
            .await
    }

    async fn call(&self, command: &mut Command, input: &[u8]) -> Output {
        let command = command.env("KUBECONFIG", &self.kubeconfig);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let input = input.to_owned();
        let ended = tokio::task::spawn_blocking(move || {
            let writer = std::thread::spawn(move || pipe.write_all(&input));
            let ended = child.wait_with_output().unwrap();
            // A program that ends early does not read its input.
            let _ = writer.join().unwrap();
            ended
        });
        ended.await.unwrap()
    }

    fn background(&self, arguments: &[&str]) -> Background {
        let program = Program::new(PROGRAM).args(["remote-shell", "exec"]);
        let program = program.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        self.cluster.plane.spawn(program)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn the_script_of_a_job_runs_commands_in_its_workers() {
    let launcher = Launcher::with_own_shell("script").await;
    let words = ["echo \"$POD in $CONTAINER\";", "echo oh >&2;", "exit 7"];
    let ended = launcher.shell("job-worker-1", &words).await;
    let errors = text(&ended.stderr);
    assert_eq!(text(&ended.stdout), "job-worker-1 in mpi\n", "{errors}");
    assert_eq!(ended.status.code(), Some(7), "{errors}");
    assert!(errors.lines().any(|line| line == "oh"), "{errors}");
    let ended = launcher.shell("job-worker-0", &["true"]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
}

#[tokio::test]
async fn mpirun_starts_its_ranks_by_it() {
    let launcher = Launcher::with_own_shell("mpirun").await;
    let mut mpirun = Command::new(venv("mpi").join("bin/mpirun"));
    let report = "echo rank $OMPI_COMM_WORLD_RANK in $POD";
    mpirun
        .args(["-np", "2", "sh", "-c", report])
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("PRTE_MCA_plm_ssh_agent", &launcher.script)
        .env("PRTE_MCA_prte_default_hostfile", &launcher.hosts);
    let ended = launcher.call(&mut mpirun, b"").await;
    let (output, errors) = (text(&ended.stdout), text(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{output}\n{errors}");
    let mut ranks: Vec<_> = output.lines().collect();
    ranks.sort_unstable();
    assert_eq!(
        ranks,
        ["rank 0 in job-worker-0", "rank 1 in job-worker-1"],
        "{errors}"
    );
}

#[tokio::test]
async fn input_and_output_are_passed_on_whole() {
    let launcher = Launcher::with_own_shell("whole").await;
    let lines: String = (0..300_000).map(|number| format!("{number}\n")).collect();
    let command = ["--stdin", "job-worker-0", "--", "sh", "-c", "cat; exit 3"];
    let ended = launcher.exec(&command, lines.as_bytes()).await;
    assert_eq!(ended.status.code(), Some(3), "{}", text(&ended.stderr));
    assert!(text(&ended.stdout) == lines, "{} bytes", ended.stdout.len());
    // By default the program does not read standard input, because it belongs to the next command.
    let ended = launcher.exec(&["job-worker-0", "--", "cat"], b"mine").await;
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(text(&ended.stdout), String::new());
}

#[tokio::test]
async fn a_launcher_gets_into_its_own_workers_and_nowhere_else() {
    let launcher = Launcher::with_own_shell("elsewhere").await;
    launcher.create_pod("other").await;
    launcher.runs("other").await;
    let ended = launcher.shell("other", &["true"]).await;
    assert_eq!(ended.status.code(), Some(2));
    let errors = text(&ended.stderr);
    assert!(errors.contains("cannot get resource \"pods/exec\""), "{errors}");

    // For kubectl, the launcher has exactly the permission that kubectl needs.
    let other = Launcher::new("kubectl", &[]).await;
    let ended = other.shell("job-worker-0", &["true"]).await;
    assert_eq!(ended.status.code(), Some(2));
    let errors = text(&ended.stderr);
    assert!(errors.contains("cannot get resource \"pods/exec\""), "{errors}");
}

#[tokio::test]
async fn a_worker_that_comes_late_is_awaited() {
    let launcher = Launcher::with_own_shell("late").await;
    launcher.kubelet.finishes_deletion("job-worker-1").await;
    let waiting = launcher.background(&["job-worker-1", "--", "sh", "-c", "echo at last"]);
    waiting
        .wait_for_line("waiting for job-worker-1: the pod does not exist yet")
        .await;
    launcher.create_pod("job-worker-1").await;
    waiting
        .wait_for_line("waiting for job-worker-1: the container is not running yet")
        .await;
    launcher.runs("job-worker-1").await;
    assert_eq!(waiting.exit_code().await, 0, "{}", waiting.text());
    waiting.wait_for_line("at last").await;
}

#[tokio::test]
async fn a_command_that_cannot_run_is_reported() {
    let launcher = Launcher::with_own_shell("refused").await;
    launcher.kubelet.succeeds("job-worker-1").await;
    for (arguments, why) in [
        (
            &["job-worker-1", "--", "true"][..],
            "job-worker-1: the pod has ended",
        ),
        (
            &["job-worker-0", "-c", "mpirun", "--", "true"],
            "the pod has no container mpirun",
        ),
        (&["job-worker-0", "--", "no-such-program"], "no-such-program"),
        (&["job-worker-0"], "<COMMAND>"),
    ] {
        let ended = launcher.exec(arguments, b"").await;
        let errors = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{errors}");
        assert!(errors.contains(why), "{errors}");
    }
}
