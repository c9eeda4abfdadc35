//! A status with invalid values from another writer is replaced once by the observed state, and the job continues.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::CustomResourceExt;
use kube_schema::Schema;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::super::tests::toy::{ToyJob, stored};
use super::super::super::validate::Validated;
use super::super::stored_job::StoredJob;
use training_job::api::{JobStatus, STATUS_FIELDS};
use training_job::job::Settings;
use training_job::plan::Plan;
use training_job::plan::observed::{Observed, Phase};

/// A job on a server that prunes unknown fields.
struct World {
    schema: Schema,
    job: Value,
    observed: Observed,
    now: Timestamp,
    /// Writes of the status, and events about a repair.
    writes: usize,
    repairs: usize,
}

impl World {
    fn new(status: Value) -> Self {
        let definition = ToyJob::crd();
        let schema = definition.spec.versions[0].schema.clone().unwrap();
        let mut world = Self {
            schema: Schema::new(&serde_json::to_value(schema.open_api_v3_schema).unwrap()),
            job: json!({
                "apiVersion": "example.com/v1", "kind": "ToyJob",
                "metadata": {"name": "job", "namespace": "ns", "uid": "a", "resourceVersion": "1",
                    "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"specs": {"Worker": {"replicas": 2, "template": {"spec": {
                    "containers": [{"name": "toy", "image": "i"}]}}}}},
            }),
            observed: Observed::default(),
            now: "2026-01-01T00:01:00Z".parse().unwrap(),
            writes: 0,
            repairs: 0,
        };
        world.store(status);
        world
    }

    /// Stores a status as the server does.
    fn store(&mut self, status: Value) {
        self.job["status"] = Value::Null;
        self.schema.prune(&mut self.job);
        self.job["status"] = status;
    }

    fn plan(&self, job: &StoredJob) -> Plan {
        let validated = Validated::of(job, &Settings::default());
        validated.plan(job, &job.status(), &self.observed, self.now)
    }

    /// Reconciles until the plan is empty, and returns the status.
    fn settle(&mut self) -> JobStatus {
        for _ in 0..12 {
            self.now = self.now.checked_add(SignedDuration::from_secs(10)).unwrap();
            let job = stored(&self.job);
            let plan = self.plan(&job);
            self.observed.carry_out(&plan);
            let plan = if plan.changes_children() {
                self.plan(&job)
            } else {
                plan
            };
            let Some(change) = &plan.status else {
                if plan.changes_children() {
                    continue;
                }
                assert!(
                    job.unsound().is_empty(),
                    "it is left as it is: {}",
                    self.job["status"]
                );
                return job.status();
            };
            let validated = Validated::of(&job, &Settings::default());
            let topology = validated.topology();
            let patch = job
                .status_change(&job.status(), &change.status, topology)
                .unwrap();
            let mut after = self.job["status"].take();
            json_patch::merge(&mut after, &patch);
            self.store(after);
            self.writes += 1;
            self.repairs += plan
                .events
                .iter()
                .filter(|e| e.reason.ends_with("StatusRepaired"))
                .count();
            let next = stored(&self.job);
            assert_eq!(next.status(), change.status, "{patch}");
            assert!(next.unsound().is_empty(), "{patch}");
        }
        panic!("it does not come to rest: {}", self.job["status"]);
    }

    fn end_pods(&mut self, phase: Phase) {
        for pod in self.observed.pods.values_mut() {
            Arc::make_mut(pod).phase = phase;
        }
    }
}

/// JSON values of all types, to be stored in place of valid ones.
fn junk() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(|n| json!(n)),
        prop_oneof![Just(0), Just(-1), Just(1), Just(i32::MAX), Just(i32::MIN)].prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "0-4000000000",
            "0,0,1-3,4294967295",
            "9999-12-31T23:59:59Z",
            "9998-01-01T00:00:00Z",
            "0001-01-01T00:00:00Z",
            "-009999-01-01T00:00:00Z",
            "2026-01-01T00:00:30.5+02:00",
            "2026-02-30T00:00:00Z",
            "True",
            "False",
            "Unknown",
            "Created",
            "Running",
            "Restarting",
            "Suspended",
            "Queued",
        ])
        .prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "Worker",
        "Master",
        "worker-0",
        "worker-1",
        "worker-99999999999",
        "type",
        "status",
        "reason",
        "message",
        "lastTransitionTime",
        "active",
        "succeeded",
        "failed",
        "selector",
        "job",
        "roles",
        "replicas",
        "inPlace",
        "started",
        "restarted",
        "completed",
        "index",
        "exitCode",
        "time",
        "",
    ]);
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn status() -> impl Strategy<Value = Value> {
    let field = prop::sample::select([&STATUS_FIELDS[..], &["unknown"]].concat());
    let fields = prop::collection::btree_map(field.prop_map(str::to_owned), junk(), 0..9);
    prop_oneof![
        9 => fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        1 => junk(),
    ]
}

/// Checks that a job with this status reaches a stable state, and ends when its pods end.
fn lives(status: Value) {
    let rests = |world: &mut World| {
        world.settle();
        assert!(
            world.writes <= 3 && world.repairs <= 1,
            "{} writes, {} repairs: {status}",
            world.writes,
            world.repairs
        );
    };
    let mut world = World::new(status.clone());
    rests(&mut world);
    world.end_pods(Phase::Running);
    world.settle();
    // Once more, while it runs.
    world.store(status.clone());
    (world.writes, world.repairs) = (0, 0);
    rests(&mut world);
    for _ in 0..3 {
        world.end_pods(Phase::Succeeded);
        if world.settle().is_finished() {
            return;
        }
    }
    panic!("it does not end: {status} became {}", world.job["status"]);
}

proptest! {
    #[test]
    fn any_status_is_repaired_once_and_the_job_ends(status in status()) {
        lives(status);
    }
}

#[test]
fn known_invalid_statuses_are_repaired_once_and_the_job_ends() {
    for status in [
        json!({"startTime": "9999-12-31T23:59:59Z"}),
        json!({"startTime": "9998-01-01T00:00:00Z", "completionTime": "9998-01-01T00:00:00Z"}),
        json!({"restartCount": i64::MAX}),
        json!({"restartCount": i32::MAX}),
        json!({"restartCount": "three"}),
        json!({"recovery": {"completed": {"Worker": "7-4000000000"}}}),
        json!({"recovery": {"job": i32::MAX, "roles": {"Worker": i32::MAX}, "replicas": {"worker-0": i32::MAX}}}),
        json!({"recovery": [3, {"Worker": 1}]}),
        json!({"replicaStatuses": {"Master": 5, "Worker": {"active": "many", "failed": -3}}}),
        json!({"replicaStatuses": {"Worker": [1]}}),
        json!({"conditions": [5, {"type": "Created", "status": "True"}, {"type": "Created", "status": "False"}]}),
        json!({"conditions": {"type": "Created"}}),
        json!([]),
        json!("done"),
        json!(5),
    ] {
        lives(status);
    }
}

#[test]
fn readable_fields_are_kept_and_unreadable_ones_are_named() {
    let status = json!({
        "conditions": [{"type": "Created", "status": "True", "reason": "r", "lastUpdateTime": 5}],
        "restartCount": "three",
        "recovery": {"job": 2, "roles": {"Worker": -1}, "started": {"Worker": 2}},
        "others": {"a": 1},
    });
    let world = World::new(status);
    let job = stored(&world.job);
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
    let mut world = World::new(json!({"restartCount": "three", "conditions": 7}));
    world.job["spec"] = json!({"specs": 1});
    let status = world.settle();
    assert_eq!((world.writes, world.repairs), (1, 1));
    assert!(status.is_finished());
}
