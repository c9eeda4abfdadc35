//! `--report`: the stories of the jobs of a run.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use kube::ResourceExt;
use local_node::NodeEvent;
use serde_json::Value;
use training_job::Settings;
use training_job::api::labels::{Keys, OPERATOR_NAME};
use training_job_kubectl::story::{story_of, write_story};
use training_job_local::RunEvent;
use training_job_review::Kind;
use training_job_story::Recorder;

use crate::kinds::Kinds;

/// An example for the help of `local run`.
pub(super) const EXAMPLE: &str = "  {program} local run job.yaml --report out.html\n";

/// The flag that requests stories.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Write the story of the job at the end, also after a failure or Ctrl-C: a page without network and script, or JSON
    /// if the name ends in .json. With several jobs, -NAME is added to the name of each file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl ReportArgs {
    /// Returns the collector of the stories, if they are wanted.
    ///
    /// # Errors
    /// The file cannot be written. At the end of a long training it would be too late.
    pub(super) fn start(&self, kinds: &Kinds) -> anyhow::Result<Option<Report>> {
        let Some(file) = &self.report else {
            return Ok(None);
        };
        check_writable(file)?;
        Ok(Some(Report::new(file.clone(), kinds)))
    }
}

/// The namespace and the name of an object.
type Name = (String, String);

/// Collects the stories of all jobs of a run.
pub(super) struct Report {
    file: PathBuf,
    kinds: Vec<Arc<Kind>>,
    jobs: BTreeMap<Name, RecordedJob>,
    /// The jobs of pods.
    owners: BTreeMap<Name, Name>,
}

struct RecordedJob {
    kind: Arc<Kind>,
    object: Value,
    /// The times at which the times of the conditions were first seen. Those of the conditions are a second apart, so
    /// they may be in the future.
    times: BTreeMap<Timestamp, Timestamp>,
    recorder: Recorder,
}

impl Report {
    fn new(file: PathBuf, kinds: &Kinds) -> Self {
        Self {
            file,
            kinds: kinds.iter().cloned().collect(),
            jobs: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }

    pub(super) fn record(&mut self, event: &RunEvent) {
        let now = Timestamp::now();
        match event {
            RunEvent::Job(job) => self.record_job(&serde_json::to_value(job).unwrap_or_default()),
            RunEvent::Pod { pod, gone, .. } => {
                let controller = pod.labels().get(OPERATOR_NAME);
                let kind = self.kinds.iter().find(|kind| {
                    kind.framework
                        .controllers()
                        .any(|name| Some(name) == controller.map(String::as_str))
                });
                let keys = kind.map_or(Keys::DEFAULT, |kind| kind.framework.keys());
                let namespace = pod.namespace().unwrap_or_default();
                let Some(job) = pod.labels().get(&keys.job_name()) else {
                    return;
                };
                let job = (namespace.clone(), job.clone());
                if let Some(recorded) = self.jobs.get_mut(&job) {
                    recorded.recorder.pod(pod, *gone, now);
                }
                self.owners.insert((namespace, pod.name_any()), job);
            }
            RunEvent::Event(event) => {
                let about = &event.involved_object;
                let name = (
                    about.namespace.clone().unwrap_or_default(),
                    about.name.clone().unwrap_or_default(),
                );
                let is_pod = about.kind.as_deref() == Some("Pod");
                let job = if is_pod {
                    self.owners.get(&name)
                } else {
                    Some(&name)
                };
                if let Some(recorded) = job.and_then(|job| self.jobs.get_mut(job)) {
                    recorded.recorder.event(event);
                }
            }
            RunEvent::Node(NodeEvent::Log(line)) if !line.is_update => {
                let owner = self.owners.get(&(line.namespace.clone(), line.pod.clone()));
                if let Some(recorded) = owner.and_then(|job| self.jobs.get_mut(job)) {
                    recorded.recorder.line(&line.pod, &line.text, Some(now));
                }
            }
            _ => {}
        }
    }

    fn record_job(&mut self, object: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = (
            text(&object["metadata"]["namespace"]),
            text(&object["metadata"]["name"]),
        );
        let (kind, version) = (text(&object["kind"]), text(&object["apiVersion"]));
        let group = version.split('/').next();
        let is_its = |own: &&Arc<Kind>| own.name() == kind && Some(&*own.resource.group) == group;
        let Some(kind) = self.kinds.iter().find(is_its) else {
            return;
        };
        let recorded = self.jobs.entry(name).or_insert_with(|| RecordedJob {
            kind: kind.clone(),
            object: Value::Null,
            times: BTreeMap::new(),
            recorder: Recorder::new(kind.framework.keys(), object),
        });
        recorded.object.clone_from(object);
        let now = Timestamp::now();
        for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
            let time = condition["lastTransitionTime"]
                .as_str()
                .and_then(|time| time.parse().ok());
            if let Some(time) = time {
                let real = recorded.times.entry(time).or_insert(now);
                *real = now.min(*real);
            }
        }
    }

    /// Writes a file for each job, and returns a line about each.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn write(self) -> anyhow::Result<Vec<String>> {
        let now = Timestamp::now();
        let mut lines = Vec::new();
        for ((_, name), job) in &self.jobs {
            let file = match self.jobs.len() {
                1 => self.file.clone(),
                _ => with_name(&self.file, name),
            };
            let mut object = job.object.clone();
            keep_real_times(&mut object, &job.times);
            let observed = story_of(&job.kind, &object, &Settings::default());
            let story = job.recorder.finish(&observed, now);
            write_story(&file, &story).with_context(|| format!("--report {}", file.display()))?;
            lines.push(format!("the story of {name} is in {}", file.display()));
        }
        Ok(lines)
    }
}

/// Sets the times of a job's status that were in the future when they were first seen to the times of that.
fn keep_real_times(object: &mut Value, times: &BTreeMap<Timestamp, Timestamp>) {
    let real = |value: &mut Value| {
        let time: Option<Timestamp> = value.as_str().and_then(|time| time.parse().ok());
        if let Some((time, seen)) = time.and_then(|time| Some((time, *times.get(&time)?)))
            && seen < time
        {
            *value = Value::from(seen.to_string());
        }
    };
    let status = &mut object["status"];
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        real(&mut condition["lastTransitionTime"]);
        real(&mut condition["lastUpdateTime"]);
    }
    real(&mut status["startTime"]);
    real(&mut status["completionTime"]);
}

/// # Errors
/// The file of `--report` cannot be written.
fn check_writable(file: &Path) -> anyhow::Result<()> {
    let exists = file.exists();
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.with_context(|| {
        format!(
            "--report {}: the file cannot be written; name another",
            file.display()
        )
    })?;
    if !exists {
        fs::remove_file(file).with_context(|| format!("--report {}", file.display()))?;
    }
    Ok(())
}

/// Returns `out-NAME.html` for `out.html`.
fn with_name(file: &Path, name: &str) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let with_name = match file.extension() {
        Some(extension) => format!("{stem}-{name}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{name}"),
    };
    file.with_file_name(with_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_jobs_has_a_file_of_its_own() {
        let named = |file: &str| with_name(Path::new(file), "train");
        assert_eq!(named("out/page.html"), Path::new("out/page-train.html"));
        assert_eq!(named("page"), Path::new("page-train"));
    }
}
