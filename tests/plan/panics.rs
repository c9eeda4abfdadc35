//! Jobs of a kind with a hook that panics.

use jiff::Timestamp;
use training_job::api::JobStatus;
use training_job::plan::panicked;

use crate::harness::{PlanHarness, Stories};

fn types(status: &JobStatus) -> Vec<&str> {
    status.conditions.iter().map(|c| &*c.type_).collect()
}

#[test]
fn the_panic_is_a_condition_of_its_own_and_an_event() {
    let mut w = PlanHarness::train("Worker=1", "");
    w.reconcile().all_running();
    let now: Timestamp = "2030-01-01T00:00:00.5Z".parse().unwrap();
    let before = w.reconcile().status();
    assert_eq!(types(&before), ["Created", "Running"]);

    let plan = panicked("ToyJob", "job", &before, Some("env"), "no environment", now);
    let change = plan.status.unwrap();
    // Clients take the last condition for the state of the job.
    assert_eq!(types(&change.status), ["HookPanicked", "Created", "Running"]);
    assert!(change.urgent);
    let condition = &change.status.conditions[0];
    let message = "ToyJob job does not change, because the hook env of ToyJob panicked: no environment; report it to the \
                   authors of the kind";
    assert_eq!(condition.message, message);
    assert_eq!(
        condition
            .last_transition_time
            .as_ref()
            .unwrap()
            .0
            .subsec_nanosecond(),
        0
    );
    let events: Vec<_> = plan
        .events
        .iter()
        .map(|e| (e.warning, &*e.reason, &*e.message))
        .collect();
    assert_eq!(events, [(true, "ToyJobHookPanicked", message)]);

    let again = panicked(
        "ToyJob",
        "job",
        &change.status,
        Some("env"),
        "no environment",
        now,
    );
    assert_eq!((again.status, again.events), (None, plan.events));

    let other = panicked("ToyJob", "job", &change.status, None, "lost", now)
        .status
        .unwrap();
    assert_eq!(types(&other.status), ["HookPanicked", "Created", "Running"]);
    assert_eq!(
        other.status.conditions[0].message,
        "ToyJob job does not change, because the operator of ToyJob panicked: lost; report it to the authors of the kind"
    );
}
