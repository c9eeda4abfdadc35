//! Watches that lag, each by its own time, and lists of an older state.

use std::collections::BTreeMap;

use serde_json::json;
use training_job_simulation::exhaustive::undisturbed;
use training_job_simulation::fault::Fault::{self, DiesBefore, Refused, Stale};
use training_job_simulation::fault::Site;
use training_job_simulation::kubelet::Fate::{self, AtOnce, Fails, Runs, Succeeds};
use training_job_simulation::run::Scenario;
use training_job_simulation::stream::Lag;
use training_job_simulation::users::Deed;
use training_job_simulation::workloads::Workload;
use training_job_simulation::world::{SMALL, World, train, with};

use crate::stage::{
    Script, edit, ends_well, is_killed_once, life, made, policy, remove, rest, restart, sound, success,
    worker,
};

/// One worker is killed after five seconds, and all is made anew.
fn restarts(name: &str, attempt: u32) -> Fate {
    match attempt {
        0 if name.ends_with("worker-1") => Fails(137, 5),
        0 => Runs,
        _ => Succeeds(if name.contains("scheduler") { 300 } else { 250 }),
    }
}

/// Of one kind of object, or of two, nothing is heard for a while, from any change of a life on, and then all at
/// once. While two minutes are not over, the watch is not given up.
#[tokio::test(start_paused = true)]
async fn c3_of_one_kind_is_heard_later_than_of_others() {
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
            let mut world = World::new(restarts);
            world.create(train("job", &SMALL)).await;
            let changes = world.cluster.resource_version() + from;
            while world.cluster.resource_version() < changes {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            for kind in silent {
                world.cluster.freeze_watches(Some(kind));
            }
            world.pass(60).await;
            for kind in silent {
                world.cluster.thaw_watches(Some(kind));
            }
            world.pass(500).await;
            let case = format!("{silent:?} from the {from}th change on");
            assert!(
                world.conditions("job").ends_with("Succeeded"),
                "{case}: {}",
                world.conditions("job")
            );
            assert_eq!(world.status("job")["restartCount"], 1, "{case}");
            for pod in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
                assert_eq!(made(&world, &format!("pods job-{pod}")), (2, 1), "{case}: {pod}");
            }
            rest(&mut world).await;
        }
    }
}

/// Each list shows what was stored some changes ago, from any point of lives in which pods are deleted; a new
/// operator believes it, and the watch behind it brings the rest.
#[test]
fn c4_lists_show_the_past() {
    let lives = [
        restart(),
        life(
            "scale-down",
            ends_well,
            json!({}),
            vec![(50, Deed::Edit(0, worker(json!({"replicas": 0}))))],
        ),
        life("recreate", ends_well, json!({}), vec![(50, Deed::Recreate(0))]),
    ];
    for life in &lives {
        let expected = undisturbed(life);
        let deadly: Vec<Site> = expected
            .sites
            .iter()
            .filter(|s| !crate::stage::reads(s))
            .cloned()
            .collect();
        for site in deadly.iter().step_by(3) {
            for versions in [2, 9] {
                let mut faults: BTreeMap<Site, Fault> = BTreeMap::from([(site.clone(), DiesBefore)]);
                for calls in ["list pods", "list services", "list mxjobs"] {
                    let second = Site {
                        calls: calls.to_owned(),
                        number: 1,
                    };
                    faults.insert(second, Stale(versions));
                }
                let mut scenario = Scenario {
                    faults: Some(faults),
                    ..life.scenario.clone()
                };
                // What it acts on may be as old as the list.
                scenario.settings.faults = vec![Stale(versions)];
                sound(&scenario, &format!("{}, {site}, {versions}", life.name));
            }
        }
    }
}

/// A blind operator: its watches end, and new ones, and lists, are refused until it may see again, when all that
/// was in between is forgotten.
async fn blind(world: &mut World, seconds: u64) {
    for verb in ["watch", "list"] {
        world
            .network
            .fault(verb, "", usize::MAX, Refused(503, "ServiceUnavailable"));
    }
    world.cluster.cut_watches(None);
    world.pass(seconds).await;
    world.cluster.compact();
    world.network.heal();
}

/// From any second of a life on, ten seconds of it are never seen.
#[tokio::test(start_paused = true)]
async fn c5_what_happened_in_between_is_never_seen() {
    let lives: [(&str, Script); 3] = [
        ("ends", |name, _| {
            if name.contains("worker") {
                AtOnce
            } else {
                Succeeds(6)
            }
        }),
        ("fails", |name, attempt| match attempt {
            0 if name.ends_with("worker-1") => Fails(137, 4),
            _ => Succeeds(if name.contains("scheduler") { 60 } else { 50 }),
        }),
        ("gone", |_, _| Succeeds(60)),
    ];
    for (what, script) in lives {
        for from in [0, 2, 4, 6, 8] {
            let mut world = World::new(script);
            let one = with(
                train("job", &SMALL),
                json!({"runPolicy": {"restartScope": "Replica"}}),
            );
            world.create(one).await;
            world.pass(from).await;
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            if what == "gone" {
                // Deleted in the dark, one that was there and one that was not yet.
                let gone = remove(&world, "pods", "job-worker-1").await;
                assert_eq!(gone, from > 0 || gone);
            }
            blind(&mut world, 10).await;
            world.pass(500).await;
            let case = format!("{what}, from second {from}");
            assert!(
                world.conditions("job").ends_with("Succeeded"),
                "{case}: {}",
                world.conditions("job")
            );
            let restarts = world.status("job")["restartCount"].as_i64().unwrap_or(0);
            assert_eq!(restarts, i64::from(what == "fails"), "{case}");
            let most = if what == "ends" { 1 } else { 2 };
            for pod in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
                let times = made(&world, &format!("pods job-{pod}")).0;
                let most = if pod == "worker-1" { most } else { 1 };
                assert!(times <= most, "{case}: {pod} was made {times} times");
            }
            rest(&mut world).await;
        }
    }
}

/// Created, deleted and created again under the same name while nobody looked.
#[tokio::test(start_paused = true)]
async fn c5_a_job_is_another_when_it_is_seen_again() {
    let mut world = World::new(ends_well);
    world.create(train("job", &SMALL)).await;
    world.pass(10).await;
    world.delete("job").await;
    world
        .create(train("job", &[("Scheduler", 1), ("Worker", 1)]))
        .await;
    blind(&mut world, 10).await;
    world.pass(400).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
    assert_eq!(world.pods_now().len(), 2);
    rest(&mut world).await;
}

fn calls_of(life: &Workload, lag: Option<Lag>) -> (u64, String) {
    let mut scenario = life.scenario.clone();
    scenario.settings.lag = lag;
    let outcome = sound(&scenario, &life.name);
    (outcome.calls, outcome.remains)
}

/// Each event comes twice, or those of some watches later than others: no call more is made than a delay costs.
#[test]
fn c6_events_come_twice_and_in_another_order() {
    for life in [
        success(),
        life(
            "restart",
            is_killed_once,
            json!({"cleanPodPolicy": "All"}),
            Vec::new(),
        ),
    ] {
        let (calls, end) = calls_of(&life, None);
        let twice = Lag {
            seed: 1,
            most: 0,
            twice: 1_000,
        };
        assert_eq!(
            calls_of(&life, Some(twice)),
            (calls, end.clone()),
            "each comes twice"
        );
        for seed in 0..8 {
            let lag = Lag {
                seed,
                most: 3_000,
                twice: 300,
            };
            let (more, same) = calls_of(&life, Some(lag));
            assert_eq!(same, end, "{seed}");
            assert!(more <= calls + 8, "{seed}: {more} calls instead of {calls}");
        }
    }
}

/// For an hour there is nothing but bookmarks.
#[tokio::test(start_paused = true)]
async fn c6_nothing_but_bookmarks_comes() {
    let mut world = World::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.pass(30).await;
    edit(
        &world,
        "mxjobs",
        "job",
        policy(json!({"ttlSecondsAfterFinished": 5})),
    )
    .await;
    world.pass(30).await;
    world.network.take();
    world.pass(3_600).await;
    let calls = world.network.take();
    assert!(calls.iter().all(|c| c.verb == "watch"), "{calls:?}");
    assert!(calls.len() <= 3 * 31, "{}", calls.len());
    rest(&mut world).await;
}
