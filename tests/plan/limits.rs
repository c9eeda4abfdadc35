//! The limit that a failure counts against, by its own restart scope: every scope with every rule and every limit.

use training_job_testbed::RETRIES;

use crate::harness::{PlanHarness, Stories};

/// More restarts than any limit of these tests.
const FOREVER: i32 = 4;

const ACTIONS: [&str; 6] = [
    "none",
    "Ignore",
    "RestartReplica",
    "RestartRole",
    "RestartJob",
    "FailJob",
];

/// Limits of the run policy, and the number of restarts that each allows a job that fails every 1,000 s.
const LIMITS: [(&str, Option<i32>); 7] = [
    ("", None),
    ("backoffLimit: 0", Some(0)),
    ("backoffLimit: 2", Some(2)),
    ("failurePolicy: {maxRestarts: 2}", Some(2)),
    ("failurePolicy: {maxRestarts: 2, windowSeconds: 100000}", Some(2)),
    ("failurePolicy: {maxRestarts: 2, windowSeconds: 1}", None),
    (
        "backoffLimit: 2, failurePolicy: {maxRestarts: 1, windowSeconds: 1}",
        Some(2),
    ),
];

fn job(scope: &str, action: &str, limits: &str, retries: Option<i32>) -> PlanHarness {
    let rule = format!("rules: [{{action: {action}, onExitCodes: {{values: [75]}}}}]");
    let policy = match (action, limits.contains("failurePolicy")) {
        ("none", _) => limits.to_owned(),
        (_, true) => limits.replacen("failurePolicy: {", &format!("failurePolicy: {{{rule}, "), 1),
        (_, false) => [limits, &format!("failurePolicy: {{{rule}}}")].join(", "),
    };
    let policy = format!("restartScope: {scope}, {}", policy.trim_start_matches(", "));
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:OnFailure", &policy);
    if let Some(retries) = retries {
        let retries = (RETRIES.to_owned(), retries.to_string());
        w.edit(|job| job.metadata.annotations.get_or_insert_default().extend([retries]));
    }
    w.started()
}

/// Lets worker 1 fail until the job fails, at most [`FOREVER`] times. Returns the number of restarts, the counted ones, and
/// the message of the failure record.
fn run(w: &mut PlanHarness, code: i32) -> (i32, i32, String) {
    let mut restarts = 0;
    while restarts < FOREVER {
        w.after(1000).pod("worker-1").exits(code);
        w.reconcile().restart_operator();
        if w.state().contains("Failed") {
            break;
        }
        restarts += 1;
        w.finish_deletions().reconcile().after(1000).reconcile();
        w.all_running();
    }
    let message = w.status().failure.map(|failure| failure.message);
    (restarts, w.status().restart_count, message.unwrap_or_default())
}

#[test]
fn a_failure_counts_against_the_limit_of_its_own_scope() {
    for usual in ["Replica", "Role", "Job"] {
        for action in ACTIONS {
            for (limits, allowed) in LIMITS {
                for retries in [None, Some(0), Some(3)] {
                    let case = format!("{usual}, {action}, {limits}, retries {retries:?}");
                    let scope = action.strip_prefix("Restart").unwrap_or(usual);
                    let is_own = retries.is_some() && scope != "Job";
                    let allowed = match action {
                        "FailJob" => Some(0),
                        "Ignore" => None,
                        _ if is_own => retries,
                        _ => allowed,
                    };
                    let expected = allowed.unwrap_or(FOREVER);
                    let counted = match action {
                        "Ignore" => 0,
                        _ if is_own => 0,
                        _ => expected,
                    };
                    let (restarts, count, message) = run(&mut job(usual, action, limits, retries), 75);
                    assert_eq!((restarts, count), (expected, counted), "{case}");
                    let names_role = message.contains("restarts of Worker is used up");
                    let by_limit = allowed.is_some() && action != "FailJob";
                    assert_eq!(names_role, is_own && by_limit, "{case}: {message}");
                }
            }
        }
    }
}

#[test]
fn failures_by_a_rule_and_without_one_have_a_limit_each() {
    let mut w = job("Replica", "RestartJob", "backoffLimit: 1", Some(1));
    let fail = |w: &mut PlanHarness, code| {
        w.after(1000).pod("worker-1").exits(code);
        w.reconcile().finish_deletions().reconcile();
        w.after(1000).reconcile().all_running();
        format!("{} {}", w.state(), w.status().restart_count)
    };
    assert_eq!(fail(&mut w, 1), "Created Running 0", "the retry of the role");
    assert_eq!(fail(&mut w, 75), "Created Running 1", "the restart of the job");
    let mut other = w.clone();
    assert_eq!(fail(&mut w, 1), "Created Failed 1");
    assert_eq!(fail(&mut other, 75), "Created Failed 1");
}

#[test]
fn an_ignored_failure_hides_no_other_that_counts() {
    // Worker 0 fails long before the failure that is ignored and restarts the whole job, so it is no consequence of it.
    for retries in [None, Some(9)] {
        let mut w = job("Job", "Ignore", "backoffLimit: 1", retries);
        for failed in [false, true] {
            w.pod("worker-0").exits(1);
            w.after(1000).pod("worker-1").exits(75).reconcile();
            assert_eq!(w.status().restart_count, 1);
            assert_eq!(w.state().contains("Failed"), failed);
            w.finish_deletions().reconcile().after(1000).reconcile();
            w.all_running();
        }
    }
}

#[test]
fn restarts_by_the_kubelet_stay_counted_when_their_pod_is_replaced() {
    let mut w = job("Replica", "none", "", Some(2));
    w.pod("worker-1").restarts_in_place(1).reconcile();
    w.pod("worker-1").exits(1).reconcile().all_running();
    assert_eq!(w.state(), "Created Running");
    w.pod("worker-1").restarts_in_place(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert_eq!(w.status().restart_count, 0);
}
