//! The error messages of `training_job::testing` for incorrect snapshots.

use training_job_testing::snapshots;
use training_job_xgboost::XGBoostJob;

/// Returns the error of a run with a folder that contains this job and these snapshots.
fn complaint(name: &str, job: &str, committed: &[(&str, &str)]) -> Option<String> {
    let base = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&base);
    for folder in ["jobs", "snapshots"] {
        std::fs::create_dir_all(base.join(folder)).unwrap();
    }
    std::fs::write(base.join("jobs/job.yaml"), job).unwrap();
    for (file, text) in committed {
        std::fs::write(base.join("snapshots").join(file), text).unwrap();
    }
    let run = std::panic::catch_unwind(|| snapshots::<XGBoostJob>(&base, "jobs", "snapshots"));
    run.err().map(|panic| *panic.downcast::<String>().unwrap())
}

const JOB: &str =
    "apiVersion: kubeflow.org/v1\nkind: XGBoostJob\nmetadata: {name: bad}\nspec: {xgbReplicaSpecs: {}}\n";

const REFUSAL: &str = "---\nsource: any\n---\n# Objects of jobs/job.yaml.\n#\n# apiVersion: kubeflow.org/v1\n\
    # kind: XGBoostJob\n# metadata:\n#   name: bad\n# spec:\n#   xgbReplicaSpecs: {}\n---\n# Refused:\n";

#[test]
fn a_folder_without_jobs_is_an_error() {
    let error = complaint("no-job", "kind: Other\napiVersion: kubeflow.org/v1\n", &[]).unwrap();
    assert_eq!(error, "no job of kind XGBoostJob is in jobs");
}

#[test]
fn missing_and_stale_snapshots_are_named() {
    for (name, committed) in [
        ("missing", &[][..]),
        ("stale", &[("job.snap", "---\nsource: any\n---\nold\n")]),
    ] {
        let error = complaint(name, JOB, committed).unwrap();
        assert!(
            error.starts_with("missing or stale in snapshots: job; review"),
            "{error}"
        );
    }
}

#[test]
fn a_refusal_is_a_snapshot_too_and_others_belong_to_no_job() {
    let refusal =
        format!("{REFUSAL}# spec.xgbReplicaSpecs: must have at least one role; add one of Master, Worker\n");
    assert_eq!(complaint("refused", JOB, &[("job.snap", &refusal)]), None);
    let error = complaint(
        "left",
        JOB,
        &[("job.snap", &refusal), ("old.snap", "---\nsource: any\n---\n")],
    );
    assert_eq!(error.unwrap(), "snapshots/old.snap belongs to no job; delete it");
}
