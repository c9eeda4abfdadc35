//! Pods that every API server refuses are errors of `validate`, and no other pods are.

use training_job::Kind;
use training_job::validate::manifest;
use training_job_pytorch::PyTorchJob;
use training_operator_testing::pod_rules;

#[test]
fn validate_refuses_the_pods_that_the_api_server_refuses() {
    let kind = Kind::of::<PyTorchJob>();
    let mut wrong = Vec::new();
    for row in pod_rules::all() {
        let (found, expected) = match manifest::check(&kind, &row.job) {
            Ok(checked) => (checked.warnings, row.path.or(row.warning)),
            Err(errors) => (errors, row.path),
        };
        let paths: Vec<_> = found.iter().map(|error| &error.path).collect();
        let expected: Vec<_> = expected.iter().collect();
        if paths != expected {
            wrong.push(format!("{}: expected {expected:?}, got\n{found}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
