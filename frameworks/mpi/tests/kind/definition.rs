//! Checks that the definition and `validate` report the same errors.

use training_job::{Settings, validate};
use training_job_mpi::MPIJob;
use training_job_testbed::PlanHarness;
use training_job_testing::check_definition;

#[test]
fn it_takes_the_jobs_that_validate_takes() {
    assert_eq!(
        check_definition::<MPIJob>(env!("CARGO_MANIFEST_DIR"), "../../examples/mpi"),
        [""; 0]
    );
}

/// These jobs have no services, so that a name is that of an object, as long as a label value may be.
#[test]
fn a_name_is_that_of_an_object_of_at_most_63_characters() {
    let parts = "use at most 63 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part, \
                 such as my-job";
    for (name, error) in [
        ("a".repeat(63).as_str(), String::new()),
        (
            &"a".repeat(64),
            "metadata.name: must be at most 63 characters (has 64); use a shorter name".to_owned(),
        ),
        ("a.b", String::new()),
        ("4-nodes", String::new()),
        (
            "My_Job",
            format!("metadata.name: must be a valid name of an object (is \"My_Job\"); {parts}"),
        ),
        (
            "a..b",
            format!("metadata.name: must be a valid name of an object (is \"a..b\"); {parts}"),
        ),
    ] {
        let mut w = PlanHarness::<MPIJob>::with("Launcher=1:Never Worker=2:Never", "");
        w.edit(|job| job.metadata.name = Some(name.to_owned()));
        let errors = validate(&w.job, &Settings::default()).err().unwrap_or_default();
        assert_eq!(errors.to_string(), error);
    }
}
