//! Checks that the definitions and `validate` report the same errors.
use training_job_mlkube::{MxJob, TfJob};
use training_job_testing::check_definition;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The lists are the errors that only `validate` reports.
#[test]
fn they_reject_bad_jobs_with_the_same_messages() {
    // The API server cannot derive the type of an entry that names none.
    let later = [
        "tests/bad/mx-dist-of-workers.yaml: spec.replicaSpecs: must have a SCHEDULER, because jobMode is dist; add one, or set jobMode to local",
        "tests/bad/mx-dist-of-workers.yaml: spec.replicaSpecs: must have a SERVER, because jobMode is dist; add one, or set jobMode to local",
        "tests/bad/mx-types.yaml: spec.replicaSpecs[3]: duplicate role WORKER (case is ignored); keep one of them",
    ];
    assert_eq!(check_definition::<MxJob>(HERE, "tests/bad"), later);
    let later = [
        "tests/bad/tf-two-masters-and-no-logs.yaml: spec.replicaSpecs[0].replicas: must be at most 1 (is 2)",
    ];
    assert_eq!(check_definition::<TfJob>(HERE, "tests/bad"), later);
}
