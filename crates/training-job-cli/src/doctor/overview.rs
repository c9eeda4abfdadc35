//! Describes the parts of an installation, also those without a problem.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};
use training_job_program::program;
use training_job_review::Kind;

use super::definitions::is_outdated;
use super::deployments::{expected_kinds, operator_of};
use crate::installation::{ClusterState, OperatorVariant, name};
use crate::kinds::Kinds;

/// Time after which a job whose replicas do not run is listed.
const MAX_WAIT_SECONDS: i64 = 600;

/// Time after which a job without a status counts as one that no operator has seen.
const MAX_UNSEEN_SECONDS: i64 = 60;

/// A part of an installation, and its state in a few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The part: `API server`, `CRDs`, `operator NAMESPACE/NAME`, `lease NAMESPACE/NAME` or `jobs`.
    pub object: String,
    /// Its state.
    pub state: String,
}

/// Returns the parts of the installation that could be read, with their states.
pub fn observations(state: &ClusterState, kinds: &Kinds) -> Vec<Observation> {
    let mut all = Vec::new();
    let mut add = |object: String, state: String| all.push(Observation { object, state });
    let (major, minor) = state.version;
    let version = match state.git_version.trim_start_matches('v') {
        "" => format!("{major}.{minor}"),
        version => version.to_owned(),
    };
    add("API server".to_owned(), format!("Kubernetes {version}"));
    if !state.is_unreadable("customresourcedefinitions") {
        let expected = expected_kinds(state, kinds);
        let is_current = |definition: &&Value| {
            let (_, plural) = name(definition);
            let mut kinds = expected.iter();
            let kind =
                kinds.find(|kind| plural == format!("{}.{}", kind.resource.plural, kind.resource.group));
            kind.is_some_and(|kind| is_outdated(definition, kind).is_none())
        };
        let current = state.definitions.iter().filter(is_current).count();
        add(
            "CRDs".to_owned(),
            format!("{current} of {} current", expected.len()),
        );
    }
    for deployment in &state.deployments {
        if operator_of(deployment, kinds) == Some(OperatorVariant::This) {
            let (namespace, name) = name(deployment);
            let (ready, wanted) = ready_pods(deployment);
            let image = image(deployment);
            add(
                format!("operator {namespace}/{name}"),
                format!("{image}, {ready} of {wanted} pods ready"),
            );
        }
    }
    for lease in held_leases(state) {
        let (namespace, name) = name(lease);
        let spec = &lease["spec"];
        let holder = spec["holderIdentity"].as_str().unwrap_or_default();
        let renewed = seconds_since(&spec["renewTime"], state.now);
        let renewed = renewed.map_or_else(String::new, |seconds| format!(", renewed {seconds} s ago"));
        add(
            format!("lease {namespace}/{name}"),
            format!("held by {holder}{renewed}"),
        );
    }
    if !state.is_unreadable("customresourcedefinitions") {
        add("jobs".to_owned(), state.jobs.len().to_string());
    }
    all
}

/// Returns the numbers of a Deployment's ready pods and of the pods that it should have.
pub(super) fn ready_pods(deployment: &Value) -> (i64, i64) {
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    (
        deployment["status"]["readyReplicas"].as_i64().unwrap_or(0),
        wanted,
    )
}

fn image(deployment: &Value) -> &str {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    let first = containers.and_then(|containers| containers.first());
    first
        .and_then(|container| container["image"].as_str())
        .unwrap_or("no image")
}

/// Returns the leases of this program that a process holds.
pub(super) fn held_leases(state: &ClusterState) -> Vec<&Value> {
    let is_held = |lease: &&Value| {
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        name(lease).1 == program().lease && !holder.is_empty()
    };
    state.leases.iter().filter(is_held).collect()
}

/// Returns the age of a lease's last renewal and its duration, in seconds, if it is over.
pub(super) fn expired_since(lease: &Value, now: Timestamp) -> Option<(i64, i64)> {
    let duration = lease["spec"]["leaseDurationSeconds"].as_i64()?;
    let renewed = seconds_since(&lease["spec"]["renewTime"], now)?;
    (renewed > duration).then_some((renewed, duration))
}

/// Returns the jobs that have had no status since a minute, without those that another controller manages.
pub(super) fn unseen_jobs(state: &ClusterState, kinds: &[&Arc<Kind>]) -> Vec<String> {
    let is_unseen = |job: &&Value| {
        let version = job["apiVersion"].as_str().unwrap_or_default();
        let group = version.split('/').next().unwrap_or_default();
        let is_run = |kind: &&Arc<Kind>| job["kind"] == kind.name() && kind.resource.group == group;
        let is_ours = |policy: &Value| {
            let manager = policy["managedBy"].as_str();
            manager.is_none_or(|manager| manager.ends_with("/training-operator"))
        };
        let created = seconds_since(&job["metadata"]["creationTimestamp"], state.now);
        kinds.iter().any(is_run)
            && is_ours(&job["spec"])
            && is_ours(&job["spec"]["runPolicy"])
            && job["metadata"]["deletionTimestamp"].is_null()
            && job["status"].as_object().is_none_or(Map::is_empty)
            && created.is_some_and(|seconds| seconds > MAX_UNSEEN_SECONDS)
    };
    let names = state.jobs.iter().filter(is_unseen).map(name);
    names
        .map(|(namespace, name)| format!("{namespace}/{name}"))
        .collect()
}

/// Returns the jobs none of whose replicas has run for ten minutes, each with its name and the reason in its status.
pub(super) fn waiting_jobs(state: &ClusterState) -> Vec<String> {
    let waits = |job: &&Value| {
        let status = &job["status"];
        let goes_on = ["Running", "Restarting", "Succeeded", "Suspended", "Failed"];
        !goes_on.into_iter().any(|type_| holds(job, type_))
            && seconds_since(&status["startTime"], state.now)
                .is_some_and(|seconds| seconds > MAX_WAIT_SECONDS)
    };
    let described = |job: &Value| {
        let (namespace, name) = name(job);
        let reason = Some(waiting_reason(job)).filter(|reason| !reason.is_empty());
        format!(
            "{namespace}/{name} ({})",
            reason.unwrap_or("no reason in its status")
        )
    };
    let waiting = state.jobs.iter().filter(|job| waits(job) && !is_refused(job));
    waiting.map(described).collect()
}

/// Returns the jobs that make no progress, each with its name and the progress in its status.
pub(super) fn stalled_jobs(state: &ClusterState) -> Vec<String> {
    let stalled = state.jobs.iter().filter(|job| holds(job, "Stalled"));
    let described = |job: &Value| {
        let (namespace, name) = name(job);
        let progress = job["status"]["progress"]["summary"].as_str().unwrap_or_default();
        match progress {
            "" => format!("{namespace}/{name}"),
            progress => format!("{namespace}/{name} (at {progress})"),
        }
    };
    stalled.map(described).collect()
}

/// Returns true if the condition of this type is True.
fn holds(job: &Value, type_: &str) -> bool {
    let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|c| c["type"] == type_ && c["status"] == "True")
}

/// True if a job has an object that cannot be written. A pod or a service that is not created is none of them, because a
/// quota refuses it until another job ends.
pub(super) fn is_refused(job: &Value) -> bool {
    let reason = waiting_reason(job);
    reason.starts_with("Failed") && !["FailedCreatePod", "FailedCreateService"].contains(&reason)
}

/// Returns the reason in one word why a job waits; empty if it does not.
pub(super) fn waiting_reason(job: &Value) -> &str {
    job["status"]["waitingReason"].as_str().unwrap_or_default()
}

fn seconds_since(time: &Value, now: Timestamp) -> Option<i64> {
    let time: Timestamp = time.as_str()?.parse().ok()?;
    Some(now.duration_since(time).as_secs().max(0))
}
