//! How pods end, and when.

use serde_json::{Value, json};
use training_job_simulation::job::{self, Kind};
use training_job_simulation::kubelet::Fate::{self, Fails, Runs, SidecarFails, Succeeds};
use training_job_simulation::world::{SMALL, World, train, with};

use crate::stage::{PAIR, edit_status, made, remove, rest};

fn ends(name: &str) -> Fate {
    Succeeds(if name.contains("scheduler") { 200 } else { 150 })
}

/// Each exit code under each policy: from 128 on the replica is restarted under `ExitCode`.
#[tokio::test(start_paused = true)]
async fn e5_containers_end_with_each_code() {
    let codes = [1, 2, 126, 127, 128, 129, 130, 134, 137, 139, 143, 255];
    for policy in ["ExitCode", "OnFailure", "Always", "Never"] {
        for code in codes {
            let world = World::new(move |name, attempt| match attempt {
                0 if name.ends_with("worker-0") => Fails(code, 5),
                _ => ends(name),
            });
            world.create(job::of(Kind::Train, "job", &PAIR, policy)).await;
            world.pass(300).await;
            let retried = matches!(policy, "OnFailure" | "Always") || (policy == "ExitCode" && code >= 128);
            let end = if retried { "Succeeded" } else { "Failed" };
            let case = format!("{code} under {policy}");
            assert!(
                world.conditions("job").ends_with(end),
                "{case}: {}",
                world.conditions("job")
            );
            let status = world.status("job");
            assert_eq!(
                status["restartCount"].as_i64().unwrap_or(0),
                i64::from(retried),
                "{case}"
            );
            assert_eq!(status["failure"]["exitCode"], code, "{case}");
            let signal = (129..=192).contains(&code).then(|| code - 128);
            assert_eq!(status["failure"]["signal"], json!(signal), "{case}");
            world.check();
        }
    }
}

/// A pod in phase Failed, with these containers.
fn failed(containers: &[(&str, Value)], init: &[(&str, Value)]) -> Value {
    let statuses = |list: &[(&str, Value)]| -> Value {
        list.iter()
            .map(|(name, state)| {
                json!({"name": name, "image": "i", "imageID": "i", "ready": false, "restartCount": 0, "state": state})
            })
            .collect()
    };
    json!({"phase": "Failed", "containerStatuses": statuses(containers), "initContainerStatuses": statuses(init)})
}

fn ended(code: i32) -> Value {
    json!({"terminated": {"exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" }}})
}

/// Of several containers the one that failed decides; without a word of any, the cluster took the pod.
#[tokio::test(start_paused = true)]
async fn e5_pods_fail_in_other_ways() {
    let oom = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled", "signal": 9}});
    let waits = json!({"waiting": {"reason": "PodInitializing"}});
    let cases = [
        (
            "out of memory",
            failed(&[("mxnet", oom)], &[]),
            true,
            json!("OOMKilled"),
        ),
        ("no word", json!({"phase": "Failed"}), true, json!("PodFailed")),
        (
            "a sidecar",
            failed(&[("mxnet", ended(0)), ("log", ended(3))], &[]),
            false,
            json!("Error"),
        ),
        (
            "a killed sidecar",
            failed(&[("mxnet", ended(0)), ("log", ended(137))], &[]),
            true,
            json!("Error"),
        ),
        (
            "both",
            failed(&[("log", ended(137)), ("mxnet", ended(1))], &[]),
            false,
            json!("Error"),
        ),
        (
            "before the start",
            failed(&[("mxnet", waits)], &[("init", ended(5))]),
            false,
            json!("Error"),
        ),
    ];
    for (case, status, retried, reason) in cases {
        let mut world = World::new(|name, attempt| match attempt {
            0 if name.ends_with("worker-0") => Runs,
            _ => ends(name),
        });
        world.create(train("job", &PAIR)).await;
        world.pass(10).await;
        edit_status(&world, "pods", "job-worker-0", status).await;
        rest(&mut world).await;
        let end = if retried { "Succeeded" } else { "Failed" };
        assert!(
            world.conditions("job").ends_with(end),
            "{case}: {}",
            world.conditions("job")
        );
        assert_eq!(world.status("job")["failure"]["reason"], reason, "{case}");
        let container = &world.status("job")["failure"]["container"];
        if case == "a sidecar" {
            assert_eq!(container, "log");
        }
    }
    let mut world = World::new(|name, attempt| match attempt {
        0 if name.ends_with("worker-0") => SidecarFails(5),
        _ => ends(name),
    });
    world.create(train("job", &PAIR)).await;
    rest(&mut world).await;
    assert!(world.conditions("job").ends_with("Failed"));
}

/// Two hundred in debug builds' time; the law does not know the number.
#[tokio::test(start_paused = true)]
async fn e7_all_pods_end_in_one_instant() {
    let mut world = World::new(|_, _| Succeeds(60));
    world
        .create(train("job", &[("Scheduler", 1), ("Worker", 200)]))
        .await;
    world.pass(50).await;
    world.network.take();
    world.pass(60).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
    let statuses = world.network.count("patch", "mxjobs/status");
    assert!((1..=2).contains(&statuses), "{statuses} statuses");
    assert_eq!(world.status("job")["replicaStatuses"]["Worker"]["succeeded"], 200);
    rest(&mut world).await;
}

/// A worker's final failure counts more than the scheduler's success, whichever is told first, also a moment
/// later.
#[tokio::test(start_paused = true)]
async fn e8_the_scheduler_ends_well_as_a_worker_fails() {
    for apart in [0, 200, 900] {
        for first in ["scheduler", "worker"] {
            for blind in [false, true] {
                let mut world = World::new(|_, _| Runs);
                world.create(train("job", &PAIR)).await;
                world.pass(10).await;
                if blind {
                    world.cluster.freeze_watches(Some("pods"));
                }
                let good = json!({"phase": "Succeeded", "containerStatuses": failed(&[("mxnet", ended(0))], &[])["containerStatuses"]});
                let bad = failed(&[("mxnet", ended(1))], &[]);
                let mut both = [("job-scheduler-0", good), ("job-worker-0", bad)];
                if first == "worker" {
                    both.reverse();
                }
                for (pod, status) in both {
                    edit_status(&world, "pods", pod, status).await;
                    tokio::time::sleep(std::time::Duration::from_millis(apart)).await;
                }
                world.cluster.thaw_watches(Some("pods"));
                rest(&mut world).await;
                let conditions = world.conditions("job");
                assert!(
                    conditions.ends_with("Failed"),
                    "{first} first, {apart} ms, {blind}: {conditions}"
                );
            }
        }
    }
}

/// What the status remembers to have ended well is not run again, though its pod went while nobody looked. A limit:
/// what ended and went within one absence is run again.
#[tokio::test(start_paused = true)]
async fn e9_finished_pods_go_while_the_operator_is_down() {
    for seen in [true, false] {
        let mut world = World::new(|name, _| match name {
            "job-worker-0" => Succeeds(20),
            _ if name.contains("scheduler") => Succeeds(200),
            _ => Succeeds(150),
        });
        let policy = json!({"runPolicy": {"restartScope": "Replica"}});
        world.create(with(train("job", &SMALL), policy)).await;
        world.pass(if seen { 30 } else { 15 }).await;
        world.kill().await;
        world.pass(30).await;
        assert!(remove(&world, "pods", "job-worker-0").await);
        world.start();
        rest(&mut world).await;
        assert_eq!(
            made(&world, "pods job-worker-0").0,
            if seen { 1 } else { 2 },
            "seen to end: {seen}"
        );
        assert!(world.conditions("job").ends_with("Succeeded"));
    }
}

/// The scheduler's own success, and with it the job's, too.
#[tokio::test(start_paused = true)]
async fn e9_all_pods_go_after_the_end() {
    let mut world = World::new(|_, _| Succeeds(20));
    world.create(train("job", &SMALL)).await;
    world.pass(40).await;
    world.kill().await;
    for pod in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
        assert!(remove(&world, "pods", &format!("job-{pod}")).await);
    }
    world.start();
    rest(&mut world).await;
    assert_eq!(world.conditions("job"), "Created Running=False Succeeded");
    assert!(world.pods_now().is_empty());
}

/// A worker that is killed again and again, and an operator that is killed after each of the deaths: the limit holds.
#[tokio::test(start_paused = true)]
async fn e10_a_replica_fails_again_and_again_under_new_operators() {
    for (scope, limit) in [("Replica", 3), ("Job", 2)] {
        let mut world = World::new(|name, _| {
            if name.ends_with("worker-0") {
                Fails(137, 5)
            } else {
                Runs
            }
        });
        let policy = json!({"runPolicy": {"restartScope": scope, "backoffLimit": limit}});
        world.create(with(train("job", &SMALL), policy)).await;
        for second in 0..120 {
            tokio::time::sleep(std::time::Duration::from_millis(997)).await;
            if second % 3 == 0 {
                world.kill().await;
                world.start();
            }
        }
        rest(&mut world).await;
        assert!(
            world.conditions("job").ends_with("Failed"),
            "{scope}: {}",
            world.conditions("job")
        );
        assert_eq!(world.status("job")["restartCount"], limit, "{scope}");
        assert_eq!(
            world.status("job")["failure"]["reason"],
            "BackoffLimitExceeded",
            "{scope}"
        );
        assert_eq!(
            made(&world, "pods job-worker-0").0,
            u64::try_from(limit + 1).unwrap(),
            "{scope}"
        );
    }
}
