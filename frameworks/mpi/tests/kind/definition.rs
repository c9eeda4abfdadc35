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

/// These jobs have no services, so that a name is as long as a label value may be.
#[test]
fn a_name_may_have_63_characters() {
    for (length, error) in [
        (63, ""),
        (
            64,
            "metadata.name: must be at most 63 characters (has 64); use a shorter name",
        ),
    ] {
        let mut w = PlanHarness::<MPIJob>::with("Launcher=1:Never Worker=2:Never", "");
        w.edit(|job| job.metadata.name = Some("a".repeat(length)));
        let errors = validate(&w.job, &Settings::default()).err().unwrap_or_default();
        assert_eq!(errors.to_string(), error);
    }
}
