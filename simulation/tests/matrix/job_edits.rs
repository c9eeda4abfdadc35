//! Jobs that are edited while they run.

use serde_json::{Value, json};
use training_job_simulation::faults::PodFate::{Fails, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train, with_spec};

use crate::harness::{
    assert_ends, created_and_deleted, edit_job, edit_status, policy, settle_and_check, sim_of, succeeds,
    until, with_policy, worker,
};

/// Each edit is made at each step of a job's creation, and while it runs. Once settled, the job has the children of
/// its spec.
#[tokio::test(start_paused = true)]
async fn the_spec_changes_at_any_step() {
    let server = json!({"replicas": 2, "restartPolicy": "ExitCode",
        "template": {"spec": {"containers": [{"name": "mxnet", "image": "i"}]}}});
    let image = json!({"template": {"spec": {"containers": [{"name": "mxnet", "image": "other"}]}}});
    let edits = [
        worker(json!({"replicas": 4})),
        worker(json!({"replicas": 1})),
        worker(json!({"replicas": 0})),
        worker(image),
        json!({"spec": {"mxReplicaSpecs": {"Server": server}}}),
        json!({"spec": {"mxReplicaSpecs": {"Server": null}}}),
        policy(json!({"cleanPodPolicy": "All"})),
        policy(json!({"activeDeadlineSeconds": 50})),
        policy(json!({"backoffLimit": 0})),
        policy(json!({"suspend": true})),
    ];
    for (number, change) in edits.into_iter().enumerate() {
        // The number of changes after the job's creation: 4 services, 4 pods, the nodes' updates, and the status.
        for step in [0, 5, 10, 16] {
            let mut sim = Simulation::new(|_, _| Runs);
            let before = sim.cluster.resource_version();
            sim.create(train("job", &SMALL)).await;
            until(|| sim.cluster.resource_version() > before + step).await;
            edit_job(&sim, change.clone()).await;
            settle_and_check(&mut sim).await;
            let case = format!("{change} at change {step}");
            let runs = created_and_deleted(&sim, "pods job-scheduler-0");
            // Edits of numbers restart the job, and so do new and removed roles. Until the first status is stored, any
            // edit restarts it, because the pods may have been created for other numbers.
            let is_of_numbers = number < 3 || number == 4 || number == 5;
            let restarts = u64::from(is_of_numbers || step < 16);
            assert!(
                (1..=1 + restarts).contains(&runs.0),
                "{case}: created {} times",
                runs.0
            );
            assert_eq!(sim.status("job")["restartCount"], Value::Null, "{case}");
        }
    }
}

/// A new template applies to new pods only, and another number of workers restarts the job once, whatever its scope.
#[tokio::test(start_paused = true)]
async fn fewer_workers_restart_the_job_with_the_new_template() {
    let mut sim = Simulation::new(|_, _| Runs);
    sim.create(with_policy(
        "job",
        &[("Scheduler", 1), ("Worker", 5)],
        json!({"restartScope": "Replica"}),
    ))
    .await;
    sim.advance(10).await;
    let image = json!({"template": {"spec": {"containers": [{"name": "mxnet", "image": "other"}]}}});
    edit_job(&sim, worker(image)).await;
    edit_job(&sim, worker(json!({"replicas": 2}))).await;
    settle_and_check(&mut sim).await;
    assert_eq!(sim.pods_now().len(), 3);
    for pod in ["job-scheduler-0", "job-worker-0", "job-worker-1"] {
        assert_eq!(created_and_deleted(&sim, &format!("pods {pod}")), (2, 1));
    }
    let image = |pod: &str| sim.stored("pods", pod)["spec"]["containers"][0]["image"].clone();
    assert_eq!(image("job-scheduler-0"), json!("i"));
    assert_eq!(image("job-worker-1"), json!("other"));
    assert_eq!(sim.status("job")["restartCount"], Value::Null);
}

/// A user with permission may write a status. Parts that follow from the spec and the pods are corrected. Parts that
/// only the status records are trusted: a written end is an end, and removed restarts are forgotten.
#[tokio::test(start_paused = true)]
async fn another_client_edits_the_status() {
    let time = "2030-01-01T00:00:10Z";
    let end = json!({"type": "Succeeded", "status": "True", "reason": "r", "message": "m",
        "lastTransitionTime": time, "lastUpdateTime": time});
    let edits = [
        (Value::Null, false),
        (json!({"conditions": null}), false),
        (json!({"conditions": []}), false),
        (
            json!({"replicaStatuses": {"Worker": {"active": 99, "failed": -7}, "Sleeper": {"active": 1}}}),
            false,
        ),
        (json!({"replicaStatuses": null}), false),
        (json!({"recovery": null}), false),
        (json!({"startTime": null}), false),
        (json!({"conditions": [end]}), true),
    ];
    for (change, ends) in edits {
        let mut sim = sim_of(|_, _| Runs, json!({})).await;
        sim.advance(30).await;
        let right = sim.status("job");
        edit_status(&sim, "mxjobs", "job", change.clone()).await;
        settle_and_check(&mut sim).await;
        let now = sim.status("job");
        if ends {
            assert_eq!(sim.conditions("job"), "Succeeded", "{change}");
            assert!(
                sim.pods_now().is_empty(),
                "{change}: what still ran is cleaned up"
            );
        } else {
            for field in ["replicaStatuses", "recovery"] {
                assert_eq!(now[field], right[field], "{change}");
            }
            assert_eq!(sim.conditions("job"), "Created Running", "{change}");
            assert!(!now["startTime"].is_null(), "{change}");
            assert_eq!(created_and_deleted(&sim, "pods job-worker-0"), (1, 0), "{change}");
        }
    }
}

/// A user removes the condition of a finished job. The job continues with the pods it has.
#[tokio::test(start_paused = true)]
async fn an_end_is_taken_back() {
    let sim = sim_of(succeeds, json!({})).await;
    sim.advance(230).await;
    assert_ends(&sim, "job", "Succeeded", "");
    edit_status(&sim, "mxjobs", "job", json!({"conditions": null})).await;
    sim.advance(200).await;
    assert_ends(&sim, "job", "Succeeded", "");
    assert_eq!(
        created_and_deleted(&sim, "pods job-scheduler-0"),
        (1, 0),
        "nothing is run again"
    );
    // The user's edit is the only violation.
    let found = sim.monitor.violations();
    assert!(found.iter().all(|v| v.id == "I3"), "{found:#?}");
}

/// A job is deleted and created again at the moment its TTL passes.
#[tokio::test(start_paused = true)]
async fn the_job_is_created_again_as_its_time_to_live_ends() {
    for slow in [false, true] {
        let mut sim = Simulation::new(|_, _| Succeeds(10));
        let short = json!({"runPolicy": {"ttlSecondsAfterFinished": 30}});
        sim.create(with_spec(train("job", &SMALL), short.clone())).await;
        sim.advance(20).await;
        assert_ends(&sim, "job", "Succeeded", "");
        // The operator's own call is late, or the operator has not received the new job.
        if slow {
            let slow = training_job_simulation::faults::CallFault::Slow(20_000, 0);
            sim.network.fail_next("delete", "mxjobs", 1, slow);
            sim.advance(25).await;
        } else {
            sim.cluster.freeze_watches(Some("mxjobs"));
        }
        sim.delete("job").await;
        sim.create(with_spec(train("job", &SMALL), short)).await;
        let uid = sim.stored("mxjobs", "job")["metadata"]["uid"].clone();
        sim.advance(30).await;
        assert!(sim.network.count("delete", "mxjobs") >= 1, "slow: {slow}");
        assert_eq!(
            sim.stored("mxjobs", "job")["metadata"]["uid"],
            uid,
            "slow: {slow}"
        );
        sim.cluster.thaw_watches(None);
        settle_and_check(&mut sim).await;
        assert!(sim.stored("mxjobs", "job").is_null(), "slow: {slow}");
    }
}

/// A finished job has no active replicas. The operator corrects another count once.
#[tokio::test(start_paused = true)]
async fn edited_counts_of_a_finished_job_are_corrected() {
    for (code, policy) in [(0, "None"), (1, "None"), (0, "All"), (1, "Running")] {
        let fate = if code == 0 { Succeeds(5) } else { Fails(code, 5) };
        let sim = sim_of(move |_, _| fate, json!({"cleanPodPolicy": policy})).await;
        sim.advance(60).await;
        let (end, right) = (sim.conditions("job"), sim.status("job"));
        for count in [json!(99), json!(-7), json!("many")] {
            let case = format!("exit code {code}, policy {policy}, count {count}");
            let counts = json!({"Worker": {"active": count}, "Nobody": {"active": count}});
            sim.edit_status("job", json!({"replicaStatuses": counts})).await;
            sim.network.take_calls();
            sim.advance(60).await;
            let status = sim.status("job");
            let mut roles = status["replicaStatuses"].as_object().unwrap().values();
            assert!(roles.all(|role| role["active"].is_null()), "{case}: {status}");
            assert_eq!(sim.conditions("job"), end, "{case}");
            assert_eq!(status["completionTime"], right["completionTime"], "{case}");
            assert_eq!(sim.network.count("patch", "mxjobs/status"), 1, "{case}");
        }
    }
}
