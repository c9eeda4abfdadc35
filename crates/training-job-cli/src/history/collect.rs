//! Finished job → story.

use std::collections::BTreeSet;
use std::fmt::Debug;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, Event, Pod, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Api, ListParams, LogParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use training_job::Settings;
use training_job::plan::observed::{ContainerKind, Observed, Phase, PodRecord, Termination};
use training_job_kubectl::StoredJob;
use training_job_kubectl::story::{story_of, timed, unrendered};
use training_job_review::Kind;
use training_job_story::{Recorder, Story};

/// The maximum number of failed pods whose logs are read.
const MAX_LOGS: usize = 4;

/// The number of last lines of a failed pod that are read.
const LINES: i64 = 40;

/// The maximum size of a log, in bytes.
const MAX_LOG_BYTES: i64 = 256 << 10;

/// The maximum number of events.
const MAX_EVENTS: u32 = 300;

/// The maximum number of replicas of a job whose pods are rendered: the pods of a large job take much memory, because
/// each may name all others.
const MAX_RENDERED: u64 = 64;

/// The rights of reads that are left out without them.
const LIST_EVENTS: &str = "list events";
const GET_LOGS: &str = "get pods/log";

/// Objects and logs of a finished job, as far as they were read.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pods: Vec<Pod>,
    events: Vec<Event>,
    /// Logs by the name of the pod.
    logs: Vec<(String, String)>,
    /// The reads that the operator's role does not allow, such as `list events`, each once.
    pub(super) denied: BTreeSet<&'static str>,
    /// The problems of other reads.
    failed: BTreeSet<String>,
}

impl Collected {
    /// Returns nothing, because the reads took too long.
    pub(super) fn late() -> Self {
        let problem = "The API server did not answer in time, so this story lacks events and logs.";
        Self {
            failed: [problem.to_owned()].into(),
            ..Self::default()
        }
    }
}

/// Reads the pods of a job, its events, and the last lines of failed pods, as far as they exist and may be read.
pub(super) async fn collect(client: &Client, job: &StoredJob) -> Collected {
    let mut denied = BTreeSet::new();
    let pods = ListParams::default().labels(&job.selector());
    let events = format!("involvedObject.uid={}", job.uid());
    let events = ListParams::default().fields(&events).limit(MAX_EVENTS);
    let (pods, events) = futures::join!(
        list::<Pod>(client, job.namespace(), &pods),
        list::<Event>(client, job.namespace(), &events)
    );
    let mut pods = pods.unwrap_or_default();
    pods.retain(|pod: &Pod| {
        let mut owners = pod.metadata.owner_references.iter().flatten();
        owners.any(|owner| owner.uid == job.uid())
    });
    let events = events.unwrap_or_else(|is_denied| {
        denied.extend(is_denied.then_some(LIST_EVENTS));
        Vec::new()
    });
    let api = Api::<Pod>::namespaced(client.clone(), job.namespace());
    let failed = pods
        .iter()
        .filter_map(|pod| Some((pod.metadata.name.clone()?, failed_container(pod)?)));
    let cause = job
        .status
        .failure
        .as_ref()
        .and_then(|failure| failure.pod.clone());
    let mut failed: Vec<(String, LogParams)> = failed.collect();
    failed.sort_by_key(|(name, _)| Some(name) != cause.as_ref());
    failed.truncate(MAX_LOGS);
    let reads = failed
        .iter()
        .map(async |(name, parameters)| (name, api.logs(name, parameters).await));
    let (mut logs, mut failures) = (Vec::new(), BTreeSet::new());
    for (name, read) in join_all(reads).await {
        match read {
            Ok(log) => logs.push((name.clone(), log)),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                denied.insert(GET_LOGS);
            }
            // The pod or its log is gone.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                failures.insert(format!("The log of {name} could not be read: {error}."));
            }
        }
    }
    Collected {
        pods,
        events,
        logs,
        denied,
        failed: failures,
    }
}

/// Returns the objects of a list, or whether it is not allowed.
async fn list<K>(client: &Client, namespace: &str, parameters: &ListParams) -> Result<Vec<K>, bool>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    match Api::<K>::namespaced(client.clone(), namespace)
        .list(parameters)
        .await
    {
        Ok(objects) => Ok(objects.items),
        Err(error) => Err(matches!(error, kube::Error::Api(status) if status.code == 403)),
    }
}

/// Returns the parameters for the log of the container that failed.
fn failed_container(pod: &Pod) -> Option<LogParams> {
    let status = pod.status.as_ref()?;
    let containers = status
        .container_statuses
        .iter()
        .chain(&status.init_container_statuses)
        .flatten();
    let has_failed = |state: &Option<ContainerState>| {
        let ended = state.as_ref().and_then(|state| state.terminated.as_ref());
        ended.is_some_and(|ended| ended.exit_code != 0)
    };
    let mut failed = containers.filter_map(|container| {
        let previous = !has_failed(&container.state);
        let is_failed = !previous || has_failed(&container.last_state);
        is_failed.then(|| (container.name.clone(), previous))
    });
    let (container, previous) = failed.next()?;
    Some(LogParams {
        container: Some(container),
        previous,
        tail_lines: Some(LINES),
        limit_bytes: Some(MAX_LOG_BYTES),
        timestamps: true,
        ..LogParams::default()
    })
}

/// Returns the story of a job, from what was read and what the controller knew at the job's end.
pub(super) fn story(
    kind: &Kind,
    job: &StoredJob,
    children: &Observed,
    read: &Collected,
    now: Timestamp,
) -> Story {
    let mut recorder = Recorder::new(kind.framework.keys(), &job.object);
    for pod in known_pods(kind, job, children) {
        let is_gone = !read.pods.iter().any(|read| read.metadata.uid == pod.metadata.uid);
        if is_gone {
            recorder.pod(&pod, false, now);
        }
    }
    for pod in &read.pods {
        recorder.pod(pod, false, now);
    }
    for event in &read.events {
        recorder.event(event);
    }
    for (pod, log) in &read.logs {
        for line in log.lines() {
            let (at, text) = timed(line);
            recorder.line(pod, text, at);
        }
    }
    let settings = Settings::default();
    let described = match is_small(job) {
        true => story_of(kind, &job.object, &settings),
        false => unrendered(kind, &job.object, &settings),
    };
    let mut story = recorder.finish(&described, now);
    let denied = read.denied.iter().map(|denied| note(denied));
    story.notes = denied.chain(read.failed.iter().cloned()).collect();
    story
}

/// Returns the sentence about a read that is not allowed.
fn note(denied: &str) -> String {
    let lacks = match denied {
        LIST_EVENTS => "events",
        _ => "logs of failed pods",
    };
    format!("The role of the operator does not allow `{denied}`, so this story lacks the {lacks}.")
}

/// Returns true if the job has at most [`MAX_RENDERED`] replicas.
fn is_small(job: &StoredJob) -> bool {
    let Ok(outline) = &job.outline else {
        return true;
    };
    let replicas = outline.roles.iter().map(|role| u64::from(role.replicas));
    replicas.sum::<u64>() <= MAX_RENDERED
}

/// Returns the pods that the controller knew, as far as it keeps their fields.
fn known_pods(kind: &Kind, job: &StoredJob, children: &Observed) -> Vec<Pod> {
    let Ok(outline) = &job.outline else {
        return Vec::new();
    };
    let keys = kind.framework.keys();
    let mut pods = Vec::new();
    for role in &outline.roles {
        for index in 0..role.replicas {
            let Some(record) = children.pods.get(&role.pod_name(index)) else {
                continue;
            };
            let labels = [
                (keys.replica_type(), role.slug.clone()),
                (keys.replica_index(), index.to_string()),
            ];
            pods.push(of_record(record, labels.into_iter().collect(), job.created()));
        }
    }
    pods
}

fn of_record(
    record: &PodRecord,
    labels: std::collections::BTreeMap<String, String>,
    created: Option<Timestamp>,
) -> Pod {
    let containers = |is_init: bool| -> Vec<ContainerStatus> {
        let all = record.containers.iter();
        let of_kind = all.filter(|container| (container.kind != ContainerKind::Regular) == is_init);
        of_kind
            .map(|container| ContainerStatus {
                name: container.name.clone(),
                restart_count: container.restarts,
                state: container.ended.as_ref().map(ended),
                last_state: container.last.as_ref().map(ended),
                ..ContainerStatus::default()
            })
            .collect()
    };
    let starts = record
        .containers
        .iter()
        .flat_map(|container| [&container.last, &container.ended]);
    let start = starts.flatten().filter_map(|end| end.started_at).min();
    Pod {
        metadata: ObjectMeta {
            name: Some(record.name.clone()),
            uid: Some(record.uid.clone()),
            labels: Some(labels),
            creation_timestamp: start.or(created).map(Time),
            annotations: Some(
                [(
                    training_job::api::labels::RESTART_ATTEMPT.to_owned(),
                    record.attempt.to_string(),
                )]
                .into(),
            ),
            deletion_timestamp: record.deletion.map(|deletion| Time(deletion.requested)),
            ..ObjectMeta::default()
        },
        status: Some(PodStatus {
            phase: Some(phase(record.phase).to_owned()),
            reason: record.reason.clone(),
            message: record.message.clone(),
            init_container_statuses: Some(containers(true)),
            container_statuses: Some(containers(false)),
            ..PodStatus::default()
        }),
        ..Pod::default()
    }
}

fn ended(end: &Termination) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: end.exit_code,
            signal: end.signal,
            reason: end.reason.clone(),
            message: end.message.clone(),
            started_at: end.started_at.map(Time),
            finished_at: end.finished_at.map(Time),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Running => "Running",
        Phase::Succeeded => "Succeeded",
        Phase::Failed => "Failed",
        Phase::Unknown => "Unknown",
    }
}
