use serde_json::{Value, json};

use super::*;

/// Makes the record of a pod with this status.
fn pod(status: &Value) -> PodRecord {
    let pod = json!({"metadata": {}, "status": status});
    PodRecord::from(&serde_json::from_value::<Pod>(pod).unwrap())
}

#[test]
fn a_pod_is_unscheduled_if_its_condition_is_false() {
    let waits = |type_: &str, status: &str| {
        let condition = json!({"type": type_, "status": status, "reason": "Why", "message": "m"});
        pod(&json!({"conditions": [condition]})).unscheduled
    };
    assert_eq!(waits("PodScheduled", "False"), Some(("Why".into(), "m".into())));
    assert_eq!(waits("PodScheduled", "True"), None);
    assert_eq!(waits("Ready", "False"), None);
}

#[test]
fn fields_of_the_kubelet_are_kept_and_empty_ones_are_dropped() {
    let phases = [
        ("Pending", Phase::Pending),
        ("Running", Phase::Running),
        ("Succeeded", Phase::Succeeded),
        ("Failed", Phase::Failed),
        ("Unknown", Phase::Unknown),
        ("Dreaming", Phase::Pending),
    ];
    for (text, phase) in phases {
        assert_eq!(pod(&json!({"phase": text})).phase, phase, "{text}");
    }
    let end = |signal: i32, text: &str| {
        let end = json!({"exitCode": 3, "signal": signal, "reason": text, "message": text});
        let container = json!({"name": "c", "image": "", "imageID": "", "ready": false,
            "restartCount": 0, "state": {"terminated": end}});
        let pod = pod(&json!({"containerStatuses": [container]}));
        pod.containers[0].ended.clone().unwrap()
    };
    let termination = Termination {
        exit_code: 3,
        signal: Some(9),
        reason: Some("why".to_owned()),
        message: Some("why".to_owned()),
        ..Termination::default()
    };
    assert_eq!(end(9, "why"), termination);
    let silent = Termination {
        exit_code: 3,
        ..Termination::default()
    };
    assert_eq!(end(0, ""), silent);
}

#[test]
fn long_messages_are_cut_at_a_character_boundary() {
    let message = cut("é".repeat(MAX_MESSAGE));
    assert_eq!(
        (message.len(), message.chars().all(|c| c == 'é')),
        (MAX_MESSAGE, true)
    );
    assert_eq!(cut("short".into()), "short");
    // Escapes make the message longer.
    let message = cut("\x1b".repeat(MAX_MESSAGE));
    assert_eq!((message.len(), message.ends_with(r"\u{1b}")), (MAX_MESSAGE, true));
}

#[test]
fn an_end_after_the_requested_deletion_counts_as_disrupted() {
    let at = |second: i64| Timestamp::from_second(second).unwrap();
    let pod = |second: i64, grace: Option<i64>, disruption: Option<i64>| {
        let conditions = disruption.map(|second| {
            json!([{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": at(second)}])
        });
        let meta = json!({"deletionTimestamp": at(second), "deletionGracePeriodSeconds": grace});
        let pod = json!({"metadata": meta, "status": {"phase": "Succeeded", "conditions": conditions}});
        PodRecord::from(&serde_json::from_value::<Pod>(pod).unwrap())
    };
    let deleted = pod(130, Some(30), None);
    let times = deleted.deletion.unwrap();
    assert_eq!((times.requested, times.due), (at(100), at(130)));
    for (pod, end, taken) in [
        (&deleted, Some(at(99)), false),
        (&deleted, Some(at(100)), true),
        (&deleted, None, true),
        (&pod(130, None, None), Some(at(129)), false),
        (&pod(130, Some(30), Some(90)), Some(at(95)), true),
        (&pod(130, Some(30), Some(97)), Some(at(95)), false),
        // A grace period that would begin before the first timestamp.
        (&pod(130, Some(i64::MAX), None), Some(at(99)), false),
    ] {
        assert_eq!(pod.was_taken_away(end), taken, "{pod:?} {end:?}");
    }
    let seen = PodRecord {
        ended_first: true,
        ..deleted
    };
    assert!(!seen.was_taken_away(Some(at(100))));
}

#[test]
fn init_containers_that_run_on_are_sidecars() {
    let status =
        |name: &str| json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 2});
    let pod = json!({
        "metadata": {},
        "spec": {"containers": [], "nodeName": "n1", "initContainers": [
            {"name": "fetch"}, {"name": "proxy", "restartPolicy": "Always"}]},
        "status": {"initContainerStatuses": [status("fetch"), status("proxy")], "containerStatuses": [status("c")]},
    });
    let record = PodRecord::from(&serde_json::from_value::<Pod>(pod).unwrap());
    let kinds: Vec<_> = record.containers.iter().map(|c| c.kind).collect();
    assert_eq!(
        kinds,
        [
            ContainerKind::Init,
            ContainerKind::Sidecar,
            ContainerKind::Regular
        ]
    );
    assert_eq!(record.node.as_deref(), Some("n1"));
}
