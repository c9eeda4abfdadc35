//! Sizes.

use serde_json::json;
use training_job_simulation::crowd::{self, Size};
use training_job_simulation::faults::PodFate::{Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{call, edit, event_count, remove, settle_and_check, worker};

/// Ten thousand workers would need an environment that no process can be started with; a hundred (in a debug
/// build's time) are made a few at a time, and a small job passes them.
#[tokio::test(start_paused = true)]
async fn i1_a_job_is_very_large() {
    let mut sim = Simulation::new(|name, _| {
        if name.starts_with("small") {
            Succeeds(20)
        } else {
            Runs
        }
    });
    sim.create(train("huge", &[("Scheduler", 1), ("Worker", 10_000)]))
        .await;
    sim.advance(5).await;
    assert_eq!(sim.conditions("huge"), "Failed");
    assert_eq!(event_count(&sim, "MXJobFailedValidation"), 1);
    let message = sim.status("huge")["failure"]["message"].to_string();
    assert!(message.contains("MX_CONFIG"), "{message}");
    assert!(sim.pods_now().is_empty() && sim.services_now().is_empty());
    assert!(remove(&sim, "mxjobs", "huge").await);

    // Each call takes a while, so that a limit on those under way shows.
    sim.network.add_rule(|call| {
        call.is("create", "")
            .then_some(training_job_simulation::faults::CallFault::Slow(100, 100))
    });
    sim.network.take_calls();
    sim.create(train("large", &[("Scheduler", 1), ("Worker", 100)]))
        .await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let first = sim.network.count("create", "services");
    assert!((1..=32).contains(&first), "{first} calls at once");
    sim.create(train("small", &SMALL)).await;
    sim.advance(28).await;
    assert!(
        sim.conditions("small").ends_with("Succeeded"),
        "{}",
        sim.conditions("small")
    );
    settle_and_check(&mut sim).await;
    assert_eq!(sim.status("large")["replicaStatuses"]["Worker"]["active"], 100);
}

/// 130 jobs here, which are more pods than a page of a list has, and ten thousand in `make test-large`. Operators are
/// killed among them, one before half of the pods are there: the next lists what there is, once, makes nothing twice, and
/// no job costs more than it does alone.
// Matrix: A7
#[test]
fn i2_very_many_jobs_outlive_their_operators() {
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
        // Calls that were under way when the operator was killed are made again.
        let made = half.count(kind) + rest.count(kind);
        assert!((4 * jobs..=4 * jobs + 64).contains(&made), "{kind}: {made}");
    }
    for (kind, count) in lists(1) {
        assert_eq!(rest.count(kind), count, "{kind}");
    }
    assert_eq!(rest.count("patch mxjobs/status"), jobs);
    assert_eq!(known.calls, counted(&lists(2)));
    // The servers and workers, and then the schedulers.
    let told = [("create events", jobs), ("patch mxjobs/status", 2 * jobs)];
    assert_eq!(ended.calls, counted(&told));
    assert_eq!(deleted.calls, counted(&[]));
}

/// One job of 500 pods here, which are a page of a list, and 2,000 in `make test-large`: what it costs beside its pods
/// and services is that of a small job, also when operators are killed.
#[test]
fn i2_a_large_job_outlives_its_operators() {
    let crowd::CrowdSummary { phases, violations } = crowd::run(Size { jobs: 1, pods: 500 }, None, |_| ());
    assert!(violations.is_empty(), "{violations:#?}");
    assert_eq!(phases.len(), 5);
    let made: u64 = phases.iter().map(|phase| phase.count("create pods")).sum();
    assert!((500..=500 + 32).contains(&made), "{made}");
}

/// None means no pod and no service of that role, and says nothing of success; what no cluster can have is refused,
/// also when it was stored before there were rules.
#[tokio::test(start_paused = true)]
async fn i3_replicas_are_none_one_or_senseless() {
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
        assert!(sim.pods_now().is_empty() && sim.services_now().is_empty());
        edit(&sim, "mxjobs", "job", worker(json!({"replicas": 1}))).await;
        settle_and_check(&mut sim).await;
        assert_eq!(sim.conditions("job"), "Created Running", "{replicas}");
        // A mistake in an edit of one that runs costs no pod.
        edit(&sim, "mxjobs", "job", worker(json!({"replicas": replicas}))).await;
        sim.advance(600).await;
        assert_eq!(sim.pods_now().len(), 3, "{replicas}");
    }
    let mut sim = Simulation::new(|name, _| {
        if name.contains("server") {
            Succeeds(10)
        } else {
            Runs
        }
    });
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
    assert!(
        sim.network.take_calls().iter().all(|c| c.verb == "watch"),
        "it is not tried again and again"
    );
    settle_and_check(&mut sim).await;
}

/// One namespace has two hundred jobs at once, another one: it has its turn among the first that come after it, and
/// is not last.
#[tokio::test(start_paused = true)]
async fn i4_one_namespace_has_everything() {
    let mut sim = Simulation::new(|_, _| Runs);
    sim.network.add_rule(|call| {
        let slow = training_job_simulation::faults::CallFault::Slow(50, 50);
        call.writes().then_some(slow)
    });
    for number in 0..150 {
        sim.create(train(&format!("job-{number}"), &[("Worker", 1)]))
            .await;
    }
    let mut alone = train("alone", &[("Worker", 1)]);
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
    // First come, first served, with sixteen at work: nobody waits for longer than all before it take once.
    let millis = begun.elapsed().as_millis();
    assert!(millis <= 150 / 16 * 700, "{millis} ms");
    settle_and_check(&mut sim).await;
}

/// Jobs come and go for a day: what is kept of them goes with them. (That the caches are empty is tested where they are; here,
/// that an operator which has seen a thousand jobs calls no more than one that has seen none.)
#[tokio::test(start_paused = true)]
async fn i5_jobs_come_and_go_for_a_day() {
    let mut sim = Simulation::new(|_, _| Succeeds(20));
    for hour in 0..24 {
        for number in 0..10 {
            sim.create(train(
                &format!("job-{hour}-{number}"),
                &[("Scheduler", 1), ("Worker", 1)],
            ))
            .await;
        }
        sim.advance(1_800).await;
        sim.network.take_calls();
        for number in 0..10 {
            sim.delete(&format!("job-{hour}-{number}")).await;
        }
        sim.advance(1_800).await;
        let calls = sim.network.take_calls();
        assert!(
            calls.iter().all(|c| c.verb == "watch") && calls.len() <= 4 * 17,
            "{hour}: {}",
            calls.len()
        );
    }
    assert!(sim.pods_now().is_empty() && sim.services_now().is_empty());
    settle_and_check(&mut sim).await;
}
