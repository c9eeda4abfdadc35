//! Tests of a kind whose steps run one after the other, and that answers failures itself.

use training_job::api::{MAX_RESTARTS_IN_WINDOW, RestartScope};
use training_job_testbed::step_job::{AGAIN, LOST_CONTROLLER};
use training_job_testbed::{PlanHarness, StepJob};

const JOB: &str = include_str!("steps/jobs/good.yaml");

/// Returns the job with the controller, the nodes and the first step running.
fn started() -> PlanHarness<StepJob> {
    let mut w = PlanHarness::from_yaml(JOB);
    w.reconcile().all_running();
    w.reconcile().all_running();
    w.reconcile();
    w
}

/// Lets the steps before the last one succeed.
fn at_the_last_step() -> PlanHarness<StepJob> {
    let mut w = started();
    w.pod("prepare-0").succeeds();
    w.reconcile().all_running();
    for name in ["train-0", "train-1"] {
        w.pod(name).succeeds();
    }
    w.reconcile().all_running();
    w.reconcile();
    w
}

fn created(w: &mut PlanHarness<StepJob>) -> Vec<String> {
    let mut names = std::mem::take(&mut w.created);
    names.sort();
    names
}

#[test]
fn each_step_starts_when_the_one_before_it_has_succeeded() {
    let mut w = PlanHarness::<StepJob>::from_yaml(JOB);
    w.reconcile();
    assert_eq!(created(&mut w), ["job-controller-0"]);
    w.all_running();
    w.reconcile();
    assert_eq!(created(&mut w), ["job-cpu-0", "job-cpu-1", "job-prepare-0"]);
    w.all_running();
    w.reconcile();
    assert!(created(&mut w).is_empty());
    w.pod("prepare-0").succeeds();
    w.reconcile();
    assert_eq!(created(&mut w), ["job-train-0", "job-train-1"]);
    w.all_running();
    w.pod("train-0").succeeds();
    w.reconcile();
    assert!(created(&mut w).is_empty(), "one of two has succeeded");
    w.pod("train-1").succeeds();
    w.reconcile();
    assert_eq!(created(&mut w), ["job-report-0"]);
    w.all_running();
    w.pod("report-0").succeeds();
    w.reconcile();
    assert_eq!(w.state().last().unwrap(), "Succeeded");
}

#[test]
fn a_step_that_is_done_stays_done_when_the_job_restarts() {
    for (gone, remade) in [(&[][..], 1), (&["prepare-0", "train-0"], 1)] {
        let mut w = at_the_last_step().with_scope(RestartScope::Job);
        // The pods of steps that are done may go.
        for name in gone {
            w.pod(name).vanishes();
        }
        w.created.clear();
        w.pod("report-0").exits(1);
        w.reconcile().finish_deletions().reconcile().all_running();
        w.reconcile().all_running();
        w.reconcile();
        let all = ["job-controller-0", "job-cpu-0", "job-cpu-1", "job-report-0"];
        assert_eq!(created(&mut w), all, "{gone:?}");
        assert_eq!((w.status().restart_count, w.counts("train").1), (remade, 2));
        w.restart_operator();
        w.pod("report-0").succeeds();
        w.reconcile();
        assert_eq!(w.state().last().unwrap(), "Succeeded");
    }
}

#[test]
fn a_step_that_is_done_stays_done_over_a_suspension() {
    let mut w = at_the_last_step();
    w.suspend(true).reconcile().finish_deletions().reconcile();
    assert!(w.pods.is_empty());
    w.created.clear();
    w.suspend(false).reconcile().all_running();
    w.reconcile().all_running();
    w.reconcile();
    assert_eq!(
        created(&mut w),
        ["job-controller-0", "job-cpu-0", "job-cpu-1", "job-report-0"]
    );
}

/// A step of several replicas of which some have succeeded is not done.
#[test]
fn a_step_that_was_interrupted_runs_again() {
    let mut w = started();
    w.pod("prepare-0").succeeds();
    w.reconcile().all_running();
    w.pod("train-0").succeeds();
    w.reconcile();
    w.suspend(true).reconcile().finish_deletions().reconcile();
    w.created.clear();
    w.suspend(false).reconcile().all_running();
    w.reconcile();
    assert_eq!(
        created(&mut w),
        [
            "job-controller-0",
            "job-cpu-0",
            "job-cpu-1",
            "job-train-0",
            "job-train-1"
        ]
    );
}

#[test]
fn the_kind_names_the_roles_that_restart() {
    let mut w = at_the_last_step();
    w.created.clear();
    w.pod("report-0").exits(LOST_CONTROLLER);
    w.reconcile();
    assert!(w.created.is_empty(), "the pods of all these roles are gone first");
    w.finish_deletions().reconcile().all_running();
    w.reconcile();
    assert_eq!(
        created(&mut w),
        ["job-controller-0", "job-cpu-0", "job-cpu-1", "job-report-0"]
    );
    assert_eq!(w.status().restart_count, 1);
    assert_eq!(w.status().recovery.job, 0);
}

#[test]
fn an_uncounted_restart_has_its_pause_and_its_own_limit_in_an_hour() {
    let mut w = started();
    for round in 0..2 {
        w.created.clear();
        let failed_at = w.now;
        w.pod("prepare-0").exits(AGAIN);
        // The harness waits for the end of a pause.
        w.reconcile().finish_deletions().reconcile();
        assert_eq!(w.now.duration_since(failed_at).as_secs(), 30);
        assert_eq!(created(&mut w), ["job-prepare-0"], "{round}");
        w.all_running();
        w.reconcile();
    }
    assert_eq!(
        (w.status().restart_count, w.status().recovery.uncounted.len()),
        (0, 2)
    );
    let mut later = w.clone();
    later.after(3600);
    later.pod("prepare-0").exits(AGAIN);
    later.reconcile();
    assert_eq!(later.state(), ["Created", "Restarting"]);
    assert_eq!(later.status().recovery.uncounted.len(), 1);
    w.pod("prepare-0").exits(AGAIN);
    w.reconcile();
    let failure = w.status().failure.unwrap();
    assert_eq!(failure.summary, "prepare-0: exit 75 (BackoffLimitExceeded)");
    assert_eq!(
        failure.message,
        "the limit of 2 uncounted restarts in an hour is used up; the last failure: Error"
    );
}

/// A status that was edited is bounded too.
#[test]
fn the_record_of_uncounted_restarts_stays_short() {
    let mut w = started();
    w.pod("prepare-0").exits(AGAIN);
    w.reconcile();
    let stored = w.status().recovery.uncounted[0].clone();
    w.edit(|job| {
        let status = job.status.as_mut().unwrap();
        status.recovery.uncounted = vec![stored; 500];
    });
    w.finish_deletions().after(3000).reconcile().all_running();
    w.after(700).reconcile();
    w.pod("prepare-0").exits(AGAIN);
    w.reconcile();
    let most = usize::try_from(MAX_RESTARTS_IN_WINDOW).unwrap();
    assert!(w.status().recovery.uncounted.len() <= most);
}

#[test]
fn a_users_rule_goes_before_the_answer_of_the_kind() {
    let rule = "runPolicy: {failurePolicy: {rules: [{action: FailJob, onExitCodes: {values: [75]}}]}}\n  controller:";
    let mut w = PlanHarness::<StepJob>::from_yaml(&JOB.replacen("controller:", rule, 1));
    w.reconcile().all_running();
    w.reconcile().all_running();
    w.reconcile();
    w.pod("prepare-0").exits(AGAIN);
    w.reconcile();
    assert_eq!(w.state().last().unwrap(), "Failed");
}

/// A gang has the pods that run at the same time.
#[test]
fn a_gang_counts_the_steps_that_are_due() {
    let mut w = PlanHarness::<StepJob>::from_yaml(JOB).with_gangs("volcano");
    let members = |w: &mut PlanHarness<StepJob>| w.group().unwrap()["spec"]["minMember"].clone();
    w.reconcile().phase("Inqueue");
    assert_eq!(members(&mut w), 1);
    w.reconcile().all_running();
    w.reconcile().all_running();
    w.reconcile();
    assert_eq!(members(&mut w), 4);
    w.pod("prepare-0").succeeds();
    w.reconcile();
    assert_eq!(members(&mut w), 5);
}
