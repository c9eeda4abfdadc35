//! Lives of a farm: a worker is killed, the head is killed, the head fails.

use farm_operator::job::FarmJob;
use training_job_testing::Story;

const PRIMES: &str = include_str!("../jobs/primes.yaml");

// region: story
#[test]
fn a_killed_worker_is_restarted_alone() {
    let mut story = Story::<FarmJob>::new(PRIMES);
    story.all_run();
    assert_eq!(story.conditions(), ["Created", "Running"]);
    story.exits("primes-worker-1", 137);
    assert_eq!(story.restarted(), ["primes-worker-1"]);
    story.all_run().exits("primes-head-0", 0);
    assert_eq!(story.conditions(), ["Created", "Succeeded"]);
    assert_eq!(story.pods(), ["primes-head-0"], "the others are stopped");
}
// endregion: story

#[test]
fn a_killed_head_takes_all_with_it() {
    let mut story = Story::<FarmJob>::new(PRIMES);
    story.all_run().exits("primes-head-0", 137);
    assert_eq!(story.restarted(), story.pods());
    story.all_run();
    assert_eq!(story.conditions(), ["Created", "Running"]);
    assert_eq!(story.status().restart_count, 1);
}

#[test]
fn a_head_that_fails_fails_the_job_and_lost_workers_do_not() {
    let mut story = Story::<FarmJob>::new(PRIMES);
    story
        .all_run()
        .exits("primes-worker-0", 1)
        .exits("primes-worker-2", 1);
    assert_eq!(story.conditions(), ["Created", "Running"]);
    story.exits("primes-head-0", 3);
    assert_eq!(story.conditions(), ["Created", "Failed"]);
}
