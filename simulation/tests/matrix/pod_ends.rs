//! Ends of pods, and their times.

use serde_json::{Value, json};
use training_job_simulation::faults::PodFate::{self, Fails, Runs, SidecarFails, Succeeds};
use training_job_simulation::simulation::{Setup, Simulation, train};
use training_job_simulation::world::job::{self, JobType};

use crate::harness::{
    PAIR, assert_ends, assert_within, created_and_deleted, edit_status, either, remove, settle_and_check,
    sim_of,
};

fn ends(name: &str) -> PodFate {
    Succeeds(if name.contains("scheduler") { 200 } else { 150 })
}

/// Each exit code under each policy. From 128 on the replica is restarted under `ExitCode`.
#[tokio::test(start_paused = true)]
async fn containers_end_with_each_code() {
    let codes = [1, 2, 126, 127, 128, 129, 130, 134, 137, 139, 143, 255];
    for policy in ["ExitCode", "OnFailure", "Always", "Never"] {
        for code in codes {
            let sim = Simulation::new(move |name, attempt| match attempt {
                0 if name.ends_with("worker-0") => Fails(code, 5),
                _ => ends(name),
            });
            sim.create(job::new(JobType::Train, "job", &PAIR, policy)).await;
            sim.advance(300).await;
            let retried = matches!(policy, "OnFailure" | "Always") || (policy == "ExitCode" && code >= 128);
            let end = if retried { "Succeeded" } else { "Failed" };
            let case = format!("{code} under {policy}");
            assert_ends(&sim, "job", end, &case);
            let status = sim.status("job");
            assert_eq!(
                status["restartCount"].as_i64().unwrap_or(0),
                i64::from(retried),
                "{case}"
            );
            let failure = last_failure(&status);
            assert_eq!(failure["exitCode"], code, "{case}");
            assert_eq!(failure["role"], json!("Worker"), "{case}");
            assert_eq!(failure["index"], json!(0), "{case}");
            let signal = (129..=192).contains(&code).then(|| code - 128);
            assert_eq!(failure["signal"], json!(signal), "{case}");
            sim.assert_no_violations();
        }
    }
}

/// Returns the latest failure, which is in the history of a job that has succeeded since.
fn last_failure(status: &Value) -> &Value {
    match &status["failure"] {
        Value::Null => status["failureHistory"]
            .as_array()
            .and_then(|all| all.last())
            .unwrap_or(&Value::Null),
        failure => failure,
    }
}

/// Returns the status of a pod in phase Failed with these containers.
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

/// The framework's container decides, whatever the others do. Without container statuses the cluster is the cause.
#[tokio::test(start_paused = true)]
async fn pods_fail_in_other_ways() {
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
            true,
            json!(null),
        ),
        (
            "a killed sidecar",
            failed(&[("mxnet", ended(0)), ("log", ended(137))], &[]),
            true,
            json!(null),
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
        let mut sim = Simulation::new(|name, attempt| match attempt {
            0 if name.ends_with("worker-0") => Runs,
            _ => ends(name),
        });
        sim.create(train("job", &PAIR)).await;
        sim.advance(10).await;
        edit_status(&sim, "pods", "job-worker-0", status).await;
        settle_and_check(&mut sim).await;
        let end = if retried { "Succeeded" } else { "Failed" };
        assert_ends(&sim, "job", end, case);
        let status = sim.status("job");
        let failure = last_failure(&status);
        assert_eq!(failure["reason"], reason, "{case}");
        if case == "both" {
            assert_eq!(failure["container"], "mxnet");
        }
    }
    let mut sim = Simulation::new(|name, attempt| match attempt {
        0 if name.ends_with("worker-0") => SidecarFails(5),
        _ => ends(name),
    });
    sim.create(train("job", &PAIR)).await;
    settle_and_check(&mut sim).await;
    assert_ends(&sim, "job", "Succeeded", "");
}

/// Two hundred replicas, because of the speed of a debug build.
#[tokio::test(start_paused = true)]
async fn all_pods_end_in_one_instant() {
    let mut sim = Simulation::new(|_, _| Succeeds(60));
    sim.create(train("job", &[("Scheduler", 1), ("Worker", 200)]))
        .await;
    sim.advance(50).await;
    sim.network.take_calls();
    sim.advance(60).await;
    assert_ends(&sim, "job", "Succeeded", "");
    let statuses = sim.network.count("patch", "mxjobs/status");
    assert_within(statuses, 1..=2, "statuses");
    assert_eq!(sim.status("job")["replicaStatuses"]["Worker"]["succeeded"], 200);
    settle_and_check(&mut sim).await;
}

/// A worker's final failure takes precedence over the scheduler's success, whichever is reported first, even a moment
/// later.
#[tokio::test(start_paused = true)]
async fn the_scheduler_ends_well_as_a_worker_fails() {
    for apart in [0, 200, 900] {
        for first in ["scheduler", "worker"] {
            for blind in [false, true] {
                let mut sim = Simulation::new(|_, _| Runs);
                sim.create(train("job", &PAIR)).await;
                sim.advance(10).await;
                if blind {
                    sim.cluster.freeze_watches(Some("pods"));
                }
                let good = json!({"phase": "Succeeded", "containerStatuses": failed(&[("mxnet", ended(0))], &[])["containerStatuses"]});
                let bad = failed(&[("mxnet", ended(1))], &[]);
                let mut both = [("job-scheduler-0", good), ("job-worker-0", bad)];
                if first == "worker" {
                    both.reverse();
                }
                for (pod, status) in both {
                    edit_status(&sim, "pods", pod, status).await;
                    tokio::time::sleep(std::time::Duration::from_millis(apart)).await;
                }
                sim.cluster.thaw_watches(Some("pods"));
                settle_and_check(&mut sim).await;
                let conditions = sim.conditions("job");
                assert!(
                    conditions.ends_with("Failed"),
                    "{first} first, {apart} ms, {blind}: {conditions}"
                );
            }
        }
    }
}

/// A replica that the status records as completed does not run again, even if its pod was removed while no operator
/// ran. There is one limit: a replica that ends and is removed within one such absence runs again.
#[tokio::test(start_paused = true)]
async fn finished_pods_go_while_the_operator_is_down() {
    for seen in [true, false] {
        let mut sim = sim_of(
            |name, _| match name {
                "job-worker-0" => Succeeds(20),
                _ if name.contains("scheduler") => Succeeds(200),
                _ => Succeeds(150),
            },
            json!({"restartScope": "Replica"}),
        )
        .await;
        sim.advance(if seen { 30 } else { 15 }).await;
        sim.kill().await;
        sim.advance(30).await;
        assert!(remove(&sim, "pods", "job-worker-0").await);
        sim.start();
        settle_and_check(&mut sim).await;
        assert_eq!(
            created_and_deleted(&sim, "pods job-worker-0").0,
            if seen { 1 } else { 2 },
            "seen to end: {seen}"
        );
        assert_ends(&sim, "job", "Succeeded", "");
    }
}

/// This includes the scheduler's own success, and thereby the job's.
#[tokio::test(start_paused = true)]
async fn all_pods_go_after_the_end() {
    let mut sim = sim_of(|_, _| Succeeds(20), json!({})).await;
    sim.advance(40).await;
    sim.kill().await;
    for pod in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
        assert!(remove(&sim, "pods", &format!("job-{pod}")).await);
    }
    sim.start();
    settle_and_check(&mut sim).await;
    assert_eq!(sim.conditions("job"), "Created Running=False Succeeded");
    assert!(sim.pods_now().is_empty());
}

/// A worker is killed repeatedly, and the operator after each time. The backoff limit still holds.
#[tokio::test(start_paused = true)]
async fn a_replica_fails_again_and_again_under_new_operators() {
    for (scope, limit) in [("Replica", 3), ("Job", 2)] {
        let mut sim = sim_of(
            |name, _| either(name, "worker-0", Fails(137, 5), Runs),
            json!({"restartScope": scope, "backoffLimit": limit}),
        )
        .await;
        for second in 0..120 {
            tokio::time::sleep(std::time::Duration::from_millis(997)).await;
            if second % 3 == 0 {
                sim.kill().await;
                sim.start();
            }
        }
        settle_and_check(&mut sim).await;
        assert_ends(&sim, "job", "Failed", scope);
        assert_eq!(sim.status("job")["restartCount"], limit, "{scope}");
        assert_eq!(
            sim.status("job")["failure"]["reason"],
            "BackoffLimitExceeded",
            "{scope}"
        );
        assert_eq!(
            created_and_deleted(&sim, "pods job-worker-0").0,
            u64::try_from(limit + 1).unwrap(),
            "{scope}"
        );
    }
}

/// A drained pod was taken away, and a success stays one, whatever the clocks of their nodes.
#[tokio::test(start_paused = true)]
async fn clocks_of_nodes_differ() {
    for (fate, end, restarts) in [
        (PodFate::Drained(0, 100), "Succeeded", 1),
        (PodFate::ShutDown(0, 100), "Succeeded", 1),
        (PodFate::SidecarWorks(0, 100, 60), "Succeeded", 0),
        (Succeeds(100), "Succeeded", 0),
    ] {
        let setup = Setup::mxjobs(move |name, attempt| match attempt {
            0 if name.ends_with("worker-0") => fate,
            _ => ends(name),
        });
        let mut sim = Simulation::with_setup(Setup {
            node_clocks_differ: true,
            ..setup
        });
        sim.start();
        for job in ["a", "b", "c", "d"] {
            sim.create(job::new(JobType::Train, job, &PAIR, "OnFailure"))
                .await;
        }
        sim.advance(900).await;
        for job in ["a", "b", "c", "d"] {
            assert_ends(&sim, job, end, format_args!("{fate:?}"));
            let restarted = sim.status(job)["restartCount"].as_i64().unwrap_or(0);
            assert_eq!(restarted, restarts, "{fate:?}");
        }
        sim.assert_no_violations();
    }
}
