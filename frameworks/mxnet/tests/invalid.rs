//! What a user is told of each mistake: one job in `invalid/` for each, and the words in `snapshots/`.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use training_job::{Settings, validate};
use training_job_mxnet::MXJob;

#[test]
fn every_mistake_is_told_with_its_place_and_remedy() {
    insta::glob!("invalid/*.yaml", |path| {
        let text = fs::read_to_string(path).unwrap();
        let told = match serde_saphyr::from_str::<MXJob>(&text) {
            Err(unreadable) => unreadable.to_string(),
            Ok(job) => match validate(&job, &Settings::default()) {
                Err(errors) => errors.to_string(),
                Ok(_) => panic!("{} is valid", path.display()),
            },
        };
        insta::assert_snapshot!(told);
    });
}
