//! The control plane of the tests where no other test shows a fault: its ends, and the messages about what cannot be.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Error;
use kube::api::{Api, DeleteParams, PostParams};
use training_job_testbed::cluster::{Binaries, ControlPlane, Options, Program, wait};

const ROLE: &str = "CLUSTER_TEST_CHILD";

/// Returns a command that runs [`child`] in a role: `start`, `stay` or `panic`.
fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["testbed::child", "--exact", "--nocapture"])
        .env(ROLE, role)
        .env_remove("TEST_KUBECONFIG");
    command
}

/// Not a test itself: the tests below start it. Its control plane is in a static, so it is never dropped.
#[tokio::test]
async fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let cluster = ControlPlane::shared().await;
    // The sleeping child process would survive if the process group were not killed.
    let program = cluster.spawn(
        Program::new("sh")
            .args(["-c", "sleep 1000 & echo asleep; wait"])
            .env("MARK", cluster.directory()),
    );
    // Before this line the program may not have started.
    program.wait_for_line("asleep").await;
    println!("\nready {}", cluster.directory().display());
    match &*role {
        "stay" => std::future::pending().await,
        "panic" => panic!("as asked"),
        _ => {}
    }
}

/// Returns the processes whose command line or environment contains a directory.
fn users_of(directory: &Path) -> Vec<String> {
    let needle = directory.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let process = entry.unwrap().path();
        let names = |file| {
            let bytes = fs::read(process.join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let (command, environment) = (names("cmdline"), names("environ"));
        if command.contains(needle) || environment.contains(needle) {
            found.push(command);
        }
    }
    found
}

/// Starts a child and waits until its control plane runs.
fn start(role: &str) -> (Child, PathBuf) {
    let mut child = command(role)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut lines = output.lines().map(Result::unwrap);
    let ready = lines.find_map(|line| line.strip_prefix("ready ").map(PathBuf::from));
    // The rest of the output is discarded. It must be read all the same, or the child could block.
    std::thread::spawn(move || lines.for_each(drop));
    (child, ready.unwrap())
}

#[test]
fn nothing_is_left_of_a_test_program_however_it_ends() {
    for (role, code) in [("stay", None), ("panic", Some(101)), ("end", Some(0))] {
        let (mut child, directory) = start(role);
        if code.is_none() {
            let before = users_of(&directory).join("\n");
            for name in [
                "etcd",
                "kube-apiserver",
                "kube-controller-manager",
                "janitor",
                "sleep 1000",
            ] {
                assert!(before.contains(name), "no {name}: {before}");
            }
            child.kill().unwrap();
        }
        assert_eq!(child.wait().unwrap().code(), code, "{role}");
        // Only the parent of a process gets an event at its end, so this test polls.
        let deadline = Instant::now() + Duration::from_secs(60);
        while directory.exists() || !users_of(&directory).is_empty() {
            let users = users_of(&directory);
            assert!(
                Instant::now() < deadline,
                "{role}: {directory:?} is used by {users:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn missing_binaries_are_named() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("assets");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for name in ["etcd", "kube-apiserver", "kubectl"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let expected = format!(
        "KUBEBUILDER_ASSETS: {} has no kube-controller-manager; ",
        folder.display()
    );
    let error = Binaries::of_assets(&folder).unwrap_err();
    assert!(error.starts_with(&expected), "{error}");

    // The variable is read when a control plane starts.
    let ended = command("start")
        .env("KUBEBUILDER_ASSETS", &folder)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success());
    assert!(
        output.contains(&format!("no control plane: {expected}")),
        "{output}"
    );

    fs::write(folder.join("kube-controller-manager"), "").unwrap();
    assert!(Binaries::of_assets(&folder).is_ok());
}

#[tokio::test]
async fn a_server_that_cannot_start_is_shown() {
    let options = Options {
        api_server_flags: vec!["--no-such-flag".to_owned()],
        ..Options::default()
    };
    let error = ControlPlane::try_start(options).await.err().unwrap();
    assert!(error.starts_with("kube-apiserver: it ended with 1"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
}

#[tokio::test]
#[should_panic = "awaited 1 × \"never\"; it ended with 0; its last lines:\nhello"]
async fn a_line_that_cannot_come_is_not_awaited() {
    let cluster = ControlPlane::shared().await;
    let program = Program::new("sh").args(["-c", "echo hello"]);
    cluster.spawn(program).wait_for_line("never").await;
}

/// Absence must not be reported before the first list is complete.
#[tokio::test]
async fn an_existing_object_is_not_absent() {
    let cluster = ControlPlane::shared().await;
    let namespace = cluster.namespace("waiting").await;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
    let object = serde_json::from_value(serde_json::json!({"metadata": {"name": "one"}})).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    let gone = async {
        wait(api.clone(), "one", |object| object.is_none()).await;
        api.get("one").await
    };
    let delete = async {
        wait(api.clone(), "one", |object| object.is_some()).await;
        api.delete("one", &DeleteParams::default()).await.unwrap();
    };
    let (found, ()) = tokio::join!(gone, delete);
    assert!(
        matches!(&found, Err(Error::Api(status)) if status.code == 404),
        "{found:?}"
    );
}
