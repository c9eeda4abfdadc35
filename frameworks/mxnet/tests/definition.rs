//! The committed definition is the one that is made.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use training_job::admission;
use training_job_mxnet::MXJob;

#[test]
fn it_is_that_of_crds() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/kubeflow.org_mxjobs.yaml");
    let made = admission::manifest(&admission::definition::<MXJob>().unwrap()).unwrap();
    assert!(
        fs::read_to_string(file).unwrap() == made,
        "crds/ is stale; run: make crds"
    );
}
