//! Writes arbitrary JSON into the status of a job of any kind, at any time of its life and with any pods. The
//! operator must repair the status once, and then be at rest.
//!
//! The cases are the same every time. For other or more cases: `SPOILED_SEED=7 SPOILED_CASES=20000 cargo test -p
//! training-job-fuzz-targets --test spoiled`.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use serde_json::{Map, Value, json};
use training_job_fuzz_targets::status;

/// A xorshift generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        &values[self.below(values.len())]
    }
}

/// A kind with its API version, the field of its replicas, its container and the roles of a job.
struct Kind {
    api: &'static str,
    kind: &'static str,
    field: &'static str,
    container: &'static str,
    roles: &'static [(&'static str, i32)],
}

const KINDS: [Kind; 9] = [
    kind(
        "MXJob",
        "mxReplicaSpecs",
        "mxnet",
        &[("Scheduler", 1), ("Server", 1), ("Worker", 2)],
    ),
    kind(
        "XGBoostJob",
        "xgbReplicaSpecs",
        "xgboost",
        &[("Master", 1), ("Worker", 2)],
    ),
    kind(
        "TFJob",
        "tfReplicaSpecs",
        "tensorflow",
        &[("PS", 1), ("Worker", 2), ("Chief", 1)],
    ),
    kind(
        "PyTorchJob",
        "pytorchReplicaSpecs",
        "pytorch",
        &[("Master", 1), ("Worker", 2)],
    ),
    kind("PaddleJob", "paddleReplicaSpecs", "paddle", &[("Worker", 2)]),
    kind(
        "MPIJob",
        "mpiReplicaSpecs",
        "mpi",
        &[("Launcher", 1), ("Worker", 2)],
    ),
    kind("JAXJob", "jaxReplicaSpecs", "jax", &[("Worker", 3)]),
    Kind {
        api: "mxnet.mlkube.io/v1beta1",
        kind: "MxJob",
        field: "mxReplicaType",
        container: "mxnet",
        roles: &[("SCHEDULER", 1), ("SERVER", 1), ("WORKER", 2)],
    },
    Kind {
        api: "mlkube.io/v1beta1",
        kind: "TfJob",
        field: "tfReplicaType",
        container: "tensorflow",
        roles: &[("MASTER", 1), ("WORKER", 2)],
    },
];

const fn kind(
    kind: &'static str,
    field: &'static str,
    container: &'static str,
    roles: &'static [(&'static str, i32)],
) -> Kind {
    let api = "kubeflow.org/v1";
    Kind {
        api,
        kind,
        field,
        container,
        roles,
    }
}

impl Kind {
    fn job(&self, random: &mut Random) -> Value {
        let policy = *random.pick(&["Never", "OnFailure", "ExitCode"]);
        let template = json!({"spec": {"containers": [{"name": self.container, "image": "i"}, {"name": "logs", "image": "i"}]}});
        let run = json!({
            "cleanPodPolicy": random.pick(&["None", "Running", "All"]),
            "backoffLimit": random.pick(&[json!(null), json!(0), json!(3)]),
            "suspend": random.chance(15),
            "ttlSecondsAfterFinished": random.pick(&[json!(null), json!(null), json!(i32::MAX)]),
            "activeDeadlineSeconds": random.pick(&[json!(null), json!(600)]),
        });
        let mut job = json!({
            "apiVersion": self.api, "kind": self.kind,
            "metadata": {"name": "job", "namespace": "team", "uid": "job-uid", "creationTimestamp": "2025-12-31T23:00:00Z"},
        });
        if self.field.ends_with("Type") {
            let template = json!({"spec": {"containers": [{"name": self.container, "image": "i"}], "restartPolicy": "OnFailure"}});
            let roles = self.roles.iter();
            let roles = roles.map(|(role, n)| json!({self.field: role, "replicas": n, "template": template}));
            let specs: Vec<Value> = roles.collect();
            job["spec"] = json!({"RuntimeId": "x7f2", "replicaSpecs": specs});
            if self.kind == "MxJob" {
                job["spec"]["jobMode"] = json!("dist");
            }
        } else {
            let roles = self.roles.iter();
            let roles = roles.map(|(role, n)| {
                let spec = json!({"replicas": n, "restartPolicy": policy, "template": template});
                ((*role).to_owned(), spec)
            });
            job["spec"] = json!({self.field: Map::from_iter(roles), "runPolicy": run});
        }
        if random.chance(8) {
            // The job is no longer valid.
            job["spec"]["runPolicy"]["backoffLimit"] = json!(-1);
        }
        job
    }

    fn hosts(&self) -> Vec<String> {
        let names = self.roles.iter().flat_map(|(role, n)| {
            let role = role.to_lowercase();
            (0..*n).map(move |index| match (self.kind, role.as_str()) {
                ("MPIJob", "launcher") => "job-launcher".to_owned(),
                ("MxJob" | "TfJob", role) => format!("job-{role}-x7f2-{index}"),
                (_, role) => format!("job-{role}-{index}"),
            })
        });
        names.collect()
    }
}

/// Returns the status of a job at some time of its life, as an operator writes it.
fn status(kind: &Kind, random: &mut Random) -> Value {
    let condition = |type_: &str, status: &str, second: u32| {
        let time = format!("2025-12-31T23:00:{second:02}Z");
        json!({"type": type_, "status": status, "reason": format!("{}{type_}", kind.kind), "message": "m",
            "lastTransitionTime": time, "lastUpdateTime": time})
    };
    let created = condition("Created", "True", 0);
    let conditions = match random.below(7) {
        0 => return Value::Null,
        1 => json!([created]),
        2 => json!([created, condition("Running", "True", 5)]),
        3 => json!([created, condition("Restarting", "True", 9)]),
        4 => json!([
            created,
            condition("Running", "False", 20),
            condition("Succeeded", "True", 20)
        ]),
        5 => json!([
            created,
            condition("Running", "False", 20),
            condition("Failed", "True", 20)
        ]),
        _ => json!([created, condition("Suspended", "True", 9)]),
    };
    let role = |(role, n): &(&str, i32)| ((*role).to_owned(), json!({"active": n, "selector": "a=b"}));
    json!({
        "conditions": conditions, "startTime": "2025-12-31T23:00:01Z", "restartCount": 1,
        "replicaStatuses": Map::from_iter(kind.roles.iter().map(role)),
        "failure": {"reason": "Error", "message": "m", "exitCode": 1, "time": "2025-12-31T23:00:08Z"},
        "recovery": {"job": 1, "started": {kind.roles[0].0: 1}},
    })
}

const PATHS: [&str; 38] = [
    "conditions",
    "conditions/0",
    "conditions/0/type",
    "conditions/1/status",
    "conditions/0/lastTransitionTime",
    "conditions/1/lastUpdateTime",
    "conditions/2/lastTransitionTime",
    "conditions/0/reason",
    "replicaStatuses",
    "replicaStatuses/Worker",
    "replicaStatuses/Worker/active",
    "replicaStatuses/Master/succeeded",
    "replicaStatuses/Nobody/failed",
    "replicaStatuses/Worker/selector",
    "startTime",
    "completionTime",
    "lastReconcileTime",
    "restartCount",
    "failure",
    "failure/time",
    "failure/exitCode",
    "failure/message",
    "failureHistory",
    "failureHistory/0",
    "recovery",
    "recovery/job",
    "recovery/roles/Worker",
    "recovery/replicas/worker-0",
    "recovery/inPlace/worker-1",
    "recovery/started/Worker",
    "recovery/completed/Worker",
    "recovery/completed",
    "recovery/restarted",
    "recovery/backoff/job/until",
    "recovery/backoff/job/failures",
    "recovery/backoff/worker-0",
    "mxReplicaStatuses",
    "phase",
];

fn hostile(random: &mut Random) -> Value {
    let values = [
        json!(null),
        json!(0),
        json!(-1),
        json!(1),
        json!(5),
        json!(99),
        json!(i32::MAX),
        json!(i32::MIN),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1e308),
        json!(0.5),
        json!(true),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!("0-4294967295"),
        json!("1-,-,3-1,0"),
        json!("9999-12-31T23:59:59Z"),
        json!("0001-01-01T00:00:00Z"),
        json!("1969-12-31T23:59:59Z"),
        json!("2026-01-01T00:00:30Z"),
        json!("2026-01-02T12:00:00Z"),
        json!("-9999-01-01T00:00:00Z"),
        json!({"active": 99}),
        json!({"reason": 7}),
        json!({"failures": 9, "until": "2026-01-01T00:04:00Z"}),
        json!([null, 7, {"type": "Succeeded", "status": "True"}]),
        json!([{"type": "Failed", "status": "True"}, {"type": "Failed", "status": "False"}]),
        json!([{"type": "Suspended", "status": "True"}, {"type": "Running", "status": "Unknown"}]),
        json!(["2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]),
    ];
    match random.below(12) {
        0 => Map::from_iter((0..2_000).map(|n| (format!("k{n}"), json!(n)))).into(),
        1 => vec![json!({"type": "T", "status": "True"}); 500].into(),
        2 => json!("y".repeat(100_000)),
        _ => random.pick(&values).clone(),
    }
}

/// Writes a value at a path of a status, if the parents of the path exist.
fn spoil(status: &mut Value, random: &mut Random) {
    let (path, value) = (*random.pick(&PATHS), hostile(random));
    if !status.is_object() {
        *status = json!({});
    }
    let mut at = status;
    for part in path.split('/') {
        let index = part.parse().unwrap_or(usize::MAX);
        let is_item = at.as_array().is_some_and(|items| index < items.len());
        if !is_item && !at.is_object() {
            *at = json!({});
        }
        at = match is_item {
            true => &mut at[index],
            false => &mut at[part],
        };
    }
    *at = value;
}

fn pod(kind: &Kind, name: &str, random: &mut Random) -> Value {
    let time = |random: &mut Random| {
        let times = [
            json!(null),
            json!("2025-12-31T23:00:20Z"),
            json!("2025-12-31T23:00:25Z"),
            json!("2026-01-01T00:00:00Z"),
            json!("9999-12-31T23:59:59Z"),
        ];
        random.pick(&times).clone()
    };
    let container = |name: &str, random: &mut Random| {
        let end = json!({"exitCode": random.pick(&[0, 1, 137, 143, 255]), "finishedAt": time(random)});
        let state = match random.below(4) {
            0 => json!({"running": {}}),
            1 => json!({"waiting": {"reason": "ImagePullBackOff", "message": "m"}}),
            2 => Value::Null,
            _ => json!({"terminated": end.clone()}),
        };
        let last = if random.chance(20) {
            json!({"terminated": end})
        } else {
            Value::Null
        };
        json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": random.pick(&[0, 0, 0, 1, i32::MAX]),
            "state": state, "lastState": last})
    };
    let containers = match random.below(5) {
        0 => json!([]),
        1 => json!([container(kind.container, random)]),
        _ => json!([container("logs", random), container(kind.container, random)]),
    };
    let mut pod = json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "creationTimestamp": "2025-12-31T23:00:02Z",
            "annotations": {"training.kubeflow.org/restart-attempt": random.pick(&["0", "1", "2", "x", "999999999"])}},
        "spec": {"containers": [], "nodeName": "n"},
        "status": {"phase": random.pick(&["Pending", "Running", "Succeeded", "Failed", "Unknown"]), "containerStatuses": containers},
    });
    if random.chance(20) {
        pod["metadata"]["deletionTimestamp"] = json!("2025-12-31T23:00:52Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    }
    if random.chance(20) {
        pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": "r", "lastTransitionTime": time(random)}]);
    }
    pod
}

fn number(variable: &str, or: u64) -> u64 {
    let set = std::env::var(variable).ok();
    set.map_or(or, |text| text.parse().unwrap())
}

#[test]
fn any_status_is_repaired_once_and_then_rests() {
    let (seed, cases) = (number("SPOILED_SEED", 1), number("SPOILED_CASES", 250));
    for kind in &KINDS {
        for case in 0..cases {
            let mut random = Random(
                (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (case + 1).wrapping_mul(0xd129_42f0_91a7),
            );
            for _ in 0..9 {
                random.below(2);
            }
            let mut job = kind.job(&mut random);
            job["status"] = status(kind, &mut random);
            for _ in 0..random.below(4) {
                spoil(&mut job["status"], &mut random);
            }
            let mut values = vec![job];
            for name in kind.hosts() {
                if random.chance(60) {
                    values.push(pod(kind, &name, &mut random));
                }
            }
            let lines: Vec<String> = values.iter().map(Value::to_string).collect();
            let input = lines.join("\n");
            if std::panic::catch_unwind(|| status::check(input.as_bytes())).is_err() {
                panic!("{} case {case} of seed {seed}: {input}", kind.kind);
            }
        }
    }
}
