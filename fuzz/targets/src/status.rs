//! Fuzzes the planner: the input is a stored job and its pods.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;
use training_job::api::{ConditionType, JobStatus};
use training_job::plan::observed::{Observed, Phase, PodRecord};
use training_job::plan::{ChildKind, Plan};
use training_job::validate::validate_any;
use training_job::{Kind, Settings, TrainingJob};
use training_job_controller::fuzzing::Object;
use training_job_jax::JAXJob;
use training_job_mlkube::{MxJob, TfJob};
use training_job_mpi::MPIJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_tensorflow::TFJob;
use training_job_xgboost::XGBoostJob;

/// The maximum number of reconciles that a job needs to settle.
const MAX_RECONCILES: usize = 24;

/// The maximum number of writes of a status until the job has settled.
const MAX_WRITES: usize = 5;

/// The maximum number of replicas to plan. Larger jobs are skipped, because each pod may name all others.
const MAX_REPLICAS: u32 = 24;

/// The fields of a status that the operator writes.
const OPERATOR_FIELDS: [&str; 12] = [
    "conditions",
    "replicaStatuses",
    "startTime",
    "completionTime",
    "lastReconcileTime",
    "restartCount",
    "failure",
    "failureHistory",
    "ready",
    "recovery",
    "waitingReason",
    "waitingSince",
];

/// Returns the additional fields in the statuses of a kind.
fn own_fields(kind: &str) -> &'static [&'static str] {
    match kind {
        "MXJob" => &["mxReplicaStatuses"],
        "MxJob" | "TfJob" => &["phase", "state", "reason", "controlPaused"],
        _ => &[],
    }
}

/// Reads JSON values: a stored job, then pods. Reconciles the job until it settles.
///
/// # Panics
/// * The operator panics.
/// * A status changes when it is written and read again.
/// * The same job has two different plans.
/// * The stored status after a write differs from the planned status, has lost fields that the operator
///   does not know, or is invalid.
/// * The restart count falls, a finished job runs again, the status is repaired twice, or the job does not settle.
/// * A finished job counts replicas as active although no pod runs.
/// * The job does not end when its pods end, with this status at its start and again while it runs.
pub fn check(bytes: &[u8]) {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let Some(Ok(job)) = values.next() else { return };
    let pods = values.map_while(Result::ok).take(24);
    let pods: Vec<Pod> = pods.filter_map(|pod| serde_json::from_value(pod).ok()).collect();
    check_round_trip(&job["status"]);
    match job["kind"].as_str() {
        Some("TFJob") => reconcile::<TFJob>(job, &pods),
        Some("XGBoostJob") => reconcile::<XGBoostJob>(job, &pods),
        Some("PyTorchJob") => reconcile::<PyTorchJob>(job, &pods),
        Some("JAXJob") => reconcile::<JAXJob>(job, &pods),
        Some("PaddleJob") => reconcile::<PaddleJob>(job, &pods),
        Some("MPIJob") => reconcile::<MPIJob>(job, &pods),
        Some("MxJob") => reconcile::<MxJob>(job, &pods),
        Some("TfJob") => reconcile::<TfJob>(job, &pods),
        _ => reconcile::<MXJob>(job, &pods),
    }
}

fn check_round_trip(status: &Value) {
    let Ok(read) = serde_json::from_value::<JobStatus>(status.clone()) else {
        return;
    };
    let written = serde_json::to_value(&read).expect("a status is JSON");
    let again: JobStatus = serde_json::from_value(written.clone()).expect("what was written can be read");
    assert_eq!(again, read);
    assert_eq!(serde_json::to_value(&again).unwrap(), written);
}

fn reconcile<J: TrainingJob>(mut job: Value, pods: &[Pod]) {
    let kind = &Arc::new(Kind::of::<J>());
    let Ok(typed) = Object::read(kind, &job) else {
        return;
    };
    // An array can be decoded, too, but the schema requires objects, so no server stores one.
    if !job.is_object() || job["status"].is_array() || is_large(kind, &job) {
        return;
    }
    let mut observed = Observed::default();
    for pod in pods {
        let record = PodRecord::from(pod);
        observed.pods.insert(record.name.clone(), Arc::new(record));
    }
    for now in [Timestamp::MIN, Timestamp::MAX] {
        typed.plan(&observed, now);
    }
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    check_end(kind, job.clone(), now);
    if let Some(status) = settle(kind, &mut job, &mut observed, now) {
        check_counts(&status, &observed);
    }
}

/// Reconciles the job until nothing is left to do. Returns its status, unless it was deleted.
fn settle(kind: &Arc<Kind>, job: &mut Value, observed: &mut Observed, now: Timestamp) -> Option<JobStatus> {
    let (mut writes, mut repairs) = (0, 0);
    for _ in 0..MAX_RECONCILES {
        let object = Object::read(kind, job).unwrap();
        let plan = object.plan(observed, now);
        assert_eq!(format!("{plan:?}"), format!("{:?}", object.plan(observed, now)));
        if plan.delete_job {
            return None;
        }
        let made: Vec<_> = object
            .pods(&plan)
            .into_iter()
            .filter_map(|pod| pod.metadata.name)
            .collect();
        let planned: Vec<_> = plan.create_pods.iter().map(|pod| pod.name.clone()).collect();
        assert_eq!(made, planned, "each pod that is planned is a replica's");
        apply(&plan, observed);
        // The status is reported after the plan is applied.
        let plan = object.plan(observed, now);
        store(kind, job, &object, &plan);
        let events = plan.events.iter().filter(|_| plan.status.is_some());
        writes += usize::from(plan.status.is_some());
        repairs += events
            .filter(|event| event.reason.ends_with("StatusRepaired"))
            .count();
        assert!(
            writes <= MAX_WRITES && repairs <= 1,
            "{writes} writes, {repairs} repairs: {job}"
        );
        if !plan.changes_children() && plan.status.is_none() {
            assert!(object.is_sound(), "invalid values are left: {job}");
            return Some(object.status());
        }
    }
    panic!("not settled after {MAX_RECONCILES} reconciles: {job}");
}

/// Asserts that the job ends when its pods end, although it has this status before it has pods, and again while they run.
fn check_end(kind: &Arc<Kind>, mut job: Value, now: Timestamp) {
    let spoiled = job["status"].clone();
    let (mut observed, mut seconds) = (Observed::default(), 0);
    let mut phases = vec![Phase::Pending, Phase::Running, Phase::Running, Phase::Running];
    phases.extend([Phase::Succeeded; 4]);
    for (number, phase) in phases.into_iter().enumerate() {
        for pod in observed.pods.values_mut() {
            Arc::make_mut(pod).phase = phase;
        }
        if number == 3 {
            job["status"] = spoiled.clone();
        }
        seconds += 10;
        let now = now + SignedDuration::from_secs(seconds);
        let Some(status) = settle(kind, &mut job, &mut observed, now) else {
            return;
        };
        let may_end = !observed.pods.is_empty() && !status.is(ConditionType::Suspended);
        if number > 3 && (status.is_finished() || !may_end) {
            return;
        }
    }
    panic!("the job does not end: {spoiled} became {}", job["status"]);
}

/// Asserts that a finished job has active replicas only if a pod runs.
fn check_counts(status: &JobStatus, observed: &Observed) {
    let runs = |pod: &Arc<PodRecord>| pod.phase == Phase::Running && !pod.deleting;
    let active = status.replica_statuses.values().any(|role| role.active > 0);
    let may_be = !status.is_finished() || observed.pods.values().any(runs);
    assert!(
        !active || may_be,
        "a finished job without pods is active: {status:?}"
    );
}

fn is_large(kind: &Kind, job: &Value) -> bool {
    let Ok(job) = kind.decode(job) else {
        return false;
    };
    validate_any(kind, &*job, &Settings::default()).is_ok_and(|valid| valid.topology.total() > MAX_REPLICAS)
}

/// Creates and deletes the children of a plan, as the API server does.
fn apply(plan: &Plan, observed: &mut Observed) {
    for pod in &plan.create_pods {
        let name = &pod.name;
        assert!(
            !observed.pods.contains_key(name),
            "{name} is created where one is"
        );
    }
    for deletion in &plan.delete {
        let is_there = match deletion.kind {
            ChildKind::Pod => observed.pods.contains_key(&deletion.name),
            ChildKind::Service => observed.services.contains_key(&deletion.name),
            ChildKind::Object(kind) => observed.objects[&kind].contains_key(&deletion.name),
        };
        assert!(is_there, "{deletion:?} was not there");
    }
    observed.carry_out(plan);
}

fn store(kind: &Arc<Kind>, job: &mut Value, object: &Object, plan: &Plan) {
    let Some(change) = &plan.status else { return };
    let (old, next) = (object.status(), &change.status);
    assert!(
        &old != next || !object.is_sound(),
        "a status is written only if it differs: {old:?}"
    );
    assert!(next.restart_count >= old.restart_count, "{old:?} {next:?}");
    if old.is_finished() && old.start_time.is_some() {
        assert_eq!(old.conditions, next.conditions, "a finished job stays finished");
    }
    let patch = object.status_change(next).expect("a status is JSON");
    let before = job["status"].take();
    let mut after = before.clone();
    json_patch::merge(&mut after, &patch);
    job["status"] = after;
    let read = Object::read(kind, job).expect("it could be read before");
    assert_eq!(&read.status(), next, "{before}\n{patch}");
    assert!(read.is_sound(), "one write repairs it: {before}\n{patch}");
    let own = own_fields(kind.name());
    for (key, value) in before.as_object().into_iter().flatten() {
        if !OPERATOR_FIELDS.contains(&key.as_str()) && !own.contains(&key.as_str()) {
            assert_eq!(&job["status"][key], value, "{key} is not the operator's");
        }
    }
}
