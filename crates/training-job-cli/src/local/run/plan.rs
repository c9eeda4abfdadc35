//! The facts about jobs that are known before they run.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::Value;
use training_job::Settings;
use training_job_review::Failure;
use training_job_review::check::Job;

/// A job that is about to run.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobPlan {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) backoff_limit: Option<i64>,
    pub(super) deadline_seconds: Option<i64>,
    pub(crate) pods: Vec<Pod>,
}

impl JobPlan {
    /// # Errors
    /// The pods of the job cannot be computed.
    pub(crate) fn new(job: &Job, settings: &Settings) -> Result<Self, Failure> {
        let pods = job.render(settings)?.into_iter().filter(|o| o["kind"] == "Pod");
        let pods = pods.map(serde_json::from_value).collect::<Result<_, _>>();
        Ok(Self {
            kind: job.kind.name().to_owned(),
            name: job.object["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            backoff_limit: policy(&job.object, "backoffLimit"),
            deadline_seconds: policy(&job.object, "activeDeadlineSeconds"),
            pods: pods.map_err(|error| Failure::new(&job.origin, error))?,
        })
    }

    /// Returns the names under which the containers print their output.
    pub(super) fn writers(&self) -> impl Iterator<Item = String> {
        self.pods.iter().flat_map(|pod| {
            let spec = pod.spec.iter();
            let containers = spec.flat_map(|spec| {
                spec.containers
                    .iter()
                    .chain(spec.init_containers.iter().flatten())
            });
            let names: Vec<&str> = containers.map(|container| container.name.as_str()).collect();
            let pod = pod.name_any();
            match names[..] {
                [_] => vec![pod],
                _ => names.iter().map(|name| format!("{pod}/{name}")).collect(),
            }
        })
    }
}

/// Returns a field of `runPolicy`, which older API versions have in the specification itself.
fn policy(job: &Value, field: &str) -> Option<i64> {
    let spec = &job["spec"];
    spec["runPolicy"][field].as_i64().or_else(|| spec[field].as_i64())
}
