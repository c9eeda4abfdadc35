//! Checks that the definition and `validate` report the same errors.

use std::fs;
use std::path::Path;

use training_job_mxnet::MXJob;
use training_job_testing::check_definition;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_definition_accepts_jobs_with_warnings() {
    assert_eq!(check_definition::<MXJob>(HERE, "tests/warned"), [""; 0]);
}

/// Except for files that are not YAML, because they contain no jobs.
#[test]
fn the_definition_rejects_jobs_with_the_messages_of_validate() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("invalid");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for file in fs::read_dir(Path::new(HERE).join("tests/invalid")).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        if !name.starts_with("yaml-") {
            fs::copy(file.path(), folder.join(name)).unwrap();
        }
    }
    let compact = |field: &str| {
        format!(
            "./compact-with-own-names.yaml: spec.mxReplicaSpecs.Worker.template.spec.{field}: must not be set with layout \
             Compact, because the operator sets it; remove it, or use layout Plain"
        )
    };
    let uncovered = [
        // Only some versions have these fields.
        &*compact("hostname"),
        &*compact("subdomain"),
        &*compact("setHostnameAsFQDN"),
        "./config-too-long.yaml: spec.mxReplicaSpecs: environment variable MX_CONFIG of job-scheduler-0 must be at most \
         131072 bytes, the limit of Linux (would have 149966 with 4001 replicas); use fewer replicas or a shorter job name",
        // The API server drops a null before rules are evaluated.
        "./role-null.yaml: spec.mxReplicaSpecs.Worker: must not be null; set replicas and a template, or remove the role",
    ];
    assert_eq!(check_definition::<MXJob>(&folder, "."), uncovered);
}
