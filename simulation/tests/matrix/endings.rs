//! Jobs that are deleted, or finish.

use serde_json::{Value, json};
use training_job_simulation::faults::CallFault::{Lost, Refused, Unanswered};
use training_job_simulation::faults::PodFate::{self, Fails, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{
    PodFates, assert_idle, assert_no_children, assert_within, call, edit, edit_job, either, event_count,
    policy, settle_and_check, sim_of, succeeds, with_policy,
};

/// The call at which the job is deleted gets no response, with or without its effect. Other calls in flight continue.
#[tokio::test(start_paused = true)]
async fn the_job_is_deleted_at_each_call_of_its_start() {
    // Four services, four pods, their events, and the status.
    for at in 0..11 {
        for fault in [Lost, Unanswered] {
            let mut sim = Simulation::new(succeeds);
            let hit = std::sync::Arc::new(tokio::sync::Notify::new());
            let (reached, mut number, answer) = (hit.clone(), 0, fault.clone());
            sim.network.add_rule(move |call| {
                number += usize::from(call.writes());
                if call.writes() && number == at + 1 {
                    reached.notify_one();
                    return Some(answer.clone());
                }
                None
            });
            sim.create(train("job", &SMALL)).await;
            hit.notified().await;
            sim.delete("job").await;
            settle_and_check(&mut sim).await;
            let case = format!("{fault:?} at write {at}");
            assert_no_children(&sim, &case);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_job_is_deleted_with_each_propagation_policy() {
    for how in ["Background", "Foreground", "Orphan"] {
        for at in [1, 10, 150, 250] {
            let mut sim = sim_of(succeeds, json!({"cleanPodPolicy": "None"})).await;
            sim.advance(at).await;
            let children = (sim.pods_now().len(), sim.services_now().len());
            let path = "/apis/kubeflow.org/v1/namespaces/default/mxjobs/job";
            call(&sim, "DELETE", path, json!({"propagationPolicy": how}))
                .await
                .unwrap();
            sim.network.take_calls();
            settle_and_check(&mut sim).await;
            let case = format!("{how} after {at} s");
            assert!(sim.stored("mxjobs", "job").is_null(), "{case}");
            let left = (sim.pods_now().len(), sim.services_now().len());
            assert_eq!(left, if how == "Orphan" { children } else { (0, 0) }, "{case}");
            if how == "Orphan" {
                let orphans = sim.pods_now();
                sim.create(train("job", &SMALL)).await;
                sim.advance(60).await;
                assert_eq!(sim.pods_now(), orphans, "{case}: they are not the new job's");
            }
        }
    }
}

/// A finalizer keeps a job that is being deleted, while its pods are deleted and end.
#[tokio::test(start_paused = true)]
async fn a_finalizer_keeps_it_for_hours() {
    let mut sim = Simulation::new(|name, _| either(name, "worker-1", Fails(137, 60), Runs));
    let mut job = train("job", &SMALL);
    job["metadata"]["finalizers"] = json!(["a/b"]);
    let mut invalid = train("invalid", &[("Worker", -1)]);
    invalid["metadata"]["finalizers"] = json!(["a/b"]);
    sim.create(job).await;
    sim.advance(10).await;
    // It is deleted before any operator has seen it.
    sim.kill().await;
    sim.create(invalid).await;
    sim.delete("invalid").await;
    sim.start();
    sim.advance(1).await;
    sim.delete("job").await;
    sim.network.take_calls();
    sim.delete_pod("job-worker-0").await;
    sim.advance(3 * 3_600).await;
    let calls = sim.network.take_calls();
    assert!(calls.iter().all(|c| c.verb == "watch"), "{calls:?}");
    assert_eq!(sim.conditions("invalid"), "", "it is left alone");
    for name in ["job", "invalid"] {
        edit(&sim, "mxjobs", name, json!({"metadata": {"finalizers": []}})).await;
    }
    settle_and_check(&mut sim).await;
    assert!(sim.stored("mxjobs", "job").is_null());
    assert!(sim.pods_now().is_empty());
}

/// A terminating namespace refuses every new object, then all its objects go. (The cause that a real server adds is
/// tested there.)
#[tokio::test(start_paused = true)]
async fn its_namespace_is_going() {
    for at in [0, 10] {
        let mut sim = Simulation::new(|_, _| Runs);
        sim.advance(1).await;
        let going = || {
            move |call: &training_job_simulation::call::Call| {
                (call.verb == "create").then_some(Refused(403, "Forbidden"))
            }
        };
        if at == 0 {
            sim.network.add_rule(going());
        }
        sim.create(train("job", &SMALL)).await;
        sim.advance(at).await;
        if at > 0 {
            sim.network.add_rule(going());
            for pod in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
                sim.delete_pod(&format!("job-{pod}")).await;
            }
        }
        sim.network.take_calls();
        sim.advance(1_800).await;
        let calls = sim
            .network
            .take_calls()
            .iter()
            .filter(|c| c.verb != "watch")
            .count();
        assert_within(calls, 5..150, format_args!("{at}: calls in half an hour"));
        sim.delete("job").await;
        sim.advance(1).await;
        sim.network.take_calls();
        sim.advance(600).await;
        assert_idle(&sim, "");
        settle_and_check(&mut sim).await;
        assert_no_children(&sim, "");
    }
}

/// The remaining pods after each end under each policy. One pod has succeeded, one has the end of the case, and one
/// runs.
#[tokio::test(start_paused = true)]
async fn each_clean_up_policy_meets_each_end() {
    let succeeds: fn(&str, u32) -> PodFate = |name, _| match name {
        "job-server-0" => Runs,
        _ => Succeeds(if name.contains("scheduler") { 100 } else { 50 }),
    };
    let fails: fn(&str, u32) -> PodFate = |name, _| match name {
        "job-worker-0" => Succeeds(50),
        "job-worker-1" => Fails(1, 100),
        _ => Runs,
    };
    let hangs: fn(&str, u32) -> PodFate = |name, _| {
        if name == "job-worker-0" {
            Succeeds(50)
        } else {
            Runs
        }
    };
    let none = json!({});
    let cases: [(&str, PodFates, Value); 5] = [
        ("Succeeded", succeeds, none.clone()),
        ("Failed", fails, none.clone()),
        ("deadline", hangs, json!({"activeDeadlineSeconds": 100})),
        (
            "limit",
            |name, _| {
                if name == "job-worker-1" {
                    Fails(137, 50)
                } else {
                    Runs
                }
            },
            json!({"backoffLimit": 0}),
        ),
        ("suspended", hangs, none),
    ];
    for (end, script, limits) in cases {
        for clean in ["All", "Running", "None"] {
            let mut sim = Simulation::new(script);
            let mut run = limits.clone();
            run["cleanPodPolicy"] = json!(clean);
            sim.create(with_policy("job", &SMALL, run)).await;
            if end == "suspended" {
                sim.advance(100).await;
                edit_job(&sim, policy(json!({"suspend": true}))).await;
            }
            settle_and_check(&mut sim).await;
            let left: Vec<String> = sim.pods_now();
            let expected: &[&str] = match (end, clean) {
                ("suspended", _) | (_, "All") => &[],
                ("Succeeded", "Running") => &[
                    "job-scheduler-0:Succeeded",
                    "job-worker-0:Succeeded",
                    "job-worker-1:Succeeded",
                ],
                ("Failed", "Running") => &["job-worker-0:Succeeded", "job-worker-1:Failed"],
                // The deadline or the limit stops the pods that still run.
                ("deadline", _) => &["job-worker-0:Succeeded"],
                ("limit", _) => &["job-worker-1:Failed"],
                _ => &["", "", "", ""],
            };
            if expected.first() == Some(&"") {
                assert_eq!(left.len(), 4, "{end}, {clean}: {left:?}");
            } else {
                assert_eq!(left, expected, "{end}, {clean}");
            }
            // The scheduler's service has a cluster IP, which is given back when the scheduler has ended.
            let given_back = left
                .iter()
                .filter(|pod| *pod == "job-scheduler-0:Succeeded")
                .count();
            let services = sim.services_now();
            assert_eq!(
                services.len(),
                left.len() - given_back,
                "{end}, {clean}: {services:?}"
            );
        }
    }
}

/// The job is suspended and resumed within a moment, and after its end.
#[tokio::test(start_paused = true)]
async fn the_job_is_suspended_and_resumed_quickly() {
    for millis in [0, 5, 50, 900] {
        for last in [true, false] {
            let mut sim = sim_of(succeeds, json!({})).await;
            sim.advance(3).await;
            let started = sim.status("job")["startTime"].clone();
            for turn in 0..9 {
                edit_job(&sim, policy(json!({"suspend": turn % 2 == 0}))).await;
                tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
            }
            edit_job(&sim, policy(json!({"suspend": last}))).await;
            settle_and_check(&mut sim).await;
            let is_same = sim.status("job")["startTime"] == started;
            assert!(!is_same || last || millis < 900, "the time starts again");
            let conditions = sim.conditions("job");
            let end = if last { "Suspended" } else { "Succeeded" };
            assert!(conditions.ends_with(end), "{millis} ms: {conditions}");
        }
    }
    let sim = sim_of(succeeds, json!({})).await;
    sim.advance(220).await;
    let ended = sim.status("job");
    for suspend in [true, false, true] {
        edit_job(&sim, policy(json!({"suspend": suspend}))).await;
        sim.advance(10).await;
    }
    assert_eq!(sim.status("job"), ended, "an end is an end");
    assert_eq!(event_count(&sim, "MXJobSuspended"), 0);
}
