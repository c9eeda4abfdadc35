use serde_json::{Value, json};

use super::super::message::MAX_MESSAGE;
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
    assert_eq!(message.len(), MAX_MESSAGE);
    assert!(message.chars().all(|c| c == 'é'));
    assert_eq!(cut("short".into()), "short");
    // Escapes make the message longer.
    let message = cut("\x1b".repeat(MAX_MESSAGE));
    assert_eq!((message.len(), message.ends_with(r"\u{1b}")), (MAX_MESSAGE, true));
}

/// Returns the time this many seconds after the beginning of the tests.
fn at(second: i64) -> Timestamp {
    Timestamp::from_second(10_000 + second).unwrap()
}

/// Returns a container status that is running, or ended at this second.
fn container(name: &str, ended: Option<i64>) -> Value {
    let state = match ended {
        Some(second) => json!({"terminated": {"exitCode": 0, "finishedAt": at(second)}}),
        None => json!({"running": {}}),
    };
    json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

/// Makes the record of a pod in this phase. `deletion` is its due time and grace period in seconds, and `disruption` the
/// reason of its condition and the time.
fn going(
    phase: &str,
    containers: &[Value],
    deletion: Option<(i64, i64)>,
    disruption: Option<(&str, i64)>,
) -> PodRecord {
    let conditions = disruption.map(|(reason, second)| {
        json!([{"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": at(second)}])
    });
    let meta = deletion.map_or(
        json!({}),
        |(due, grace)| json!({"deletionTimestamp": at(due), "deletionGracePeriodSeconds": grace}),
    );
    let status = json!({"phase": phase, "conditions": conditions, "containerStatuses": containers});
    let pod = json!({"metadata": meta, "status": status});
    PodRecord::from(&serde_json::from_value::<Pod>(pod).unwrap())
}

fn is_taken_away(pod: &PodRecord) -> bool {
    pod.was_taken_away(pod.container("main").and_then(|main| main.ended.as_ref()))
}

#[test]
fn without_an_observed_order_times_decide_with_the_difference_of_clocks() {
    let eviction = |second| Some(("EvictionByEvictionAPI", second));
    let kubelet = |second| Some(("TerminationByKubelet", second));
    for (ended, deletion, disruption, taken) in [
        (Some(1_002), Some((1_030, 30)), None, true),
        // The clock of the node is behind by up to five minutes.
        (Some(700), Some((1_030, 30)), None, true),
        (Some(699), Some((1_030, 30)), None, false),
        (Some(700), None, eviction(1_000), true),
        (Some(699), None, eviction(1_000), false),
        (Some(100), Some((1_030, 30)), eviction(300), true),
        // The kubelet's own condition and the end have the same clock.
        (Some(999), None, kubelet(1_000), false),
        (Some(1_000), None, kubelet(1_000), true),
        // The API server grants a pod that has ended no grace period.
        (Some(999), Some((1_000, 0)), eviction(1_000), false),
        (Some(1_200), Some((1_000, 0)), None, false),
        (Some(1_200), Some((1_300, 0)), kubelet(1_100), true),
        // A grace period that would begin before the first timestamp.
        (Some(999), Some((1_030, i64::MAX)), None, true),
    ] {
        let pod = going("Succeeded", &[container("main", ended)], deletion, disruption);
        assert_eq!(
            is_taken_away(&pod),
            taken,
            "{ended:?} {deletion:?} {disruption:?}"
        );
    }
    assert!(going("Succeeded", &[], Some((1_030, 30)), None).was_taken_away(None));
    let forced = going(
        "Running",
        &[container("main", Some(1_000))],
        Some((1_000, 0)),
        None,
    );
    assert!(
        is_taken_away(&forced),
        "a pod that runs may be deleted without a grace period"
    );
}

/// The controller observes the end and the deletion at once, and then the deletion by which the kubelet removes the pod.
#[test]
fn the_last_deletion_of_a_pod_does_not_hide_the_first() {
    let ended = |deletion| going("Succeeded", &[container("main", Some(1_002))], deletion, None);
    let first = ended(Some((1_030, 30)));
    for at_last in [1_000, 1_003] {
        let mut last = ended(Some((at_last, 0)));
        assert!(is_taken_away(&first) && !is_taken_away(&last), "{at_last}");
        last.follow(Some(&first), at(0));
        assert!(is_taken_away(&last), "{at_last}");
    }
}

#[test]
fn the_observed_order_of_end_and_deletion_precedes_all_times() {
    let running = || going("Running", &[container("main", None)], None, None);
    let deleted = Some((1_030, 30));
    let seen = |states: Vec<PodRecord>| {
        let mut before: Option<PodRecord> = None;
        for mut state in states {
            state.follow(before.as_ref(), at(0));
            before = Some(state);
        }
        is_taken_away(&before.unwrap())
    };
    for ended in [0, 999, 1_002, 5_000] {
        let end = |phase: &str, deletion| going(phase, &[container("main", Some(ended))], deletion, None);
        let leaving = going("Running", &[container("main", None)], deleted, None);
        assert!(
            seen(vec![running(), leaving.clone(), end("Succeeded", deleted)]),
            "{ended}"
        );
        let late = end("Succeeded", deleted);
        assert!(
            seen(vec![leaving, end("Running", deleted), late.clone()]),
            "{ended}"
        );
        assert!(
            !seen(vec![running(), end("Succeeded", None), late.clone()]),
            "{ended}"
        );
        assert!(
            !seen(vec![end("Succeeded", None), late]),
            "{ended}: in the first list"
        );
        // Another container runs on, and ends at the deletion.
        let both = |logs, deletion| {
            let containers = [container("main", Some(ended)), container("logs", logs)];
            going("Running", &containers, deletion, None)
        };
        let states = vec![
            running(),
            both(None, None),
            both(None, deleted),
            both(Some(1_002), deleted),
        ];
        assert!(!seen(states), "{ended}");
        // The disruption did not take place.
        let target = going(
            "Running",
            &[container("main", None)],
            None,
            Some(("EvictionByEvictionAPI", 0)),
        );
        assert!(!seen(vec![target, running(), end("Succeeded", None)]), "{ended}");
    }
}

#[test]
fn the_kubelet_restarts_a_container_by_its_rules_its_own_policy_or_that_of_the_pod() {
    let rule = |action: &str, operator: &str, values: &[i32]| json!({"action": action, "exitCodes": {"operator": operator, "values": values}});
    let on_42 = || json!([rule("Restart", "In", &[42])]);
    let not_1 = || json!([rule("Restart", "NotIn", &[1])]);
    let none = || json!(null);
    for (of_pod, own, rules, restarted) in [
        ("Never", Some("Never"), on_42(), vec![42]),
        ("OnFailure", Some("Never"), on_42(), vec![42]),
        ("Never", Some("OnFailure"), on_42(), vec![1, 42]),
        ("Never", Some("Never"), not_1(), vec![0, 42]),
        // The first rule that matches decides, and an unknown action decides nothing.
        (
            "Never",
            Some("Never"),
            json!([rule("Later", "In", &[42]), rule("Restart", "In", &[42])]),
            vec![],
        ),
        ("Never", Some("Never"), json!([{"action": "Restart"}]), vec![]),
        (
            "Never",
            Some("Never"),
            json!([rule("Restart", "Above", &[0])]),
            vec![],
        ),
        (
            "Never",
            Some("Never"),
            json!([rule("RestartAllContainers", "In", &[1])]),
            vec![1],
        ),
        // The API server accepts rules only with a policy.
        ("Never", None, on_42(), vec![]),
        ("OnFailure", None, none(), vec![1, 42]),
        ("Always", None, none(), vec![0, 1, 42]),
        ("Always", Some("Never"), none(), vec![]),
        ("Never", Some("Always"), none(), vec![0, 1, 42]),
    ] {
        let is_restarted = |code: &i32| {
            let mut status = container("main", Some(0));
            status["state"]["terminated"]["exitCode"] = json!(code);
            let pod = json!({
                "metadata": {},
                "spec": {"restartPolicy": of_pod, "containers": [
                    {"name": "main", "restartPolicy": own, "restartPolicyRules": rules}]},
                "status": {"phase": "Running", "containerStatuses": [status]},
            });
            let pod = PodRecord::from(&serde_json::from_value::<Pod>(pod).unwrap());
            pod.restarts(&pod.containers[0])
        };
        let codes: Vec<i32> = [0, 1, 42].into_iter().filter(is_restarted).collect();
        assert_eq!(codes, restarted, "{of_pod} {own:?} {rules}");
    }
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
