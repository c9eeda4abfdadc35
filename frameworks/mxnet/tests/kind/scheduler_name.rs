//! The scheduler for all pods, which early manifests set in addition to those of the roles.

use training_job::{Settings, render, validate};
use training_job_mxnet::MXJob;

/// Returns the scheduler of a pod, for these lines of the job's spec and of its template.
fn scheduler(spec: &str, template: &str) -> Option<String> {
    let job: MXJob = serde_saphyr::from_str(&format!(
        "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {{name: job}}\nspec:\n  jobMode: MXTrain\n  {spec}\n  \
         mxReplicaSpecs: {{Worker: {{template: {{spec: {{{template} containers: [{{name: mxnet, image: a}}]}}}}}}}}\n"
    ))
    .unwrap();
    let pods = render::all(&validate(&job, &Settings::default()).unwrap()).pods;
    pods[0].spec.as_ref().unwrap().scheduler_name.clone()
}

#[test]
fn a_templates_own_scheduler_counts_before_the_jobs() {
    let (jobs, own) = ("schedulerName: volcano", "schedulerName: mine,");
    assert_eq!(scheduler(jobs, own).as_deref(), Some("mine"));
    assert_eq!(scheduler(jobs, "").as_deref(), Some("volcano"));
    assert_eq!(scheduler(jobs, "schedulerName: '',").as_deref(), Some("volcano"));
    assert_eq!(scheduler("", own).as_deref(), Some("mine"));
    assert_eq!(scheduler("", ""), None);
}
