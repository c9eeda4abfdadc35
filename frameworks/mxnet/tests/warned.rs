//! What is told of jobs that are valid, and surely not what their authors mean: one in `warned/` for each
//! snapshot, the job and the words.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use training_job::render::warnings;
use training_job::{Settings, validate};
use training_job_mxnet::MXJob;

#[test]
fn what_is_surely_not_meant_is_told() {
    insta::glob!("warned/*.yaml", |path| {
        let job: MXJob = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let valid = validate(&job, &Settings::default()).unwrap();
        insta::assert_snapshot!(warnings(&valid).to_string());
    });
}
