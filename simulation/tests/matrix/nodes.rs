//! Nodes that lose pods, or never start them.

use serde_json::json;
use training_job_simulation::faults::PodFate::{
    self, AtOnce, Evicted, Flickers, NodeLost, Pends, Preempted, RestartsInPlace, Runs, Succeeds,
};
use training_job_simulation::simulation::{SMALL, Simulation};

use crate::harness::{
    assert_ends, assert_made, assert_workers, created_and_deleted, edit_status, either, event_count,
    settle_and_check, sim_of,
};

fn ends(name: &str) -> PodFate {
    Succeeds(if name.contains("scheduler") { 200 } else { 150 })
}

/// Under the policy ExitCode the replica restarts regardless of its exit code, because the program has not failed.
/// Under `Never` an evicted pod, which has failed, is not restarted. A preempted pod is being deleted, and has not
/// failed.
#[tokio::test(start_paused = true)]
async fn a_node_evicts_or_a_scheduler_preempts() {
    for fate in [Evicted(20), Preempted(20)] {
        for restart in ["ExitCode", "OnFailure", "Always", "Never"] {
            let mut sim = Simulation::new(move |name, attempt| match attempt {
                0 if name.ends_with("worker-1") => fate,
                _ => ends(name),
            });
            let job = training_job_simulation::world::job::new(
                training_job_simulation::world::job::JobType::Train,
                "job",
                &SMALL,
                restart,
            );
            sim.create(job).await;
            settle_and_check(&mut sim).await;
            let restarts = sim.status("job")["restartCount"].as_i64().unwrap_or(0);
            let conditions = sim.conditions("job");
            if restart == "Never" && fate == Evicted(20) {
                assert!(conditions.ends_with("Failed"), "{fate:?} {restart}: {conditions}");
                assert_eq!(restarts, 0);
            } else {
                assert!(
                    conditions.ends_with("Succeeded"),
                    "{fate:?} {restart}: {conditions}"
                );
                assert_eq!(restarts, 1, "{fate:?} {restart}");
            }
        }
    }
}

/// A pod on a lost node is terminating and does not go away. While it exists, no other pod has its rank, and a job
/// that restarts as a whole creates no pods. When it is gone, it is created again. (The Go operator counts it as
/// failed at once.)
#[tokio::test(start_paused = true)]
async fn a_node_is_lost_with_its_pod() {
    for scope in ["Replica", "Job"] {
        let mut sim = sim_of(
            |name, attempt| match attempt {
                0 if name.ends_with("worker-1") => NodeLost(20, 1_000),
                _ => Runs,
            },
            json!({"restartScope": scope}),
        )
        .await;
        sim.advance(900).await;
        assert_eq!(created_and_deleted(&sim, "pods job-worker-1"), (1, 0), "{scope}");
        // The pods that restart together with it are deleted without waiting for it.
        let others = if scope == "Job" { 0 } else { 3 };
        assert_eq!(sim.pods_now().len(), 1 + others, "{scope}");
        assert_eq!(
            sim.status("job")["replicaStatuses"]["Worker"]["failed"],
            json!(null),
            "{scope}"
        );
        // The phase of the pod may be Unknown.
        edit_status(
            &sim,
            "pods",
            "job-worker-1",
            json!({"phase": "Unknown", "reason": "NodeLost"}),
        )
        .await;
        sim.advance(200).await;
        if scope == "Replica" {
            // The pod is created again for the same attempt, so its node is lost again each time.
            assert_made(&sim, "pods job-worker-1", 2, "");
            sim.delete("job").await;
            sim.advance(1_200).await;
            assert!(sim.pods_now().is_empty(), "{:?}", sim.pods_now());
            sim.assert_no_violations();
        } else {
            settle_and_check(&mut sim).await;
            assert_eq!(sim.status("job")["restartCount"], 1);
            assert_ends(&sim, "job", "Running", "");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn phases_come_in_another_order() {
    let fates = [
        AtOnce,
        Flickers(50),
        RestartsInPlace(1, 20, 100),
        RestartsInPlace(137, 20, 100),
    ];
    for scope in ["Replica", "Job"] {
        for fate in fates {
            let mut sim = sim_of(
                move |name, attempt| match attempt {
                    0 if name.ends_with("worker-1") => fate,
                    _ => ends(name),
                },
                json!({"restartScope": scope, "cleanPodPolicy": "None"}),
            )
            .await;
            settle_and_check(&mut sim).await;
            let case = format!("{fate:?}, scope {scope}");
            assert_ends(&sim, "job", "Succeeded", &case);
            let status = sim.status("job");
            assert_eq!(
                status["replicaStatuses"]["Worker"],
                json!({"succeeded": 2}),
                "{case}"
            );
            let restarts = i64::from(matches!(fate, RestartsInPlace(..)));
            assert_eq!(status["restartCount"].as_i64().unwrap_or(0), restarts, "{case}");
        }
    }
}

/// A failed pod runs again, as an old kubelet or a user may write.
#[tokio::test(start_paused = true)]
async fn a_failed_pod_runs_again() {
    let mut sim = sim_of(|_, _| Runs, json!({"restartScope": "Replica"})).await;
    sim.advance(10).await;
    for phase in ["Failed", "Running", "Unknown", "Running"] {
        edit_status(&sim, "pods", "job-worker-1", json!({"phase": phase})).await;
    }
    settle_and_check(&mut sim).await;
    assert_workers(&sim, &json!({"active": 2}), "");
    assert_ends(&sim, "job", "Running", "");
}

#[tokio::test(start_paused = true)]
async fn a_pod_never_starts() {
    let images = json!({"phase": "Pending", "containerStatuses": [{
        "name": "mxnet", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"i\""}},
    }]});
    let nodes = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available",
    }]});
    for (status, reason) in [(images, "ImagePullBackOff"), (nodes, "Unschedulable")] {
        let mut sim = sim_of(
            |name, _| either(name, "worker", Pends, Runs),
            json!({"activeDeadlineSeconds": 600}),
        )
        .await;
        sim.advance(10).await;
        for pod in ["job-worker-0", "job-worker-1"] {
            edit_status(&sim, "pods", pod, status.clone()).await;
        }
        sim.advance(580).await;
        assert!(!sim.conditions("job").contains("Failed"), "{reason}");
        assert_eq!(event_count(&sim, reason), 1, "{:?}", sim.events());
        sim.advance(15).await;
        assert_ends(&sim, "job", "Failed", reason);
        assert_eq!(sim.status("job")["failure"]["reason"], "DeadlineExceeded");
        settle_and_check(&mut sim).await;
        assert!(sim.pods_now().is_empty());
    }
}
