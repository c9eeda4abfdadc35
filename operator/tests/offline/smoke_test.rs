//! `training-operator smoke-test` rejects bad files before it reads the configuration of a cluster. `make test-helm` runs it
//! on a cluster.

use training_operator_testing::program::run_with_input;

#[test]
fn bad_files_are_rejected() {
    for (text, problem) in [
        ("", "must have one document (has 0)"),
        (
            "kind: PyTorchJob\n---\nkind: PyTorchJob\n",
            "must have one document (has 2)",
        ),
        (
            "apiVersion: v1\nkind: Pod\n",
            "kind: must be one of MXJob, TFJob, XGBoostJob,",
        ),
        ("a: [", "-: "),
    ] {
        let rejected = run_with_input(&["smoke-test", "-"], text.as_bytes());
        assert_eq!(rejected.code, Some(2), "{text}: {}", rejected.stderr);
        let start = format!("training-operator: -: {}", problem.trim_start_matches("-: "));
        assert!(rejected.stderr.starts_with(&start), "{text}: {}", rejected.stderr);
    }
    let missing = run_with_input(&["smoke-test", "no-such-job.yaml"], b"");
    assert_eq!(missing.code, Some(2));
    assert!(
        missing
            .stderr
            .starts_with("training-operator: no-such-job.yaml: "),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_time_needs_a_unit() {
    let rejected = run_with_input(&["smoke-test", "--timeout=5", "-"], b"");
    assert_eq!(rejected.code, Some(2));
    assert!(
        rejected
            .stderr
            .contains("must be a duration such as 15s or 1m30s"),
        "{}",
        rejected.stderr
    );
}
