//! Jobs that make no progress.

use training_job::api::ConditionType;
use training_job::output::Unread;
use training_job::plan::OutputWatch;

use crate::harness::{PlanHarness, Stories, notices};

const FIRST: &str = "2026-01-01T00:00:10Z step 1/9 loss=2.34567\n";

/// Returns a running job with this progress policy.
fn job(progress: &str) -> PlanHarness {
    let policy = format!("backoffLimit: 2, progress: {{{progress}}}");
    PlanHarness::train("Scheduler=1 Worker=2:OnFailure", &policy).started()
}

fn watched(w: &PlanHarness) -> Vec<String> {
    let output = w.plan().output;
    let pods = output.into_iter().flat_map(|OutputWatch { pods, .. }| pods);
    pods.map(|pod| pod.name).collect()
}

/// Returns the message of the condition Stalled.
fn stall(w: &PlanHarness) -> String {
    let status = w.status();
    status.condition(ConditionType::Stalled).unwrap().message.clone()
}

fn reasons(w: &PlanHarness) -> Vec<&str> {
    w.events.iter().map(|event| event.reason.as_str()).collect()
}

#[test]
fn only_a_job_with_the_policy_is_watched() {
    let without = PlanHarness::train("Scheduler=1 Worker=2:OnFailure", "").started();
    assert_eq!(without.plan().output, None);
    assert_eq!(watched(&job("stalledAfterSeconds: 60")), ["job-worker-0"]);
    let all = job("watch: All");
    assert_eq!(watched(&all), ["job-scheduler-0", "job-worker-0", "job-worker-1"]);
    let mut others = job("stalledAfterSeconds: 60");
    others.pod("worker-0").exits(0);
    others.reconcile();
    assert_eq!(watched(&others), ["job-worker-1"], "it may hang as well");
    let mut ended = job("watch: All");
    ended.pod("worker-1").exits(0);
    ended.reconcile();
    assert_eq!(watched(&ended), ["job-scheduler-0", "job-worker-0"]);
    ended.pod("scheduler-0").exits(0);
    ended.reconcile().after(60).reconcile();
    assert_eq!(ended.plan().output, None, "{}", ended.state());
}

#[test]
fn the_output_is_read_ten_times_within_the_limit() {
    for (seconds, interval) in [(15, 15), (600, 60), (1_800, 180), (86_400, 300)] {
        let w = job(&format!("stalledAfterSeconds: {seconds}"));
        assert_eq!(w.plan().output.unwrap().progress.interval().as_secs(), interval);
    }
    assert_eq!(job("").plan().output.unwrap().progress.interval().as_secs(), 300);
}

#[test]
fn a_stalled_job_has_the_condition_and_one_event_until_it_makes_progress() {
    let mut w = job("stalledAfterSeconds: 600");
    w.reads("worker-0", FIRST, 0)
        .after(540)
        .reads("worker-0", "", 540);
    assert!(!w.state().contains("Stalled"));
    let progress = w.status().progress.unwrap();
    assert_eq!((progress.summary.as_str(), progress.loss), ("1/9", Some(2.346)));
    w.after(60)
        .reads("worker-0", "", 600)
        .after(60)
        .reads("worker-0", "", 660);
    let status = w.status();
    let condition = status.condition(ConditionType::Stalled).unwrap();
    let newest = status
        .conditions
        .iter()
        .max_by_key(|c| c.last_transition_time.clone().unwrap().0);
    assert_eq!(
        (status.conditions.last(), newest.unwrap().type_.as_str()),
        (newest, "Running")
    );
    assert_eq!(status.waiting_reason, "Stalled");
    let expected = "ToyJob job is stalled: job-worker-0 has printed nothing for 10 min; its last line, of \
                    2026-01-01T00:00:10Z: step 1/9 loss=2.34567.";
    assert_eq!(condition.message, expected);
    assert!(w.state().contains("Running"), "the job goes on");
    w.reads("worker-0", "2026-01-01T00:12:00Z step 2/9 loss=3\n", 0);
    assert!(!w.state().contains("Stalled"));
    assert_eq!(reasons(&w), ["ToyJobStalled", "ToyJobAdvancing"]);
}

#[test]
fn the_stall_of_a_job_that_waits_to_run_is_not_its_newest_condition() {
    for restarts in [false, true] {
        let mut w = job("stalledAfterSeconds: 60");
        if restarts {
            w.pod("worker-1").exits(137).reconcile().finish_deletions();
        } else {
            w = PlanHarness::train("Scheduler=1 Worker=1", "progress: {stalledAfterSeconds: 60}");
        }
        w.reconcile().pod("worker-0").running().reconcile().after(60);
        w.reads("worker-0", FIRST, 60);
        let status = w.status();
        let times = status
            .conditions
            .iter()
            .map(|c| (c.last_transition_time.clone().unwrap().0, &*c.type_));
        let newest = times.max().unwrap().1;
        assert_eq!(
            newest,
            if restarts { "Restarting" } else { "Created" },
            "{}",
            w.state()
        );
        assert_eq!(status.conditions.last().unwrap().type_, newest);
        assert!(w.state().contains("Stalled"), "{}", w.state());
    }
}

#[test]
fn a_job_that_no_longer_runs_is_not_stalled() {
    let mut w = PlanHarness::train("Worker=1", "progress: {stalledAfterSeconds: 60}").started();
    w.reads("worker-0", FIRST, 60);
    assert_eq!(w.state(), "Created Stalled Running");
    w.pod("worker-0")
        .taken("Unknown", "NodeLost", "Node node-1 is unresponsive");
    assert_eq!(w.reconcile().state(), "Created");
}

#[test]
fn the_next_operator_keeps_the_stall_until_it_sees_other_output() {
    let mut w = job("stalledAfterSeconds: 600");
    w.reads("worker-0", FIRST, 600);
    assert!(w.state().contains("Stalled"));
    w.output.clear();
    w.reconcile()
        .reads("worker-0", FIRST, 0)
        .after(60)
        .reads("worker-0", "", 60);
    assert!(w.state().contains("Stalled"));
    w.output.clear();
    w.reads("worker-0", "2026-01-01T00:12:00Z step 2/9\n", 0);
    assert!(!w.state().contains("Stalled"));
    assert_eq!(reasons(&w), ["ToyJobStalled", "ToyJobAdvancing"]);
}

#[test]
fn a_step_that_the_next_operator_does_not_find_may_be_the_latest() {
    let mut w = job(r"stalledAfterSeconds: 600, watch: All, pattern: 'step (?P<step>\d+)'");
    let others = ["scheduler-0", "worker-1"];
    for replica in ["scheduler-0", "worker-0", "worker-1"] {
        w.reads(replica, FIRST, 500);
    }
    w.after(120)
        .reads("worker-0", "2026-01-01T00:00:20Z step 2/9\n", 0);
    for replica in ["scheduler-0", "worker-1", "worker-0"] {
        w.reads(replica, "", 600);
    }
    assert!(w.state().contains("Stalled"));
    w.output.clear();
    for replica in others {
        w.reads(replica, FIRST, 0);
    }
    w.reads("worker-0", "2026-01-01T00:05:00Z alive\n", 0);
    assert!(w.state().contains("Stalled"));
    assert_eq!(w.status().progress.unwrap().summary, "step 2");
    w.reads("worker-0", "2026-01-01T00:15:00Z step 3\n", 0);
    assert!(!w.state().contains("Stalled"));
}

#[test]
fn the_next_operator_shows_the_stored_progress_until_it_sees_other_output() {
    let mut w = job("stalledAfterSeconds: 600, watch: All");
    w.reads("worker-0", FIRST, 60)
        .reads("worker-1", FIRST, 60)
        .after(120)
        .reads("worker-1", "2026-01-01T00:00:20Z step 2/9\n", 0);
    assert_eq!(w.status().progress.unwrap().summary, "2/9");
    w.output.clear();
    w.reconcile();
    let others = ["scheduler-0", "worker-0"];
    for replica in others {
        w.reads(replica, FIRST, 0);
        assert_eq!(w.status().progress.unwrap().summary, "2/9", "{replica}");
    }
    w.reads("worker-1", "2026-01-01T00:00:20Z step 2/9\n", 5);
    assert_eq!(w.status().progress.unwrap().summary, "2/9");
    w.after(120)
        .reads("worker-0", "2026-01-01T00:00:30Z step 3/9\n", 0);
    assert_eq!(w.status().progress.unwrap().summary, "3/9");
}

#[test]
fn a_job_is_not_stalled_once_one_of_its_watched_replicas_advances() {
    let mut w = job("stalledAfterSeconds: 600, watch: All");
    for replica in ["scheduler-0", "worker-0", "worker-1"] {
        w.reads(replica, FIRST, 0).reads(replica, "", 700);
    }
    assert!(w.state().contains("Stalled"));
    w.reads("worker-1", "2026-01-01T00:12:00Z step 2/9\n", 0);
    assert!(!w.state().contains("Stalled"));
}

#[test]
fn a_stalled_job_restarts_within_its_limit_and_keeps_the_last_lines() {
    let mut w = job("stalledAfterSeconds: 600, onStall: Restart, watch: All");
    for restart in 1..=3 {
        for replica in ["scheduler-0", "worker-0", "worker-1"] {
            w.reads(replica, FIRST, 0);
        }
        w.reads("scheduler-0", "", 700).reads("worker-0", "", 700);
        assert!(!w.state().contains("Restarting"), "worker 1 prints");
        w.after(700).reads("worker-1", "", 650);
        let failure = w.status().failure.unwrap();
        if restart == 3 {
            assert!(w.state().contains("Failed"));
            assert_eq!(failure.reason, "BackoffLimitExceeded");
            break;
        }
        assert_eq!(w.status().restart_count, restart);
        assert_eq!(failure.summary, "worker-1: Stalled");
        let expected = "\njob-scheduler-0:\nstep 1/9 loss=2.34567\njob-worker-0:\nstep 1/9 loss=2.34567\njob-worker-1:\nstep \
                        1/9 loss=2.34567";
        assert!(failure.message.ends_with(expected), "{}", failure.message);
        w.finish_deletions().reconcile();
        w.all_running();
        assert!(w.state().contains("Running") && !w.state().contains("Stalled"));
    }
}

#[test]
fn a_stalled_job_may_fail_and_its_pods_end() {
    let mut w = PlanHarness::train(
        "Worker=1",
        "cleanPodPolicy: None, progress: {stalledAfterSeconds: 600, onStall: Fail}",
    )
    .started();
    w.reads("worker-0", FIRST, 600);
    assert_eq!(w.status().failure.unwrap().summary, "worker-0: Stalled");
    w.finish_deletions().reconcile();
    assert!(w.pods.is_empty(), "a job that hangs holds no nodes");
}

#[test]
fn the_time_before_the_first_line_has_a_limit_of_its_own() {
    let mut w = job("stalledAfterSeconds: 60, startSeconds: 600");
    w.reads("worker-0", "", 599);
    assert!(!w.state().contains("Stalled"));
    w.reads("worker-0", "", 600);
    let message = stall(&w);
    assert!(
        message.ends_with("it has printed no line since its start."),
        "{message}"
    );
    w.reads("worker-0", FIRST, 0);
    assert!(!w.state().contains("Stalled"));
    w.reads("worker-0", "", 60);
    assert!(w.state().contains("Stalled"));
}

#[test]
fn with_a_pattern_only_a_new_step_is_progress() {
    let mut w = job(r"stalledAfterSeconds: 60, pattern: 'step (?P<step>\d+)'");
    w.reads("worker-0", FIRST, 0);
    w.reads("worker-0", "2026-01-01T00:02:00Z alive\n", 60);
    let message = stall(&w);
    assert!(message.contains("has printed no new step for"), "{message}");
    assert!(
        message.ends_with("its last line, of 2026-01-01T00:02:00Z: alive."),
        "{message}"
    );
}

#[test]
fn a_job_whose_output_cannot_be_read_is_not_stalled() {
    for (unread, reason) in [
        (
            Unread::Unavailable("no route to host".to_owned()),
            "LogsUnavailable: ",
        ),
        (Unread::Denied("grant it".to_owned()), "LogsDenied: "),
    ] {
        let mut w = job("stalledAfterSeconds: 60");
        w.reads("worker-0", FIRST, 0);
        let record = w.output.get_mut("job-worker-0").unwrap();
        record.silent_for = std::time::Duration::from_secs(90);
        record.unread = Some(unread);
        w.reconcile();
        assert!(!w.state().contains("Stalled"));
        let told = notices(&w);
        assert!(told.iter().any(|notice| notice.starts_with(reason)), "{told:?}");
        w.reads("worker-0", "", 90);
        assert!(w.state().contains("Stalled"), "the silence lasted");
    }
}

#[test]
fn a_replica_that_does_not_run_is_not_silent() {
    let mut w = job("stalledAfterSeconds: 60, watch: All");
    for replica in ["scheduler-0", "worker-0", "worker-1"] {
        w.reads(replica, FIRST, 50);
    }
    w.pods.remove("job-worker-1");
    w.reads("scheduler-0", "", 70).reads("worker-0", "", 70);
    assert!(!w.state().contains("Stalled"));
}

#[test]
fn the_next_attempt_is_not_judged_by_the_output_of_the_one_before() {
    let mut w = job("stalledAfterSeconds: 60, onStall: Restart");
    w.reads("worker-0", FIRST, 60).finish_deletions().reconcile();
    w.all_running();
    w.reconcile();
    assert_eq!(w.status().restart_count, 1);
    assert_eq!(w.status().progress.unwrap().summary, "1/9", "until there is news");
}

#[test]
fn progress_that_another_operator_has_written_is_kept() {
    let mut w = job("stalledAfterSeconds: 1800");
    let log = ["step=5", "waiting"].map(|line| format!("2026-01-01T00:02:00Z {line}\n"));
    w.reads("worker-0", FIRST, 0)
        .after(400)
        .reads("worker-0", &log.concat(), 0);
    assert_eq!(w.status().progress.unwrap().step, Some(5.0));
    // It has seen the last line only.
    w.output.clear();
    w.after(400)
        .reads("worker-0", "", 0)
        .reads("worker-0", &log[1], 0);
    assert_eq!(w.status().progress.unwrap().step, Some(5.0));
}

#[test]
fn two_operators_do_not_write_the_progress_of_two_silent_replicas_in_turns() {
    let mut w = job("stalledAfterSeconds: 600, watch: All");
    let second = ["step 1/9", "step 2/9"].map(|line| format!("2026-01-01T00:00:20Z {line}\n"));
    w.reads("worker-0", FIRST, 0)
        .reads("worker-1", &second[0], 0)
        .after(70)
        .reads("worker-0", "", 70)
        .reads("worker-1", &second[1], 0);
    assert_eq!(
        w.status().progress.unwrap().summary,
        "1/9",
        "the order of the two is not known"
    );
    let third = "2026-01-01T00:00:30Z step 3/9\n";
    w.after(70).reads("worker-0", "", 140).reads("worker-1", third, 0);
    assert_eq!(w.status().progress.unwrap().summary, "3/9");
}

#[test]
fn progress_alone_is_written_rarely() {
    let mut w = job("stalledAfterSeconds: 1800");
    w.reads("worker-0", FIRST, 0);
    let record = w.output.get_mut("job-worker-0").unwrap();
    record.add("2026-01-01T00:02:00Z step 2/9\n", None);
    let change = w.plan().status.unwrap();
    assert!(!change.urgent);
    assert_eq!(change.at_most_every.map(|wait| wait.as_secs()), Some(360));
}

#[test]
fn a_policy_that_cannot_work_is_an_error() {
    let policy = |fields: &str| PlanHarness::train("Worker=1", fields).errors();
    for (fields, expected) in [
        (
            "progress: {stalledAfterSeconds: 14}",
            "spec.runPolicy.progress.stalledAfterSeconds: must be at least 15 (is 14)",
        ),
        (
            "progress: {onStall: Restart}",
            "spec.runPolicy.progress.onStall: requires stalledAfterSeconds; set stalledAfterSeconds or remove the field",
        ),
        (
            "backoffLimit: 0, progress: {stalledAfterSeconds: 60, onStall: Restart}",
            "spec.runPolicy.progress.onStall: must not be Restart if the job may not restart, because a stalled job would \
             fail; use Fail, or raise backoffLimit and failurePolicy.maxRestarts",
        ),
        (
            "progress: {pattern: 'step (\\d+)'}",
            "spec.runPolicy.progress.pattern: must have a named group; name the number of the step, as in step \
             (?P<step>\\d+)",
        ),
        ("progress: {watch: Some}", "spec.runPolicy.progress.watch: "),
    ] {
        let errors = policy(fields);
        assert!(
            errors.len() == 1 && errors[0].starts_with(expected),
            "{fields}: {errors:?}"
        );
    }
    let many = PlanHarness::train("Worker=101", "progress: {watch: All}").errors();
    assert!(many[0].contains("more than 100 replicas (has 101)"), "{many:?}");
}
