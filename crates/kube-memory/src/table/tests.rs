use serde_json::json;

use super::*;

fn row(cells: &[Value]) -> Vec<String> {
    let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
    cells.iter().map(text).collect()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn a_pod_shows_the_reason_that_kubectl_shows() {
    let pod = |status: Value| {
        json!({
            "metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"},
            "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}], "nodeName": "n"},
            "status": status,
        })
    };
    let running =
        |name: &str| json!({"name": name, "ready": true, "restartCount": 0, "state": {"running": {}}});
    let ended = json!({"name": "a", "restartCount": 2, "state": {"terminated": {"exitCode": 3, "reason": "Error"}},
        "lastState": {"terminated": {"finishedAt": "1970-01-01T00:01:30Z"}}});
    let waiting =
        json!({"name": "a", "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    for (status, expected) in [
        (json!({"phase": "Pending"}), ["0/2", "Pending", "0"]),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}),
            ["0/2", "Init:0/1", "0"],
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [
                {"name": "i", "state": {"terminated": {"exitCode": 7}}},
            ]}),
            ["0/2", "Init:ExitCode:7", "0"],
        ),
        (
            json!({"phase": "Running", "containerStatuses": [running("a"), running("b")]}),
            ["2/2", "Running", "0"],
        ),
        (
            json!({"phase": "Running", "containerStatuses": [waiting, running("b")]}),
            ["1/2", "CrashLoopBackOff", "1"],
        ),
        (
            json!({"phase": "Running", "containerStatuses": [ended, running("b")]}),
            ["1/2", "Error", "2 (30s ago)"],
        ),
    ] {
        let cells = row(&pods::cells(&pod(status.clone()), at(120)));
        assert_eq!(cells[..3], expected, "{status}");
        assert_eq!(cells[3..], ["2m", "<none>", "n", "<none>", "<none>"]);
    }
    let mut deleted = pod(json!({"phase": "Running"}));
    deleted["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
    assert_eq!(row(&pods::cells(&deleted, at(0)))[1], "Terminating");
}

#[test]
fn events_of_both_groups_have_the_same_row() {
    let core = json!({
        "metadata": {"name": "e"}, "firstTimestamp": "1970-01-01T00:00:00Z", "lastTimestamp": "1970-01-01T00:00:20Z",
        "count": 3, "type": "Normal", "reason": "Created", "message": "text\n",
        "involvedObject": {"kind": "Pod", "name": "p"}, "source": {"component": "c", "host": "h"},
    });
    let own = json!({
        "metadata": {"name": "e"}, "deprecatedFirstTimestamp": "1970-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "1970-01-01T00:00:20Z", "deprecatedCount": 3, "type": "Normal",
        "reason": "Created", "note": "text\n", "regarding": {"kind": "Pod", "name": "p"},
        "deprecatedSource": {"component": "c", "host": "h"},
    });
    let expected = [
        "10s", "Normal", "Created", "pod/p", "", "c, h", "text", "30s", "3", "e",
    ];
    for event in [core, own] {
        assert_eq!(row(&cells::event(&event, at(30))), expected, "{event}");
    }
}

#[test]
fn services_and_nodes_have_their_addresses() {
    let headless = json!({"metadata": {}, "spec": {"clusterIP": "None", "ports": [
        {"port": 80, "protocol": "TCP"}, {"port": 53, "nodePort": 30053, "protocol": "UDP"},
    ], "selector": {"a": "b", "c": "d"}}});
    let expected = [
        "ClusterIP",
        "None",
        "<none>",
        "80/TCP,53:30053/UDP",
        "<unknown>",
        "a=b,c=d",
    ];
    assert_eq!(row(&cells::service(&headless, at(0))), expected);
    let node = json!({
        "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}, "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "nodeInfo": {"kubeletVersion": "v1"}},
    });
    let cells = row(&cells::node(&node, at(0)));
    assert_eq!(
        cells[..5],
        [
            "Ready,SchedulingDisabled",
            "worker",
            "<unknown>",
            "v1",
            "127.0.0.1"
        ]
    );
}

#[test]
fn cells_of_custom_kinds_have_the_type_of_their_column() {
    for (type_, value, expected) in [
        ("string", json!("a"), json!("a")),
        ("string", json!({"a": 1}), json!("{\"a\":1}")),
        ("integer", json!(3), json!(3)),
        ("integer", json!("3"), Value::Null),
        ("date", json!("1970-01-01T00:00:00Z"), json!("50s")),
        ("date", json!("yesterday"), json!("<invalid>")),
        ("boolean", json!(true), json!(true)),
    ] {
        assert_eq!(cell(type_, &value, at(50)), expected, "{type_} {value}");
    }
}
