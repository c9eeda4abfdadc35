//! Deletion and shutdown, without processes left behind.

use std::time::{Duration, Instant};

use serde_json::json;

use super::fake_api::Bench;
use super::{alive, dead, script};
use crate::NodeConfig;

/// Starts three children and prints their process ids and its own: one in the group, one outside of it, one outside
/// of the session. (`$$$$` is `$$` once the references in a command are expanded.)
const FAMILY: &str = "
    sleep 1000 & echo pid $!
    python3 -c 'import os,time; os.setpgid(0,0); print(\"pid\", os.getpid(), flush=True); time.sleep(1000)' &
    setsid sh -c 'echo pid $$$$; exec sleep 1000' &
    echo pid $$$$
";

async fn family(bench: &mut Bench) -> Vec<u32> {
    let mut pids = Vec::new();
    for _ in 0..4 {
        pids.push(
            bench
                .line("pid ")
                .await
                .trim_start_matches("pid ")
                .parse()
                .unwrap(),
        );
    }
    pids
}

#[tokio::test]
async fn deletion_ends_a_pod_with_grace_and_reports_the_end_first() {
    let mut bench = Bench::new(NodeConfig::default());
    let run = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.01; done";
    bench.api.create("job-0", "u1", &script("Always", run), json!({}));
    bench.line("up").await;
    bench.api.delete_gracefully("job-0", 30);
    bench.line("asked").await;
    bench.api.gone("job-0").await;
    assert_eq!(bench.api.phases("job-0"), ["Running", "Succeeded"]);
}

#[tokio::test]
async fn a_process_that_ignores_the_request_is_killed() {
    let mut bench = Bench::new(NodeConfig {
        grace_cap: Some(Duration::from_millis(50)),
        ..NodeConfig::default()
    });
    bench.api.create(
        "job-0",
        "u1",
        &script("Never", &format!("trap '' TERM; {FAMILY} wait")),
        json!({}),
    );
    let pids = family(&mut bench).await;
    let begin = Instant::now();
    bench.api.delete_gracefully("job-0", 600);
    bench.api.gone("job-0").await;
    assert!(begin.elapsed() < Duration::from_secs(15));
    assert_eq!(bench.api.phases("job-0"), ["Running", "Failed"]);
    for pid in pids {
        assert!(!alive(pid), "{pid}");
    }
}

#[tokio::test]
async fn children_end_with_the_first_process() {
    let mut bench = Bench::new(NodeConfig::default());
    let run = format!("{FAMILY} while [ ! -e go ]; do sleep 0.01; done");
    let directory = std::env::temp_dir().join(format!("training-job-children-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut spec = script("Never", &run);
    spec["containers"][0]["workingDir"] = json!(directory);
    bench.api.create("job-0", "u1", &spec, json!({}));
    let pids = family(&mut bench).await;
    std::fs::write(directory.join("go"), "").unwrap();
    bench.api.phase("job-0", "Succeeded").await;
    for pid in pids {
        assert!(!alive(pid), "{pid}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_pod_that_vanishes_is_killed() {
    let mut bench = Bench::new(NodeConfig::default());
    bench
        .api
        .create("stays", "u0", &script("Never", "echo up; sleep 1000"), json!({}));
    bench.line("up").await;
    bench.api.create(
        "job-0",
        "u1",
        &script("Never", &format!("{FAMILY} wait")),
        json!({}),
    );
    let pids = family(&mut bench).await;
    bench.api.vanish("job-0");
    for pid in pids {
        dead(pid).await;
    }
    // A new pod of the name gets the address again, but only after the end of the old processes.
    bench
        .api
        .create("job-0", "u2", &script("Never", "true"), json!({}));
    bench.api.phase("job-0", "Succeeded").await;
    assert_eq!(
        bench.api.phase("stays", "Running").await.phase.as_deref(),
        Some("Running")
    );
}

#[tokio::test]
async fn unread_output_does_not_delay_the_end() {
    let bench = Bench::new(NodeConfig::default());
    let run = "i=0; while [ $i -lt 100000 ]; do echo line $i; i=$((i + 1)); done";
    bench.api.create("job-0", "u1", &script("Never", run), json!({}));
    bench.api.phase("job-0", "Running").await;
    bench.api.delete_gracefully("job-0", 0);
    bench.api.gone("job-0").await;
    assert_eq!(bench.api.phases("job-0"), ["Running", "Failed"]);
}

#[tokio::test]
async fn the_same_name_keeps_its_address() {
    let bench = Bench::new(NodeConfig::default());
    let mut seen = Vec::new();
    for uid in ["u1", "u2"] {
        bench
            .api
            .create("job-0", uid, &script("Never", "true"), json!({}));
        seen.push(bench.api.phase("job-0", "Succeeded").await.pod_ip);
        bench.api.delete_gracefully("job-0", 0);
        bench.api.gone("job-0").await;
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn a_deadline_ends_a_pod() {
    let bench = Bench::new(NodeConfig::default());
    let mut spec = script("Always", "sleep 1000");
    spec["activeDeadlineSeconds"] = json!(1);
    bench.api.create("job-0", "u1", &spec, json!({}));
    assert_eq!(
        bench.api.phase("job-0", "Failed").await.reason.as_deref(),
        Some("DeadlineExceeded")
    );
}

#[tokio::test]
async fn pods_of_an_earlier_agent_are_lost() {
    let bench = Bench::with(NodeConfig::default(), |api| {
        let mut spec = script("Always", "true");
        spec["nodeName"] = json!("local");
        let status =
            json!({"status": {"phase": "Running", "podIP": "127.99.0.7", "podIPs": [{"ip": "127.99.0.7"}]}});
        api.create("lost", "of-an-earlier-agent-lost", &spec, status);
        api.create(
            "done",
            "of-an-earlier-agent-done",
            &spec,
            json!({"status": {"phase": "Succeeded"}}),
        );
        api.create("deleted", "of-an-earlier-agent-deleted", &spec,
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}}));
    });
    let status = bench.api.phase("lost", "Failed").await;
    assert_eq!(status.pod_ip.as_deref(), Some("127.99.0.7"));
    let state = status.container_statuses.unwrap()[0]
        .state
        .clone()
        .unwrap()
        .terminated
        .unwrap();
    assert_eq!(state.exit_code, 137);
    assert_eq!(state.reason.as_deref(), Some("ContainerStatusUnknown"));
    bench.api.gone("deleted").await;
    bench.api.delete_gracefully("done", 0);
    bench.api.gone("done").await;
}

/// The agent was killed, and its guard too.
#[tokio::test]
async fn processes_that_an_earlier_agent_left_are_killed_before_their_pod_has_ended() {
    let mut left = std::process::Command::new("sleep")
        .arg("1000")
        .env("TRAINING_JOB_POD", "1-0-0/of-a-dead-agent/main/")
        .spawn()
        .unwrap();
    let bench = Bench::with(NodeConfig::default(), |api| {
        let mut spec = script("Never", "true");
        spec["nodeName"] = json!("local");
        api.create(
            "job-0",
            "of-a-dead-agent",
            &spec,
            json!({"status": {"phase": "Running"}}),
        );
    });
    bench.api.phase("job-0", "Failed").await;
    assert!(!alive(left.id()));
    left.wait().unwrap();
}

#[tokio::test]
async fn shutdown_sends_sigterm_then_kills_then_reports() {
    let mut bench = Bench::new(NodeConfig::default());
    bench.api.create(
        "nice",
        "u1",
        &script(
            "Always",
            "trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done",
        ),
        json!({}),
    );
    bench.line("up").await;
    bench.api.create(
        "rude",
        "u2",
        &script("Always", &format!("trap '' TERM; {FAMILY} wait")),
        json!({}),
    );
    let pids = family(&mut bench).await;
    bench
        .node
        .take()
        .unwrap()
        .shutdown(Duration::from_millis(100))
        .await;
    for pid in pids {
        assert!(!alive(pid), "{pid}");
    }
    assert_eq!(bench.api.phase("nice", "Succeeded").await.reason, None);
    assert_eq!(
        bench.api.phase("rude", "Failed").await.reason.as_deref(),
        Some("Terminated")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_ends_everything_at_once() {
    let mut bench = Bench::new(NodeConfig::default());
    bench.api.create(
        "job-0",
        "u1",
        &script("Always", &format!("trap '' TERM; {FAMILY} wait")),
        json!({}),
    );
    let pids = family(&mut bench).await;
    bench.node.take().unwrap().kill();
    for pid in pids {
        assert!(!alive(pid), "{pid}");
    }
}
