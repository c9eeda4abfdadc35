//! Several operators, and several times.

use serde_json::json;
use training_job_simulation::fault::Fault::Slow;
use training_job_simulation::invariants::Patience;
use training_job_simulation::kubelet::Fate::{Runs, Succeeds};
use training_job_simulation::stream::Lag;
use training_job_simulation::users::Deed;
use training_job_simulation::world::{SMALL, Setup, World, train, with};

use crate::stage::{ends_well, is_killed_once, life, made, rest, sites, sound, told};

/// Both work on all jobs, each a step behind the other at one of its calls, and with watches that lag.
#[test]
fn k1_two_operators_work_at_once() {
    let lives = [
        life("success", ends_well, json!({"cleanPodPolicy": "All"}), Vec::new()),
        life(
            "restart",
            is_killed_once,
            json!({"cleanPodPolicy": "All"}),
            Vec::new(),
        ),
        life("recreate", ends_well, json!({}), vec![(50, Deed::Recreate(0))]),
    ];
    for mut life in lives {
        let sites: Vec<_> = sites(&life).into_iter().filter(crate::stage::writes).collect();
        life.scenario.settings.two_leaders = true;
        for site in sites.iter().step_by(2) {
            for slow in [Slow(20, 0), Slow(0, 1_500)] {
                life.scenario.faults = Some([(site.clone(), slow)].into());
                sound(&life.scenario, &format!("{} {site}", life.name));
            }
        }
        for seed in 0..6 {
            life.scenario.settings.lag = Some(Lag {
                seed,
                most: 2_000,
                twice: 0,
            });
            sound(&life.scenario, &format!("{} {seed}", life.name));
        }
    }
}

fn patient(script: fn(&str, u32) -> training_job_simulation::kubelet::Fate) -> World {
    World::with(Setup {
        patience: Patience {
            others: 600_000,
            own: 600_000,
        },
        ..Setup::of(script)
    })
}

/// The operator's clock is an hour off, or jumps by an hour while the job runs, which costs what a limit is late or early
/// and nothing else.
#[tokio::test(start_paused = true)]
async fn k3_clocks_are_apart_and_jump() {
    for (before, after) in [
        (3_600, 3_600),
        (-3_600, -3_600),
        (0, 3_600),
        (0, -3_600),
        (3_600, -3_600),
    ] {
        let mut world = patient(ends_well);
        world.set_clock(before);
        world.start();
        let keep = json!({"runPolicy": {"ttlSecondsAfterFinished": 10_000, "activeDeadlineSeconds": 9_000}});
        world.create(with(train("job", &SMALL), keep)).await;
        world.pass(50).await;
        world.set_clock(after);
        world.pass(170).await;
        let case = format!("{before} s, then {after} s");
        assert_eq!(
            world.conditions("job"),
            "Created Running=False Succeeded",
            "{case}"
        );
        assert_eq!(made(&world, "pods job-worker-0"), (1, 0), "{case}");
        let ended = world.status("job")["completionTime"].clone();
        // Seen an hour and more before it is written to have ended.
        world.set_clock(-7_200);
        world.kill().await;
        world.start();
        world.pass(600).await;
        assert_eq!(world.status("job")["completionTime"], ended, "{case}");
        world.set_clock(after);
        world.kill().await;
        world.start();
        rest(&mut world).await;
    }
}

/// Limits follow the clock that wrote the times they count from, and are told once, also across the greatest jumps.
#[tokio::test(start_paused = true)]
async fn k3_limits_are_kept_by_clocks_that_jump() {
    for jump in [0, 60, -60, 86_400 * 365 * 50, -86_400 * 365 * 50] {
        let mut world = patient(|name, _| {
            if name.starts_with("hangs") {
                Runs
            } else {
                Succeeds(20)
            }
        });
        world.start();
        let deadline = json!({"runPolicy": {"activeDeadlineSeconds": 300}});
        world.create(with(train("hangs", &SMALL), deadline)).await;
        let ttl = json!({"runPolicy": {"ttlSecondsAfterFinished": 300}});
        world.create(with(train("ends", &SMALL), ttl)).await;
        world.pass(50).await;
        world.set_clock(jump);
        // It looks at the clock an hour later at the latest.
        world.pass(3_700).await;
        let over = jump > -3_000;
        assert_eq!(
            world.conditions("hangs").ends_with("Failed"),
            over,
            "{jump}: {}",
            world.conditions("hangs")
        );
        assert_eq!(world.stored("mxjobs", "ends").is_null(), over, "{jump}");
        if !over {
            world.set_clock(0);
            world.pass(3_700).await;
        }
        rest(&mut world).await;
        assert_eq!(
            (told(&world, "MXJobFailed"), told(&world, "SuccessfulDeleteJob")),
            (1, 1),
            "{jump}"
        );
    }
}

/// The new one starts before the old one goes, in each state of a job.
#[tokio::test(start_paused = true)]
async fn k4_an_operator_is_replaced_while_it_works() {
    for at in [0, 1, 5, 99, 101, 150, 201] {
        let mut world = patient(|name, attempt| match attempt {
            0 if name.ends_with("worker-1") => training_job_simulation::kubelet::Fate::Fails(137, 99),
            _ => ends_well(name, attempt),
        });
        let old = world.start();
        world.create(train("job", &SMALL)).await;
        world.pass(at).await;
        world.start();
        world.pass(3).await;
        assert!(world.kill_one(old).await);
        world.pass(400).await;
        assert!(
            world.conditions("job").ends_with("Succeeded"),
            "{at}: {}",
            world.conditions("job")
        );
        assert_eq!(world.status("job")["restartCount"], 1, "{at}");
        for pod in ["scheduler-0", "worker-0", "worker-1"] {
            assert_eq!(made(&world, &format!("pods job-{pod}")).0, 2, "{at}: {pod}");
        }
        assert_eq!(world.monitor.found(), [], "{at}");
        rest(&mut world).await;
    }
}
