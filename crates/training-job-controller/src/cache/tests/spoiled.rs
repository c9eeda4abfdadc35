//! A status with invalid values from another writer, in the cache. `fuzz/targets/tests/spoiled.rs` tests that it is replaced
//! once by the observed state, and that the job continues.

use serde_json::json;

use super::super::super::tests::toy::{stored, with_workers};
use super::super::super::validate::Validated;
use training_job::job::Settings;
use training_job::plan::observed::Observed;

#[test]
fn readable_fields_are_kept_and_unreadable_ones_are_named() {
    let mut object = with_workers(1);
    object["status"] = json!({
        "conditions": [{"type": "Created", "status": "True", "reason": "r", "lastUpdateTime": 5}],
        "restartCount": "three",
        "recovery": {"job": 2, "roles": {"Worker": -1}, "started": {"Worker": 2}},
        "others": {"a": 1},
    });
    let job = stored(&object);
    assert_eq!(job.unsound(), ["conditions", "restartCount", "recovery"]);
    let read = job.status();
    assert_eq!((read.conditions[0].reason.as_str(), read.recovery.job), ("r", 2));
    let patch = job.status_change(&read, &read, None).unwrap();
    let expected = json!({
        "conditions": [{"type": "Created", "status": "True", "reason": "r"}],
        "replicaStatuses": {},
        "restartCount": null,
        "recovery": {"roles": null},
    });
    assert_eq!(patch, expected);
}

#[test]
fn an_undecodable_job_gets_its_condition_once_with_any_status() {
    for status in [
        json!({"restartCount": "three", "conditions": 7}),
        json!([]),
        json!("done"),
        json!(5),
    ] {
        let mut object = with_workers(1);
        object["spec"] = json!({"specs": 1});
        object["status"] = status.clone();
        let mut plan = || {
            let job = stored(&object);
            let validated = Validated::of(&job, &Settings::default());
            let now = "2026-01-01T00:01:00Z".parse().unwrap();
            let plan = validated.plan(&job, &job.status(), &Observed::default(), now);
            if let Some(change) = &plan.status {
                let patch = job.status_change(&job.status(), &change.status, None).unwrap();
                json_patch::merge(&mut object["status"], &patch);
            }
            plan
        };
        let first = plan();
        let reasons: Vec<_> = first.events.iter().map(|event| &*event.reason).collect();
        assert_eq!(
            reasons,
            ["ToyJobFailedValidation", "ToyJobStatusRepaired"],
            "{status}"
        );
        assert!(first.status.unwrap().status.is_finished(), "{status}");
        assert!(plan().is_idle(), "{status}");
        assert!(stored(&object).unsound().is_empty(), "{status}");
    }
}
