//! The optional fields of an MXJob, and the maximum length of its configuration.

use training_job::validate::MAX_ENV_BYTES;
use training_job::{Settings, render, validate};
use training_job_mxnet::MXJob;

fn job(label: &str) -> MXJob {
    serde_saphyr::from_str(&format!(
        "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {{name: job}}\nspec:\n  jobMode: MXTrain\n  \
         mxReplicaSpecs: {{Worker: {{replicas: 1, label: '{label}', \
         template: {{spec: {{containers: [{{name: mxnet, image: a}}]}}}}}}}}\n"
    ))
    .unwrap()
}

/// Returns the errors of a job as text.
fn problem(job: &MXJob) -> String {
    let errors = validate(job, &Settings::default()).err();
    errors.map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn a_variable_may_be_as_long_as_linux_takes_it() {
    let short = job("");
    let pods = render::all(&validate(&short, &Settings::default()).unwrap()).pods;
    let environment = pods[0].spec.as_ref().unwrap().containers[0].env.clone().unwrap();
    let config = &environment[0];
    let bytes = config.name.len() + config.value.as_ref().unwrap().len() + 2;
    let left = MAX_ENV_BYTES - bytes;
    assert_eq!(problem(&job(&"x".repeat(left))), "");
    let problem = problem(&job(&"x".repeat(left + 1)));
    assert!(
        problem.contains(
            "MX_CONFIG of job-worker-0 must be at most 131072 bytes, the limit of Linux (would have 131073"
        ),
        "{problem}"
    );
}

/// Go clients send "" for an unset string.
#[test]
fn an_empty_word_is_none() {
    let mut job = job("");
    job.spec.job_mode.clear();
    job.spec.success_policy = Some(String::new().into());
    assert_eq!(problem(&job), "");
}
