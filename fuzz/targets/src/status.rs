//! Fuzzes the planner: the input is a stored job and its pods.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;
use training_job::api::JobStatus;
use training_job::controller::fuzzing::{self, Object};
use training_job::plan::observed::{Observed, PodRecord};
use training_job::plan::{ChildKind, Plan};
use training_job::{Settings, TrainingJob, validate};
use training_job_jax::JAXJob;
use training_job_mlkube::{MxJob, TfJob};
use training_job_mpi::MPIJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_tensorflow::TFJob;
use training_job_xgboost::XGBoostJob;

/// More reconciles than any job needs to settle.
const MOST_RECONCILES: usize = 24;

/// Jobs with more replicas are not planned, since each pod may name all others.
const MOST_REPLICAS: u32 = 24;

/// The fields of a status that the operator writes.
const OPERATOR_FIELDS: [&str; 8] = [
    "conditions",
    "replicaStatuses",
    "startTime",
    "completionTime",
    "lastReconcileTime",
    "restartCount",
    "failure",
    "recovery",
];

/// Reads JSON values: a stored job, then pods. Reconciles the job until it settles.
///
/// # Panics
/// * Something in the operator does.
/// * A status changes when it is written and read again.
/// * The same job has two plans.
/// * What is stored after a write does not read as what was planned, or has lost fields that the operator
///   does not know.
/// * The restart count falls, a finished job runs again, or the job does not settle.
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
    let Ok(typed) = Object::<J>::read(&job) else {
        return;
    };
    // An array can be decoded, too, but no server has one: the schema asks for objects.
    if !job.is_object() || job["status"].is_array() || is_large::<J>(&job) {
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
    let is_readable =
        job["status"].is_null() || serde_json::from_value::<JobStatus>(job["status"].clone()).is_ok();
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    for _ in 0..MOST_RECONCILES {
        let object = Object::<J>::read(&job).unwrap();
        let plan = object.plan(&observed, now);
        assert_eq!(format!("{plan:?}"), format!("{:?}", object.plan(&observed, now)));
        if plan.delete_job {
            return;
        }
        let made: Vec<_> = object
            .pods(&plan)
            .into_iter()
            .filter_map(|pod| pod.metadata.name)
            .collect();
        let planned: Vec<_> = plan.create_pods.iter().map(|pod| pod.name.clone()).collect();
        assert_eq!(made, planned, "each pod that is planned is a replica's");
        apply(&plan, &mut observed);
        // The status is reported after the plan is applied.
        let plan = object.plan(&observed, now);
        if is_readable {
            store(&mut job, &object, &plan);
        } else if let Some(change) = &plan.status {
            fuzzing::change(&object.status(), &change.status).unwrap();
            return;
        }
        if !plan.changes_children() && plan.status.is_none() {
            return;
        }
    }
    panic!("not settled after {MOST_RECONCILES} reconciles: {job}");
}

fn is_large<J: TrainingJob>(job: &Value) -> bool {
    let Ok(typed) = serde_json::from_value::<J>(job.clone()) else {
        return false;
    };
    validate(&typed, &Settings::default()).is_ok_and(|valid| valid.topology.total() > MOST_REPLICAS)
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

fn store<J: TrainingJob>(job: &mut Value, object: &Object<J>, plan: &Plan) {
    let Some(change) = &plan.status else { return };
    let (old, next) = (object.status(), &change.status);
    assert_ne!(&old, next, "a status is written only if it differs");
    assert!(next.restart_count >= old.restart_count, "{old:?} {next:?}");
    if old.is_finished() && old.start_time.is_some() {
        assert_eq!(old.conditions, next.conditions, "a finished job stays finished");
    }
    let patch = fuzzing::change(&old, next).expect("a status is JSON");
    let before = job["status"].take();
    let mut after = before.clone();
    json_patch::merge(&mut after, &patch);
    let read: JobStatus = serde_json::from_value(after.clone()).expect("what is stored can be read");
    assert_eq!(&read, next, "{before}\n{patch}");
    for (key, value) in before.as_object().into_iter().flatten() {
        if !OPERATOR_FIELDS.contains(&key.as_str()) {
            assert_eq!(&after[key], value, "{key} is not the operator's");
        }
    }
    job["status"] = after;
}
