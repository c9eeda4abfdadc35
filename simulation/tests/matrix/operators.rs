//! Several operators, and clocks that differ.

use serde_json::json;
use training_job_simulation::faults::CallFault::Slow;
use training_job_simulation::faults::PodFate::{self, Runs, Succeeds};
use training_job_simulation::faults::WatchDelay;
use training_job_simulation::scenario::users::UserAction;
use training_job_simulation::simulation::{SMALL, train};

use crate::harness::{
    PodFates, assert_ends, assert_made, created_and_deleted, either, event_count, is_killed_once,
    run_without_violations, settle_and_check, sites, stale, succeeds, with_policy, workload,
};

/// Both operators reconcile all jobs, with one slow call of one of them, or with delayed watches.
#[test]
fn two_operators_work_at_once() {
    let lives = [
        workload("success", succeeds, json!({"cleanPodPolicy": "All"}), Vec::new()),
        workload(
            "restart",
            is_killed_once,
            json!({"cleanPodPolicy": "All"}),
            Vec::new(),
        ),
        workload(
            "recreate",
            succeeds,
            json!({}),
            vec![(50, UserAction::Recreate(0))],
        ),
    ];
    for mut life in lives {
        let sites: Vec<_> = sites(&life).into_iter().filter(crate::harness::writes).collect();
        life.scenario.config.two_operators = true;
        for site in sites.iter().step_by(2) {
            for slow in [Slow(20, 0), Slow(0, 1_500)] {
                life.scenario.call_faults = Some([(site.clone(), slow)].into());
                run_without_violations(&life.scenario, &format!("{} {site}", life.name));
            }
        }
        for seed in 0..6 {
            life.scenario.config.watch_delay = Some(WatchDelay {
                seed,
                longest: 2_000,
                duplicates: 0,
            });
            run_without_violations(&life.scenario, &format!("{} {seed}", life.name));
        }
    }
}

/// The operator's clock is off by an hour, or jumps by an hour while the job runs. Only limits are affected, which
/// apply that much too late or too early.
#[tokio::test(start_paused = true)]
async fn clocks_are_apart_and_jump() {
    for (before, after) in [
        (3_600, 3_600),
        (-3_600, -3_600),
        (0, 3_600),
        (0, -3_600),
        (3_600, -3_600),
    ] {
        let mut sim = stale(succeeds, 600_000, 600_000);
        sim.set_clock(before);
        sim.start();
        sim.create(with_policy(
            "job",
            &SMALL,
            json!({"ttlSecondsAfterFinished": 10_000, "activeDeadlineSeconds": 9_000}),
        ))
        .await;
        sim.advance(50).await;
        sim.set_clock(after);
        sim.advance(170).await;
        let case = format!("{before} s, then {after} s");
        assert_eq!(sim.conditions("job"), "Created Running=False Succeeded", "{case}");
        assert_eq!(created_and_deleted(&sim, "pods job-worker-0"), (1, 0), "{case}");
        let ended = sim.status("job")["completionTime"].clone();
        // The clock is more than an hour before the completion time that was written.
        sim.set_clock(-7_200);
        sim.kill().await;
        sim.start();
        sim.advance(600).await;
        assert_eq!(sim.status("job")["completionTime"], ended, "{case}");
        sim.set_clock(after);
        sim.kill().await;
        sim.start();
        settle_and_check(&mut sim).await;
    }
}

/// Limits follow the clock that wrote their start times. They are reported once, even after large jumps.
#[tokio::test(start_paused = true)]
async fn limits_are_kept_by_clocks_that_jump() {
    for jump in [0, 60, -60, 86_400 * 365 * 50, -86_400 * 365 * 50] {
        let mut sim = stale(
            |name, _| either(name, "hangs", Runs, Succeeds(20)),
            600_000,
            600_000,
        );
        sim.start();
        sim.create(with_policy(
            "hangs",
            &SMALL,
            json!({"activeDeadlineSeconds": 300}),
        ))
        .await;
        sim.create(with_policy(
            "ends",
            &SMALL,
            json!({"ttlSecondsAfterFinished": 300}),
        ))
        .await;
        sim.advance(50).await;
        sim.set_clock(jump);
        // The operator checks the time at least once an hour.
        sim.advance(3_700).await;
        let over = jump > -3_000;
        assert_eq!(
            sim.conditions("hangs").ends_with("Failed"),
            over,
            "{jump}: {}",
            sim.conditions("hangs")
        );
        assert_eq!(sim.stored("mxjobs", "ends").is_null(), over, "{jump}");
        if !over {
            sim.set_clock(0);
            sim.advance(3_700).await;
        }
        settle_and_check(&mut sim).await;
        assert_eq!(event_count(&sim, "MXJobFailed"), 1, "{jump}");
        assert_eq!(event_count(&sim, "SuccessfulDeleteJob"), 1, "{jump}");
    }
}

/// The new operator starts before the old one is killed, in each state of a job.
#[tokio::test(start_paused = true)]
async fn an_operator_is_replaced_while_it_works() {
    for at in [0, 1, 5, 99, 101, 150, 201] {
        let fates: PodFates = |name, attempt| match attempt {
            0 if name.ends_with("worker-1") => PodFate::Fails(137, 99),
            _ => succeeds(name, attempt),
        };
        let mut sim = stale(fates, 600_000, 600_000);
        let old = sim.start();
        sim.create(train("job", &SMALL)).await;
        sim.advance(at).await;
        sim.start();
        sim.advance(3).await;
        assert!(sim.kill_one(old).await);
        sim.advance(400).await;
        assert_ends(&sim, "job", "Succeeded", at);
        assert_eq!(sim.status("job")["restartCount"], 1, "{at}");
        for pod in ["scheduler-0", "worker-0", "worker-1"] {
            assert_made(&sim, &format!("pods job-{pod}"), 2, format_args!("{at}: {pod}"));
        }
        assert_eq!(sim.monitor.violations(), [], "{at}");
        settle_and_check(&mut sim).await;
    }
}
