use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::resources::Machine;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 2);

fn config() -> NodeConfig {
    let hook: crate::AdjustEnv = |pod, env| {
        env.set("NODE_HOST", pod.address.to_string(), "its own address");
        if env.get("MODE") == Some("1") {
            env.set("MODE", "0", "binds its own address");
        }
    };
    NodeConfig {
        workdir: PathBuf::from("/tmp"),
        path: vec!["/opt/x".into()],
        venv: Some("/opt/venv".into()),
        adjust_env: BTreeMap::from([("toy".to_owned(), hook)]),
        ..NodeConfig::default()
    }
}

fn prepared(operator: &str, container: Value) -> Result<(Launch, Vec<String>), PrepareError> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "job-worker-0", "namespace": "ns", "uid": "u", "labels": {OPERATOR_NAME_LABEL: operator}},
        "spec": {"containers": [container], "hostNetwork": true, "securityContext": {}},
    }))
    .unwrap();
    let sources = ValueSources {
        pod: &pod,
        address: ADDRESS,
        node: "node",
        machine: Machine {
            cpus: 1.0,
            memory_bytes: 0.0,
        },
        contents: BTreeMap::new(),
        devices: BTreeMap::new(),
    };
    let names = HostNames {
        namespace: "ns".into(),
        addresses: BTreeMap::from([
            ("job-worker-0".to_owned(), ADDRESS),
            ("job-server-0".to_owned(), Ipv4Addr::new(127, 64, 0, 3)),
        ]),
        domain: None,
    };
    let host_variables = HostVariables {
        folders: Folders::default(),
        path: "/usr/bin".into(),
        others: vec![("HOME", "/home/me".into())],
    };
    let container = &pod.spec.as_ref().unwrap().containers[0];
    prepare(
        container,
        &sources,
        &names,
        &config(),
        &host_variables,
        "agent/u/c/",
    )
    .map(|done| {
        let shown = done
            .differences
            .iter()
            .map(|d| format!("{}={}", d.name, d.local.clone().unwrap_or("-".into())));
        (done.launch, shown.collect())
    })
}

fn env_of(launch: &Launch) -> BTreeMap<&str, &str> {
    launch
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

#[test]
fn a_container_becomes_a_process() {
    let (launch, differences) = prepared(
        "toy",
        json!({
            "name": "c", "image": "img:1", "workingDir": "/nowhere",
            "command": ["python3", "$(SCRIPT)", "--me=$(ME)", "--mode=$(MODE)"],
            "args": ["--server", "tcp://job-server-0:9/", "$$(MODE)", "$(HOME)"],
            "env": [
                {"name": "SCRIPT", "value": "train.py"},
                {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "URI", "value": "job-server-0"},
                {"name": "MODE", "value": "1"},
                {"name": "TRAINING_JOB_POD", "value": "mine"},
            ],
            "volumeMounts": [{"name": "v", "mountPath": "/data"}],
            "resources": {"limits": {"cpu": "1"}}, "livenessProbe": {},
        }),
    )
    .unwrap();
    assert_eq!(launch.program, "python3");
    assert_eq!(
        launch.args,
        [
            "train.py",
            "--me=job-worker-0",
            "--mode=0",
            "--server",
            "tcp://127.64.0.3:9/",
            "$(MODE)",
            "$(HOME)"
        ]
    );
    assert_eq!(launch.directory, PathBuf::from("/tmp"));
    let expected = BTreeMap::from([
        ("SCRIPT", "train.py"),
        ("ME", "job-worker-0"),
        ("URI", "127.64.0.3"),
        ("MODE", "0"),
        ("PATH", "/opt/x:/opt/venv/bin:/usr/bin"),
        ("VIRTUAL_ENV", "/opt/venv"),
        ("HOME", "/home/me"),
        ("HOSTNAME", "job-worker-0"),
        ("NODE_HOST", "127.64.0.2"),
        ("TRAINING_JOB_POD", "agent/u/c/"),
    ]);
    assert_eq!(env_of(&launch), expected);
    assert_eq!(
        differences,
        [
            "URI=127.64.0.3",
            "MODE=0",
            "PATH=/opt/x:/opt/venv/bin:/usr/bin",
            "VIRTUAL_ENV=/opt/venv",
            "HOME=/home/me",
            "NODE_HOST=127.64.0.2",
            "command[3]=--mode=0",
            "args[1]=tcp://127.64.0.3:9/",
            "image=-",
            "volumeMounts=-",
            "resources=-",
            "livenessProbe=-",
            "hostNetwork=-",
            "workingDir=/tmp",
        ]
    );
}

#[test]
fn variables_of_the_pod_take_precedence_over_those_of_the_machine() {
    let env = json!([{"name": "PATH", "value": "/img/bin"}, {"name": "HOME", "value": "/root"},
        {"name": "HOSTNAME", "value": "job-worker-0"}]);
    let (launch, _) = prepared("other", json!({"name": "c", "command": ["true"], "env": env})).unwrap();
    let env = env_of(&launch);
    assert_eq!(env["PATH"], "/opt/x:/opt/venv/bin:/img/bin");
    assert_eq!((env["HOME"], env["HOSTNAME"]), ("/root", "job-worker-0"));
    assert!(!env.contains_key("NODE_HOST"));
}

#[test]
fn a_working_directory_is_joined_where_it_exists() {
    let directory = |wanted: &str| {
        prepared(
            "",
            json!({"name": "c", "command": ["true"], "workingDir": wanted}),
        )
        .unwrap()
        .0
        .directory
    };
    assert_eq!(directory("/usr"), PathBuf::from("/usr"));
    assert_eq!(directory("."), PathBuf::from("/tmp/."));
    assert_eq!(directory("no/such"), PathBuf::from("/tmp"));
}

#[test]
fn a_container_without_a_command_cannot_run() {
    let error = prepared("", json!({"name": "c", "image": "img:1", "args": ["x"]})).unwrap_err();
    assert!(matches!(error, PrepareError::NoCommand { .. }));
    assert!(error.to_string().contains("img:1"), "{error}");
}
