//! The warnings about valid jobs that are almost certainly mistakes: one job in `warned/` for each snapshot with the
//! job and its warnings.

use std::fs;

use training_job::render::warnings;
use training_job::{Settings, validate};
use training_job_mxnet::MXJob;

#[test]
fn each_probable_mistake_has_a_warning() {
    insta::glob!("..", "warned/*.yaml", |path| {
        let job: MXJob = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let valid = validate(&job, &Settings::default()).unwrap();
        insta::assert_snapshot!(warnings(&valid).to_string());
    });
}
