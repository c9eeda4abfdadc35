//! An operator on the in-memory API keeps the stories of its finished jobs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;
use training_job_controller::{Metrics, Operator, Options};
use training_job_kubectl::story::{Catalog, Wanted, find};
use training_job_mxnet::MXJob;
use training_job_story::{Story, html};

use super::{Limits, keep};
use crate::kinds::Kinds;

/// An in-memory API with jobs of one kind, and a directory for their stories.
struct Bench {
    client: Client,
    jobs: Api<DynamicObject>,
    kinds: Kinds,
    directory: PathBuf,
    metrics: Metrics,
}

impl Bench {
    async fn new(name: &str) -> Self {
        let client = kube_memory::Cluster::builder()
            .auto_namespaces()
            .build()
            .client("default");
        let kinds = Kinds::default().kind::<MXJob>();
        let kind = &kinds[0];
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        let definition = kind.definition_without_rules();
        definitions
            .create(&PostParams::default(), &definition)
            .await
            .unwrap();
        let directory = std::env::temp_dir().join(format!("history-{name}-{}", std::process::id()));
        Self {
            jobs: Api::namespaced_with(client.clone(), "ml", &kind.resource),
            client,
            kinds,
            directory,
            metrics: Metrics::default(),
        }
    }

    /// Creates a job that ended `ago` seconds before now.
    async fn finished(&self, name: &str, ago: i64) {
        let template = json!({"spec": {"containers": [{"name": "mxnet", "image": "i"}]}});
        let job = json!({"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name},
            "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {"Scheduler": {"replicas": 1, "template": template}}}});
        let job = serde_json::from_value(job).unwrap();
        self.jobs.create(&PostParams::default(), &job).await.unwrap();
        let at = Timestamp::from_second(Timestamp::now().as_second() - ago).unwrap();
        let status = json!({"status": {"completionTime": at, "startTime": at, "conditions": [
            {"type": "Succeeded", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": at}]}});
        let (parameters, status) = (PatchParams::default(), Patch::Merge(status));
        self.jobs.patch_status(name, &parameters, &status).await.unwrap();
    }

    /// Runs an operator until `done` is true for the stories of the directory.
    async fn run(&self, limits: Limits, done: impl Fn(&[Story]) -> bool) -> Vec<Story> {
        let mut options = Options::default();
        options.metrics = self.metrics.clone();
        options.finished_jobs = Some(keep(&self.directory, limits, &self.kinds).unwrap());
        let operator = Operator::new(self.client.clone(), options).manage::<MXJob>();
        let seen = async {
            loop {
                let stories = stories(&self.directory);
                if done(&stories) {
                    return stories;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = operator.run() => unreachable!(),
            stories = tokio::time::timeout(Duration::from_secs(60), seen) => stories.expect("the stories in time"),
        }
    }

    fn metric(&self, line: &str) -> bool {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text.lines().any(|own| own == line)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Returns all stories, which must be whole.
fn stories(directory: &Path) -> Vec<Story> {
    let listed = Catalog::default().list(directory, None).unwrap();
    assert!(listed.problems.is_empty(), "{:?}", listed.problems);
    let read = listed
        .jobs
        .iter()
        .map(|job| named(directory, &job.namespace, &job.name));
    // One that was removed meanwhile is left out.
    read.flatten().collect()
}

fn named(directory: &Path, namespace: &str, name: &str) -> Option<Story> {
    let wanted = Wanted {
        namespace,
        name,
        kinds: &[],
        uid: None,
    };
    find(directory, &wanted).unwrap().story
}

#[tokio::test]
async fn a_job_that_finished_before_the_start_is_kept_once_and_after_its_deletion() {
    let bench = Bench::new("start").await;
    bench.finished("train", 5).await;
    fs::create_dir(&bench.directory).unwrap();
    let part = bench.directory.join(".story-left.part");
    fs::write(&part, "{").unwrap();
    let first = bench.run(Limits::default(), |stories| !stories.is_empty()).await;
    assert_eq!(first[0].name.as_str(), "train");
    assert_eq!(first[0].state.as_str(), "Succeeded");
    assert!(!part.exists(), "what a killed process left");
    bench
        .jobs
        .delete("train", &DeleteParams::default())
        .await
        .unwrap();
    bench.finished("other", 3).await;
    let both = bench.run(Limits::default(), |stories| stories.len() == 2).await;
    let train = both.iter().find(|story| story.name == "train").unwrap();
    assert_eq!(html(train), html(&first[0]), "it was written once");
    assert_eq!(named(&bench.directory, "ml", "train").as_ref(), Some(&first[0]));
    assert_eq!(named(&bench.directory, "other", "train"), None);
}

#[tokio::test]
async fn of_a_thousand_finished_jobs_the_latest_are_kept() {
    let bench = Bench::new("thousand").await;
    for ago in 0..1_000 {
        bench.finished(&format!("job-{ago}"), 10 + ago).await;
    }
    let limits = Limits {
        jobs: 50,
        ..Limits::default()
    };
    let newest =
        |stories: &[Story]| (0..50).all(|ago| stories.iter().any(|s| s.name == format!("job-{ago}")));
    // Jobs for which the queue has no room are offered again.
    let kept = bench
        .run(limits, |stories| stories.len() == 50 && newest(stories))
        .await;
    assert_eq!(kept.len(), 50);
    assert!(bench.metric("history_jobs 50"));
}

#[tokio::test]
async fn a_story_that_cannot_be_written_is_counted_and_later_jobs_go_on() {
    let bench = Bench::new("full").await;
    bench.finished("lost", 5).await;
    let mut options = Options::default();
    options.metrics = bench.metrics.clone();
    options.finished_jobs = Some(keep(&bench.directory, Limits::default(), &bench.kinds).unwrap());
    // Writes fail as on a full disk.
    fs::remove_dir(&bench.directory).unwrap();
    let operator = Operator::new(bench.client.clone(), options).manage::<MXJob>();
    let until = async |done: &dyn Fn() -> bool| {
        while !done() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let steps = async {
        until(&|| bench.metric(r#"stories_lost_total{cause="Write"} 1"#)).await;
        fs::create_dir(&bench.directory).unwrap();
        bench.finished("later", 1).await;
        until(&|| !stories(&bench.directory).is_empty()).await;
    };
    tokio::select! {
        () = operator.run() => unreachable!(),
        done = tokio::time::timeout(Duration::from_secs(60), steps) => done.expect("the later story in time"),
    }
    assert_eq!(stories(&bench.directory)[0].name, "later");
    assert!(
        bench.metric(r#"stories_lost_total{cause="Write"} 1"#),
        "it is not tried again and again"
    );
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error_at_the_start() {
    let file = std::env::temp_dir().join(format!("history-file-{}", std::process::id()));
    fs::write(&file, "").unwrap();
    let error = keep(&file, Limits::default(), &Kinds::default())
        .unwrap_err()
        .to_string();
    fs::remove_file(&file).unwrap();
    assert!(
        error.starts_with("--history ") && error.contains("must be a directory"),
        "{error}"
    );
}
