//! Starts, restarts, statuses, names.

use std::sync::atomic::Ordering;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStateTerminated, PodStatus};
use serde_json::json;

use super::fake_api::Bench;
use super::script;
use crate::{Devices, NodeConfig, NodeEvent, RestartBackoff};

fn terminated(status: &PodStatus, at: usize) -> ContainerStateTerminated {
    status.container_statuses.as_ref().unwrap()[at]
        .state
        .as_ref()
        .unwrap()
        .terminated
        .clone()
        .unwrap()
}

fn patient() -> NodeConfig {
    let none = Duration::ZERO;
    NodeConfig {
        restart_backoff: RestartBackoff {
            first: none,
            second: Duration::from_millis(1),
            cap: Duration::from_secs(1),
        },
        ..NodeConfig::default()
    }
}

#[tokio::test]
async fn a_pod_runs_to_its_end() {
    let mut bench = Bench::new(NodeConfig::default());
    let spec = script("Never", "echo out; echo err >&2; printf partial");
    bench.api.create("job-0", "u1", &spec, json!({}));
    let status = bench.api.phase("job-0", "Succeeded").await;

    let end = terminated(&status, 0);
    assert_eq!(end.exit_code, 0);
    assert_eq!(end.reason.as_deref(), Some("Completed"));
    assert_eq!(end.message, None);
    assert!(end.started_at.is_some() && end.finished_at.is_some());
    assert!(end.container_id.unwrap().starts_with("local://"));
    assert!(status.pod_ip.unwrap().starts_with("127."));
    assert_eq!(status.host_ip.as_deref(), Some("127.0.0.1"));
    let mut lines = bench.lines();
    lines.sort();
    assert_eq!(lines, ["job-0: err", "job-0: out", "job-0: partial"]);
    assert_eq!(
        bench.api.get("job-0").unwrap().spec.unwrap().node_name.as_deref(),
        Some("local")
    );
}

#[tokio::test]
async fn exit_codes_and_the_last_lines() {
    let bench = Bench::new(NodeConfig::default());
    for (name, run, code, signal, reason, message) in [
        (
            "three",
            "echo before; echo boom >&2; exit 3",
            3,
            None,
            "Error",
            "boom",
        ),
        ("killed", "kill -9 $$$$", 137, Some(9), "Error", ""),
        ("term", "kill -15 $$$$", 143, Some(15), "Error", ""),
    ] {
        bench.api.create(name, name, &script("Never", run), json!({}));
        let status = bench.api.phase(name, "Failed").await;
        let end = terminated(&status, 0);
        assert_eq!(end.exit_code, code, "{name}");
        assert_eq!(end.signal, signal, "{name}");
        assert_eq!(end.reason.as_deref(), Some(reason), "{name}");
        assert!(end.message.unwrap_or_default().contains(message), "{name}");
    }
}

#[tokio::test]
async fn commands_that_cannot_run() {
    let bench = Bench::new(NodeConfig::default());
    let pod = |command: serde_json::Value| json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "command": command}]});
    for (name, command, code, message) in [
        (
            "nowhere",
            json!(["no-such-program"]),
            127,
            "images are not pulled",
        ),
        ("no-path", json!(["/no/such/program"]), 127, "does not exist"),
        ("no-right", json!(["/etc/passwd"]), 126, "/etc/passwd"),
    ] {
        bench.api.create(name, name, &pod(command), json!({}));
        let end = terminated(&bench.api.phase(name, "Failed").await, 0);
        assert_eq!(end.exit_code, code, "{name}");
        assert_eq!(end.reason.as_deref(), Some("ContainerCannotRun"), "{name}");
        assert!(end.message.unwrap().contains(message), "{name}");
    }
    bench.api.create("image", "u", &pod(json!(null)), json!({}));
    let waiting = bench.api.until("image", |pod| {
        let status = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref()?.first());
        let state = status.and_then(|status| status.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
        state == Some("ImageCommandUnknown")
    });
    assert_eq!(
        waiting.await.unwrap().status.unwrap().phase.as_deref(),
        Some("Pending")
    );
}

#[tokio::test]
async fn names_lead_to_the_addresses_of_pods_that_do_not_exist_yet() {
    let mut bench = Bench::new(NodeConfig::default());
    bench.api.service("job-server-0");
    bench.api.service("job-worker-0");
    let env = json!([{"name": "URI", "value": "job-server-0"},
        {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]);
    let worker = json!({"restartPolicy": "Never",
        "initContainers": [{"name": "all", "command": ["env"], "env": env}],
        "containers": [{"name": "main", "command": ["echo"], "args": ["$(URI)", "$(ME)", "job-server-0:9091"], "env": env}]});
    bench.api.create("job-worker-0", "u1", &worker, json!({}));
    bench.api.phase("job-worker-0", "Succeeded").await;
    bench
        .api
        .create("job-server-0", "u2", &script("Never", "true"), json!({}));
    let server = bench.api.phase("job-server-0", "Succeeded").await.pod_ip.unwrap();

    let lines = bench.lines();
    assert!(
        lines.contains(&format!("job-worker-0/main: {server} job-worker-0 {server}:9091")),
        "{lines:?}"
    );
    let variable = |line: &String| {
        Some(
            line.strip_prefix("job-worker-0/all: ")?
                .split_once('=')?
                .0
                .to_owned(),
        )
    };
    let mut variables: Vec<String> = lines.iter().filter_map(variable).collect();
    variables.sort();
    let expected = [
        "HOME",
        "HOSTNAME",
        "LANG",
        "ME",
        "PATH",
        "TMPDIR",
        "TRAINING_JOB_POD",
        "URI",
        "USER",
    ];
    assert_eq!(variables, expected);
}

/// A service may have another name than the pod that it selects, which may come later.
#[tokio::test]
async fn the_name_of_a_service_leads_to_the_pod_that_it_selects() {
    let mut bench = Bench::new(NodeConfig::default());
    bench.api.service_of("early", "a");
    bench.api.service_of("late", "b");
    let labeled = |app: &str| json!({"metadata": {"labels": {"app": app}}});
    bench
        .api
        .create("job-0", "u1", &script("Never", "true"), labeled("a"));
    let early = bench.api.phase("job-0", "Succeeded").await.pod_ip.unwrap();
    bench.api.create(
        "client",
        "u2",
        &script("Never", "echo early:80 late:80"),
        labeled("c"),
    );
    bench.api.phase("client", "Succeeded").await;
    bench
        .api
        .create("job-1", "u3", &script("Never", "true"), labeled("b"));
    let late = bench.api.phase("job-1", "Succeeded").await.pod_ip.unwrap();
    let lines = bench.lines();
    assert!(
        lines.contains(&format!("client: {early}:80 {late}:80")),
        "{lines:?}"
    );
    assert_ne!(early, late);
}

#[tokio::test]
async fn differences_are_reported_before_the_first_line() {
    let mut bench = Bench::new(NodeConfig::default());
    let spec = json!({"restartPolicy": "Never", "hostNetwork": true,
        "containers": [{"name": "main", "image": "img", "command": ["sh", "-c", "echo hello"]}]});
    bench.api.create("job-0", "u1", &spec, json!({}));
    bench.api.phase("job-0", "Succeeded").await;
    let Some(NodeEvent::Prepared(prepared)) = bench.events.recv().await else {
        panic!("not first")
    };
    assert_eq!(prepared.pod.as_str(), "job-0");
    assert_eq!(prepared.container.as_str(), "main");
    let names: Vec<&str> = prepared
        .differences
        .iter()
        .map(|difference| difference.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["PATH", "HOME", "TMPDIR", "LANG", "USER", "image", "hostNetwork"]
    );
}

#[tokio::test]
async fn a_failing_container_is_restarted_in_place() {
    let directory = std::env::temp_dir().join(format!("training-job-restart-{}", std::process::id()));
    let logs = directory.join("logs");
    std::fs::create_dir_all(&logs).unwrap();
    std::fs::write(logs.join("job-0.1.log"), "of an earlier agent").unwrap();
    let config = NodeConfig {
        workdir: directory.clone(),
        logs: Some(logs.clone()),
        namespace: Some("ns".into()),
        ..patient()
    };
    let bench = Bench::new(config);
    let run = "echo try >> tries; n=$(wc -l < tries); [ $n = 2 ] || echo run $n; [ $n -ge 3 ] || exit 7";
    bench
        .api
        .create("job-0", "u1", &script("OnFailure", run), json!({}));
    let status = bench.api.phase("job-0", "Succeeded").await;
    let container = &status.container_statuses.as_ref().unwrap()[0];
    assert_eq!(container.restart_count, 2);
    let last = container
        .last_state
        .as_ref()
        .unwrap()
        .terminated
        .as_ref()
        .unwrap();
    assert_eq!((last.exit_code, last.message.as_deref()), (7, None));
    assert_eq!(bench.api.phases("job-0"), ["Running", "Succeeded"]);
    for (file, text) in [("job-0.log", "run 1\n"), ("job-0.2.log", "run 3\n")] {
        assert_eq!(std::fs::read_to_string(logs.join(file)).unwrap(), text);
    }
    assert!(!logs.join("job-0.1.log").exists(), "the second run has no output");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_container_in_back_off_has_the_reason_and_the_delay() {
    let bench = Bench::new(NodeConfig {
        restart_backoff: RestartBackoff {
            first: Duration::from_secs(60),
            ..RestartBackoff::default()
        },
        ..NodeConfig::default()
    });
    bench
        .api
        .create("job-0", "u1", &script("Always", "true"), json!({}));
    let pod = bench.api.until("job-0", |pod| {
        let statuses = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref());
        let waiting = statuses.and_then(|all| all[0].state.as_ref()?.waiting.as_ref());
        waiting.is_some_and(|waiting| waiting.reason.as_deref() == Some("CrashLoopBackOff"))
    });
    assert_eq!(
        pod.await.unwrap().status.unwrap().phase.as_deref(),
        Some("Running")
    );
    // A waiting pod can be deleted.
    bench.api.delete_gracefully("job-0", 30);
    bench.api.gone("job-0").await;
}

#[tokio::test]
async fn init_containers_run_first_and_sidecars_end_last() {
    let mut bench = Bench::new(NodeConfig::default());
    let sh = |name: &str, script: &str| json!({"name": name, "command": ["sh", "-c", script]});
    let mut side = sh(
        "side",
        "echo side; trap 'echo side ends; exit 0' TERM; sleep 60 & wait",
    );
    side["restartPolicy"] = json!("Always");
    let spec = json!({"restartPolicy": "Never",
        "initContainers": [sh("one", "echo one"), side, sh("two", "echo two")],
        "containers": [sh("main", "echo main"), sh("more", "echo more")]});
    bench.api.create("job-0", "u1", &spec, json!({}));
    let status = bench.api.phase("job-0", "Succeeded").await;
    assert_eq!(status.init_container_statuses.unwrap().len(), 3);
    let lines = bench.lines();
    let at = |wanted: &str| {
        lines
            .iter()
            .position(|line| line == wanted)
            .unwrap_or_else(|| panic!("{wanted}: {lines:?}"))
    };
    assert!(at("job-0/one: one") < at("job-0/two: two"));
    assert!(at("job-0/two: two") < at("job-0/main: main").min(at("job-0/more: more")));

    let failing = json!({"restartPolicy": "Never", "initContainers": [sh("one", "exit 4")], "containers": [sh("main", "echo never")]});
    bench.api.create("job-1", "u2", &failing, json!({}));
    bench.api.phase("job-1", "Failed").await;
    assert!(!bench.lines().iter().any(|line| line.contains("never")));
}

#[tokio::test]
async fn a_missing_config_map_is_waited_for() {
    let mut bench = Bench::new(NodeConfig::default());
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "main", "command": ["sh", "-c", "echo got $X"],
        "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k"}}}]}]});
    bench.api.create("job-0", "u1", &spec, json!({}));
    let waiting = bench.api.until("job-0", |pod| {
        let statuses = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref());
        let waiting = statuses.and_then(|all| all[0].state.as_ref()?.waiting.as_ref());
        waiting.is_some_and(|waiting| waiting.reason.as_deref() == Some("CreateContainerConfigError"))
    });
    waiting.await;
    bench.api.config_map("cm", "k", "value");
    bench.line("got value").await;
    bench.api.phase("job-0", "Succeeded").await;
}

#[tokio::test]
async fn only_pods_of_the_default_scheduler_without_a_gate_are_bound() {
    let bench = Bench::with(
        NodeConfig {
            register: true,
            ..NodeConfig::default()
        },
        |api| {
            let spec = |field: &str, value: serde_json::Value| {
                let mut spec = script("Never", "true");
                spec[field] = value;
                spec
            };
            api.create(
                "other-scheduler",
                "u1",
                &spec("schedulerName", json!("volcano")),
                json!({}),
            );
            api.create(
                "gated",
                "u2",
                &spec("schedulingGates", json!([{"name": "wait"}])),
                json!({}),
            );
            api.create("elsewhere", "u3", &spec("nodeName", json!("other")), json!({}));
            api.create(
                "mine",
                "u4",
                &spec("schedulerName", json!("default-scheduler")),
                json!({}),
            );
        },
    );
    bench.api.phase("mine", "Succeeded").await;
    for name in ["other-scheduler", "gated", "elsewhere"] {
        assert_eq!(
            bench.api.get(name).unwrap().status.unwrap().phase.as_deref(),
            Some("Pending"),
            "{name}"
        );
    }
    // A gate that is removed later is noticed.
    bench
        .api
        .create("gated", "u2", &script("Never", "true"), json!({}));
    bench.api.phase("gated", "Succeeded").await;
    let nodes = bench.api.nodes();
    let ready = nodes[0].status.as_ref().unwrap().conditions.as_ref().unwrap();
    assert_eq!(ready[0].type_.as_str(), "Ready");
    assert_eq!(ready[0].status.as_str(), "True");
}

#[tokio::test]
async fn writes_that_fail_are_made_again() {
    let bench = Bench::with(NodeConfig::default(), |api| {
        api.failures.store(3, Ordering::SeqCst)
    });
    bench
        .api
        .create("job-0", "u1", &script("Never", "exit 5"), json!({}));
    assert_eq!(
        terminated(&bench.api.phase("job-0", "Failed").await, 0).exit_code,
        5
    );
    bench.api.failures.store(2, Ordering::SeqCst);
    bench.api.delete_gracefully("job-0", 0);
    bench.api.gone("job-0").await;
}

#[tokio::test]
async fn mounted_files_are_read_where_paths_lead_to() {
    let mut bench = Bench::new(NodeConfig::default());
    let mut spec = script(
        "Never",
        r#". /etc/settings/run.sh; cat "$HOSTS"; echo; ls /etc/settings"#,
    );
    spec["containers"][0]["env"] = json!([{"name": "HOSTS", "value": "/etc/settings/run.sh"}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "all", "mountPath": "/etc/settings"}]);
    spec["volumes"] = json!([{"name": "all", "configMap": {"name": "settings"}}]);
    bench.api.create("job-0", "u1", &spec, json!({}));
    bench
        .api
        .config_map("settings", "run.sh", "echo run of $HOSTNAME");
    bench.api.phase("job-0", "Succeeded").await;
    assert_eq!(
        bench.lines(),
        [
            "job-0: run of job-0",
            "job-0: echo run of $HOSTNAME",
            "job-0: run.sh"
        ]
    );
}

#[tokio::test]
async fn a_container_that_only_a_cluster_needs_is_skipped() {
    let skip: crate::AdjustEnv = |pod, env| {
        if pod.container == "wait" {
            env.skip_container("names are there at once");
        }
    };
    let mut bench = Bench::new(NodeConfig {
        adjust_env: [("toy".to_owned(), skip)].into(),
        ..NodeConfig::default()
    });
    let mut spec = script("Never", "echo main");
    spec["initContainers"] =
        json!([{"name": "wait", "image": "none"}, {"name": "other", "command": ["echo", "other"]}]);
    let labels = json!({"metadata": {"labels": {"training.kubeflow.org/operator-name": "toy"}}});
    bench.api.create("job-0", "u1", &spec, labels);
    bench.api.phase("job-0", "Succeeded").await;
    assert_eq!(bench.lines(), ["job-0/other: other", "job-0/main: main"]);
}

#[tokio::test]
async fn pods_share_the_devices_of_the_machine() {
    let mut config = NodeConfig::default();
    let gpu = Devices {
        ids: vec!["7".to_owned()],
        variable: "CUDA_VISIBLE_DEVICES".to_owned(),
    };
    config.devices = Some([("nvidia.com/gpu".to_owned(), gpu)].into());
    let mut bench = Bench::new(config);
    let gate = std::env::temp_dir().join(format!("devices-{}", std::process::id()));
    let pod = |gpus: &str, run: &str| {
        let mut spec = script("Never", run);
        spec["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": gpus}});
        spec
    };
    let waits = format!(
        "echo has $CUDA_VISIBLE_DEVICES; until [ -e {0} ]; do sleep 0.01; done; rm {0}",
        gate.display()
    );
    bench.api.create("first", "u1", &pod("1", &waits), json!({}));
    bench.api.phase("first", "Running").await;
    bench.api.create(
        "second",
        "u2",
        &pod("1", "echo has $CUDA_VISIBLE_DEVICES"),
        json!({}),
    );
    bench.api.create(
        "none",
        "u3",
        &script("Never", "echo has [$CUDA_VISIBLE_DEVICES]"),
        json!({}),
    );
    bench.api.phase("none", "Succeeded").await;
    let status = bench.api.phase("second", "Pending").await;
    let condition = &status.conditions.unwrap()[0];
    assert_eq!(
        (condition.reason.as_deref(), condition.message.as_deref()),
        (
            Some("Unschedulable"),
            Some("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
        )
    );
    std::fs::write(&gate, "").unwrap();
    bench.api.phase("second", "Succeeded").await;
    let mut lines = bench.lines();
    lines.sort();
    assert_eq!(lines, ["first: has 7", "none: has []", "second: has 7"]);
}
