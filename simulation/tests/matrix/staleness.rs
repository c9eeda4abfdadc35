//! Delayed watches, and lists that return an older state.

use std::collections::BTreeMap;

use serde_json::json;
use training_job_simulation::faults::CallFault::{self, DiesBefore, Refused, Stale};
use training_job_simulation::faults::PodFate::{self, AtOnce, Fails, Runs, Succeeds};
use training_job_simulation::faults::{CallSite, WatchDelay};
use training_job_simulation::modes::exhaustive::run_without_faults;
use training_job_simulation::scenario::Scenario;
use training_job_simulation::scenario::users::UserAction;
use training_job_simulation::scenario::workloads::Workload;
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{
    PodFates, assert_ends, created_and_deleted, edit_job, either, is_killed_once, policy, reads, remove,
    restart, run_without_violations, settle_and_check, sim_of, succeeds, success, until, with_policy, worker,
    workload,
};

/// One worker is killed after five seconds, and the job restarts.
fn restarts(name: &str, attempt: u32) -> PodFate {
    match attempt {
        0 if name.ends_with("worker-1") => Fails(137, 5),
        0 => Runs,
        _ => Succeeds(if name.contains("scheduler") { 300 } else { 250 }),
    }
}

/// One or two watches are silent for a while, from any change of the job on, and then send everything at once. The
/// operator abandons a silent watch after two minutes.
#[tokio::test(start_paused = true)]
async fn of_one_kind_is_heard_later_than_of_others() {
    let kinds: [&[&str]; 6] = [
        &["pods"],
        &["services"],
        &["mxjobs"],
        &["pods", "services"],
        &["pods", "mxjobs"],
        &["services", "mxjobs"],
    ];
    for silent in kinds {
        for from in [1, 6, 12] {
            let mut sim = sim_of(restarts, json!({})).await;
            let changes = sim.cluster.resource_version() + from;
            until(|| sim.cluster.resource_version() >= changes).await;
            for kind in silent {
                sim.cluster.freeze_watches(Some(kind));
            }
            sim.advance(60).await;
            for kind in silent {
                sim.cluster.thaw_watches(Some(kind));
            }
            sim.advance(500).await;
            let case = format!("{silent:?} from the {from}th change on");
            assert_ends(&sim, "job", "Succeeded", &case);
            assert_eq!(sim.status("job")["restartCount"], 1, "{case}");
            for pod in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
                assert_eq!(
                    created_and_deleted(&sim, &format!("pods job-{pod}")),
                    (2, 1),
                    "{case}: {pod}"
                );
            }
            settle_and_check(&mut sim).await;
        }
    }
}

/// Each list of a new operator returns an older state, at any call of workloads in which pods are deleted. Its watch
/// delivers the rest.
#[test]
fn lists_show_the_past() {
    let lives = [
        restart(),
        workload(
            "scale-down",
            succeeds,
            json!({}),
            vec![(50, UserAction::Edit(0, worker(json!({"replicas": 0}))))],
        ),
        workload(
            "recreate",
            succeeds,
            json!({}),
            vec![(50, UserAction::Recreate(0))],
        ),
    ];
    for life in &lives {
        let expected = run_without_faults(life);
        let deadly: Vec<CallSite> = expected.sites.iter().filter(|s| !reads(s)).cloned().collect();
        for site in deadly.iter().step_by(3) {
            for versions in [2, 9] {
                let mut faults: BTreeMap<CallSite, CallFault> = BTreeMap::from([(site.clone(), DiesBefore)]);
                for calls in ["list pods", "list services", "list mxjobs"] {
                    let second = CallSite {
                        calls: calls.to_owned(),
                        number: 1,
                    };
                    faults.insert(second, Stale(versions));
                }
                let mut scenario = Scenario {
                    call_faults: Some(faults),
                    ..life.scenario.clone()
                };
                // The operator may act on state that is as old as the list.
                scenario.config.calls.faults = vec![Stale(versions)];
                run_without_violations(&scenario, &format!("{}, {site}, {versions}", life.name));
            }
        }
    }
}

/// Cuts the operator's watches and refuses new ones, and lists, for this many seconds. Then the API server drops the
/// changes in between.
async fn blind(sim: &mut Simulation, seconds: u64) {
    for verb in ["watch", "list"] {
        sim.network
            .fail_next(verb, "", usize::MAX, Refused(503, "ServiceUnavailable"));
    }
    sim.cluster.cut_watches(None);
    sim.advance(seconds).await;
    sim.cluster.compact();
    sim.network.heal();
}

/// The operator misses ten seconds of a job, from any second on.
#[tokio::test(start_paused = true)]
async fn intermediate_states_are_never_seen() {
    let lives: [(&str, PodFates); 3] = [
        ("ends", |name, _| either(name, "worker", AtOnce, Succeeds(6))),
        ("fails", |name, attempt| match attempt {
            0 if name.ends_with("worker-1") => Fails(137, 4),
            _ => Succeeds(if name.contains("scheduler") { 60 } else { 50 }),
        }),
        ("gone", |_, _| Succeeds(60)),
    ];
    for (what, script) in lives {
        for from in [0, 2, 4, 6, 8] {
            let mut sim = Simulation::new(script);
            let one = with_policy("job", &SMALL, json!({"restartScope": "Replica"}));
            sim.create(one).await;
            sim.advance(from).await;
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            if what == "gone" {
                // The deleted pod existed, or was not created yet.
                let gone = remove(&sim, "pods", "job-worker-1").await;
                assert_eq!(gone, from > 0 || gone);
            }
            blind(&mut sim, 10).await;
            sim.advance(500).await;
            let case = format!("{what}, from second {from}");
            assert_ends(&sim, "job", "Succeeded", &case);
            let restarts = sim.status("job")["restartCount"].as_i64().unwrap_or(0);
            assert_eq!(restarts, i64::from(what == "fails"), "{case}");
            let most = if what == "ends" { 1 } else { 2 };
            for pod in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
                let times = created_and_deleted(&sim, &format!("pods job-{pod}")).0;
                let most = if pod == "worker-1" { most } else { 1 };
                assert!(times <= most, "{case}: {pod} was made {times} times");
            }
            settle_and_check(&mut sim).await;
        }
    }
}

/// A job is deleted and created again under the same name while no watch delivers it.
#[tokio::test(start_paused = true)]
async fn a_job_is_another_when_it_is_seen_again() {
    let mut sim = sim_of(succeeds, json!({})).await;
    sim.advance(10).await;
    sim.delete("job").await;
    sim.create(train("job", &[("Scheduler", 1), ("Worker", 1)])).await;
    blind(&mut sim, 10).await;
    sim.advance(400).await;
    assert_ends(&sim, "job", "Succeeded", "");
    assert_eq!(sim.pods_now().len(), 2);
    settle_and_check(&mut sim).await;
}

fn calls_of(life: &Workload, lag: Option<WatchDelay>) -> (u64, String) {
    let mut scenario = life.scenario.clone();
    scenario.config.watch_delay = lag;
    let summary = run_without_violations(&scenario, &life.name);
    (summary.calls, summary.final_state)
}

/// Each event comes twice, or some watches are slower than others. Only the delay costs calls.
#[test]
fn events_come_twice_and_in_another_order() {
    for life in [
        success(),
        workload(
            "restart",
            is_killed_once,
            json!({"cleanPodPolicy": "All"}),
            Vec::new(),
        ),
    ] {
        let (calls, end) = calls_of(&life, None);
        let twice = WatchDelay {
            seed: 1,
            longest: 0,
            duplicates: 1_000,
        };
        assert_eq!(
            calls_of(&life, Some(twice)),
            (calls, end.clone()),
            "each comes twice"
        );
        for seed in 0..8 {
            let lag = WatchDelay {
                seed,
                longest: 3_000,
                duplicates: 300,
            };
            let (more, same) = calls_of(&life, Some(lag));
            assert_eq!(same, end, "{seed}");
            assert!(more <= calls + 8, "{seed}: {more} calls instead of {calls}");
        }
    }
}

/// For an hour watches send only bookmarks.
#[tokio::test(start_paused = true)]
async fn nothing_but_bookmarks_comes() {
    let mut sim = sim_of(|_, _| Runs, json!({})).await;
    sim.advance(30).await;
    edit_job(&sim, policy(json!({"ttlSecondsAfterFinished": 5}))).await;
    sim.advance(30).await;
    sim.network.take_calls();
    sim.advance(3_600).await;
    let calls = sim.network.take_calls();
    assert!(calls.iter().all(|c| c.verb == "watch"), "{calls:?}");
    assert!(calls.len() <= 4 * 31, "{}", calls.len());
    settle_and_check(&mut sim).await;
}
