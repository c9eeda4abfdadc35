//! Large and small sizes.

use serde_json::json;
use training_job_simulation::faults::PodFate::{Runs, Succeeds};
use training_job_simulation::modes::crowd::{self, Size};
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{
    assert_ends, assert_idle, assert_no_children, assert_within, call, edit, edit_job, either, event_count,
    remove, settle_and_check, worker,
};

/// The environment of ten thousand workers would be too large to start a process. With a hundred workers (because of
/// the speed of a debug build), a few pods are created at a time, and a small job overtakes them.
#[tokio::test(start_paused = true)]
async fn a_job_is_very_large() {
    let mut sim = Simulation::new(|name, _| either(name, "small", Succeeds(20), Runs));
    sim.create(train("huge", &[("Scheduler", 1), ("Worker", 10_000)]))
        .await;
    sim.advance(5).await;
    assert_eq!(sim.conditions("huge"), "Failed");
    assert_eq!(event_count(&sim, "MXJobFailedValidation"), 1);
    let message = sim.status("huge")["failure"]["message"].to_string();
    assert!(message.contains("MX_CONFIG"), "{message}");
    assert_no_children(&sim, "");
    assert!(remove(&sim, "mxjobs", "huge").await);

    // Each call takes a while, so that the limit on calls in flight has an effect.
    sim.network.add_rule(|call| {
        call.is("create", "")
            .then_some(training_job_simulation::faults::CallFault::Slow(100, 100))
    });
    sim.network.take_calls();
    sim.create(train("large", &[("Scheduler", 1), ("Worker", 100)]))
        .await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let first = sim.network.count("create", "services");
    assert_within(first, 1..=32, "calls at once");
    sim.create(train("small", &SMALL)).await;
    sim.advance(28).await;
    assert_ends(&sim, "small", "Succeeded", "");
    settle_and_check(&mut sim).await;
    assert_eq!(sim.status("large")["replicaStatuses"]["Worker"]["active"], 100);
}

/// This test has 130 jobs, which have more pods than a page of a list. `make test-large` has ten thousand. Operators
/// are killed in between, one of them before half of the pods exist. The next operator lists the existing objects
/// once, creates nothing twice, and no job costs more calls than it does alone.
#[test]
fn very_many_jobs_outlive_their_operators() {
    let jobs = 130;
    let crowd::CrowdSummary { phases, violations } = crowd::run(Size { jobs, pods: 4 }, None, |_| ());
    assert!(violations.is_empty(), "{violations:#?}");
    let [half, rest, known, ended, deleted] = &phases[..] else {
        panic!("{phases:#?}")
    };
    let lists = |pages| {
        let of_children = ("list services", pages);
        [
            ("list configmaps", 1),
            ("list mxjobs", 1),
            ("list pods", pages),
            of_children,
        ]
    };
    let counted = |kinds: &[(&str, u64)]| kinds.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect();
    for kind in ["create pods", "create services"] {
        // Calls that were in flight when the operator was killed are repeated.
        let made = half.count(kind) + rest.count(kind);
        assert_within(made, 4 * jobs..=4 * jobs + 64, kind);
    }
    for (kind, count) in lists(1) {
        assert_eq!(rest.count(kind), count, "{kind}");
    }
    assert_eq!(rest.count("patch mxjobs/status"), jobs);
    assert_eq!(known.calls, counted(&lists(2)));
    // One status write for the servers and workers, and one for the schedulers.
    // Each job gives a cluster IP back, and has an event about it.
    let told = [
        ("create events", 2 * jobs),
        ("delete services", jobs),
        ("patch mxjobs/status", 2 * jobs),
    ];
    assert_eq!(ended.calls, counted(&told));
    assert_eq!(deleted.calls, counted(&[]));
}

/// This test has one job of 500 pods, which is a page of a list. `make test-large` has 2,000. Apart from its pods and
/// services, the job costs as many calls as a small job, even if operators are killed.
#[test]
fn a_large_job_outlives_its_operators() {
    let crowd::CrowdSummary { phases, violations } = crowd::run(Size { jobs: 1, pods: 500 }, None, |_| ());
    assert!(violations.is_empty(), "{violations:#?}");
    assert_eq!(phases.len(), 5);
    let made: u64 = phases.iter().map(|phase| phase.count("create pods")).sum();
    assert_within(made, 500..=500 + 32, "pods made");
}

/// A role with zero replicas has no pods and services, and no effect on success. An impossible number is refused,
/// even if it was stored before there were validation rules.
#[tokio::test(start_paused = true)]
async fn replicas_are_none_one_or_senseless() {
    for replicas in [
        i64::from(i32::MAX),
        -1,
        i64::from(i32::MIN),
        i64::from(i32::MAX) + 1,
        i64::MAX,
        i64::MIN,
    ] {
        let mut sim = Simulation::new(|_, _| Runs);
        let mut job = train("job", &SMALL);
        job["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] = json!(replicas);
        sim.create(job).await;
        sim.advance(3_600).await;
        assert_eq!(sim.conditions("job"), "Failed", "{replicas}");
        assert_eq!(event_count(&sim, "MXJobFailedValidation"), 1, "{replicas}");
        assert_no_children(&sim, "");
        edit_job(&sim, worker(json!({"replicas": 1}))).await;
        settle_and_check(&mut sim).await;
        assert_eq!(sim.conditions("job"), "Created Running", "{replicas}");
        // A mistake in an edit of a running job deletes no pod.
        edit_job(&sim, worker(json!({"replicas": replicas}))).await;
        sim.advance(300).await;
        // It is reported once, even if the job's pods change.
        edit(
            &sim,
            "pods",
            "job-worker-0",
            json!({"metadata": {"labels": {"a": "b"}}}),
        )
        .await;
        sim.advance(300).await;
        assert_eq!(event_count(&sim, "MXJobFailedValidation"), 2, "{replicas}");
        assert_eq!(sim.pods_now().len(), 3, "{replicas}");
    }
    let mut sim = Simulation::new(|name, _| either(name, "server", Succeeds(10), Runs));
    sim.create(train("none", &[("Scheduler", 1), ("Server", 0), ("Worker", 1)]))
        .await;
    sim.create(train("nobody", &[("Scheduler", 0), ("Server", 1), ("Worker", 0)]))
        .await;
    sim.advance(60).await;
    assert_eq!(
        sim.pods_now(),
        ["none-scheduler-0:Running", "none-worker-0:Running"]
    );
    assert_eq!(sim.conditions("none"), "Created Running");
    assert_eq!(sim.conditions("nobody"), "Failed", "nobody could decide");
    sim.network.take_calls();
    sim.advance(3_600).await;
    assert_idle(&sim, "it is not tried again and again");
    settle_and_check(&mut sim).await;
}

/// One namespace has 150 jobs at once, and another namespace has one. That job waits at most until all earlier jobs
/// have been reconciled once.
#[tokio::test(start_paused = true)]
async fn one_namespace_has_everything() {
    let mut sim = Simulation::new(|_, _| Runs);
    sim.network.add_rule(|call| {
        let slow = training_job_simulation::faults::CallFault::Slow(50, 50);
        call.writes().then_some(slow)
    });
    for number in 0..150 {
        sim.create(train(&format!("job-{number}"), &[("Worker", 1)]))
            .await;
    }
    let mut alone = train("job-0", &[("Worker", 1)]);
    alone["metadata"]["namespace"] = json!("away");
    let path = "/apis/kubeflow.org/v1/namespaces/away/mxjobs";
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "away"}});
    call(&sim, "POST", "/api/v1/namespaces", namespace).await.unwrap();
    call(&sim, "POST", path, alone).await.unwrap();
    let begun = tokio::time::Instant::now();
    let there = || !sim.cluster.list("pods", Some("away")).is_empty();
    while !there() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    // Jobs are served in order with a concurrency of sixteen. No job waits longer than all earlier jobs take once.
    let millis = begun.elapsed().as_millis();
    assert!(millis <= 150 / 16 * 700, "{millis} ms");
    settle_and_check(&mut sim).await;
}
