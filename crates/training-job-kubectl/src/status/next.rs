//! Sentences about what happens next to a job (pure).

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use training_job::api::CleanPodPolicy;
use training_job_review::duration::short_time;

use crate::job_events::event_time;
use crate::observe::ObservedJob;
use crate::replicas::{ReplicaState, ReplicaView, RoleView};
use crate::stored::StoredJob;

/// Returns the sentences, the most important first.
pub(super) fn sentences(observed: &ObservedJob, roles: &[RoleView]) -> Vec<String> {
    let job = &observed.job;
    let argument = job.argument();
    match job.state() {
        "New" => {
            vec!["No operator has seen the job yet. If this lasts, run: training-operator doctor".to_owned()]
        }
        "Deleting" => vec!["The job and its objects are being deleted.".to_owned()],
        "HookPanicked" => {
            vec![
                "The operator retries the job; the condition HookPanicked has the error to report."
                    .to_owned(),
            ]
        }
        "Suspended" => match job.queue() {
            Some(queue) => vec![format!("Kueue starts the job when queue {queue} admits it.")],
            None => vec![format!("Nothing runs until: kubectl training resume {argument}")],
        },
        "Failed" | "Succeeded" => ended(observed, roles),
        "Restarting" => restarting(observed, roles),
        "Stalled" => {
            let policy = job.outline.as_ref().ok().map(|outline| &outline.policy);
            let action = policy.and_then(|policy| policy.progress.as_ref());
            let action = action.map_or("Report", |progress| progress.on_stall.as_str());
            let mut all = vec![format!(
                "The job goes on, because runPolicy.progress.onStall is {action}; find the replica that hangs with: kubectl \
                 training logs {argument} --tail 5"
            )];
            all.extend(limits(job, observed.now));
            all
        }
        _ => {
            let mut all = waiting(observed, roles);
            all.extend(limits(job, observed.now));
            all.push(format!(
                "The rules for each kind of failure: kubectl training explain {argument}"
            ));
            all
        }
    }
}

fn ended(observed: &ObservedJob, roles: &[RoleView]) -> Vec<String> {
    let (job, now) = (&observed.job, observed.now);
    let mut all = waiting(observed, &[]);
    let pods = roles
        .iter()
        .flat_map(|role| &role.replicas)
        .filter(|replica| replica.age.is_some())
        .count();
    let policy = job.outline.as_ref().ok().map(|outline| &outline.policy);
    let kept = policy.map(|policy| match &policy.clean_pods {
        CleanPodPolicy::All => "deletes all pods",
        CleanPodPolicy::Running => "deletes pods that still run, and keeps the others",
        CleanPodPolicy::None | CleanPodPolicy::Other(_) => "keeps all pods",
    });
    let lost = match &job.status.failure {
        Some(failure) if !failure.message.is_empty() => "; the root cause has the end of one",
        _ => "",
    };
    all.extend(kept.map(|kept| match pods {
        _ if observed.is_forbidden("pods") => format!("The job has ended; cleanPodPolicy {kept}."),
        0 => format!(
            "The job has ended, and none of its pods is left. Logs are deleted with their pods{lost}."
        ),
        left => format!("The job has ended; cleanPodPolicy {kept} ({left} left)."),
    }));
    let end = job.status.completion_time.as_ref().map(|time| time.0);
    let ttl = policy.and_then(|policy| policy.ttl_seconds);
    let at = end
        .zip(ttl)
        .and_then(|(end, ttl)| end.checked_add(SignedDuration::from_secs(ttl)).ok());
    match at {
        Some(at) => all.push(format!(
            "The job is deleted with all its objects {}.",
            in_time(at, now)
        )),
        None => {
            all.push("The job stays until it is deleted; spec has no ttlSecondsAfterFinished.".to_owned())
        }
    }
    let mut replicas = roles.iter().flat_map(|role| &role.replicas);
    let has_failed = |replica: &ReplicaView| {
        replica.state == ReplicaState::Failed || replica.exit_code.is_some_and(|code| code != 0)
    };
    if replicas.any(has_failed) {
        all.push(match observed.pods.iter().all(is_on_local_node) {
            true => {
                "The logs of failed replicas are in the output of local node, which serves none to kubectl."
                    .to_owned()
            }
            false => format!(
                "The logs of failed replicas: kubectl training logs {} --failed",
                job.argument()
            ),
        });
    }
    all
}

/// True if `local node` runs the pod, in a cluster with an API server of its own. The node of `local cluster`, which serves
/// logs, has another name.
fn is_on_local_node(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let host = pod.status.as_ref().and_then(|status| status.host_ip.as_deref());
    host == Some("127.0.0.1") && node != Some("local")
}

fn restarting(observed: &ObservedJob, roles: &[RoleView]) -> Vec<String> {
    let job = &observed.job;
    let stopping = roles.iter().flat_map(|role| &role.replicas);
    let stopping: Vec<&str> = stopping
        .filter(|r| r.state == ReplicaState::Stopping)
        .map(|r| r.name.as_str())
        .collect();
    let mut all = Vec::new();
    if let Some(first) = stopping.first() {
        all.push(match stopping.len() {
            1 => format!("New pods are created when {first} has stopped."),
            count => format!(
                "New pods are created when {first} and {} other replicas have stopped.",
                count - 1
            ),
        });
    }
    let pauses = job
        .status
        .recovery
        .backoff
        .values()
        .filter_map(|backoff| backoff.until.as_ref());
    if let Some(until) = pauses
        .map(|until| until.0)
        .max()
        .filter(|until| *until > observed.now)
    {
        let why = "the last attempts failed soon after their start";
        all.push(format!(
            "New pods are created {}, because {why}.",
            in_time(until, observed.now)
        ));
    }
    all.extend(waiting(observed, roles));
    all.extend(limits(job, observed.now));
    all
}

/// Returns the reasons why replicas do not run, each with the number of such replicas.
fn waiting(observed: &ObservedJob, roles: &[RoleView]) -> Vec<String> {
    let status = &observed.job.status;
    let mut all: Vec<(String, String, usize)> = Vec::new();
    for replica in roles.iter().flat_map(|role| &role.replicas) {
        if replica.state != ReplicaState::Pending || replica.why.is_empty() {
            continue;
        }
        match all.iter_mut().find(|(_, why, _)| *why == replica.why) {
            Some((_, _, count)) => *count += 1,
            None => {
                let message = match replica.message.is_empty() {
                    true => String::new(),
                    false => format!(": {}", replica.message),
                };
                all.push((
                    format!("{} waits: {}{message}", replica.name, replica.why),
                    replica.why.clone(),
                    1,
                ));
            }
        }
    }
    let mut sentences: Vec<String> = all
        .into_iter()
        .map(|(text, _, count)| match count {
            1 => text,
            count => format!("{text} (and {} more)", count - 1),
        })
        .collect();
    let reason = &status.waiting_reason;
    if !reason.is_empty()
        && !sentences
            .iter()
            .any(|sentence| sentence.contains(reason.as_str()))
    {
        let mut latest = observed.events.iter().rev();
        let event = latest.find(|event| event.reason.as_deref() == Some(reason));
        let message = event.and_then(|event| {
            let at = event_time(event).map(|time| format!(" ({} ago)", ago(time, observed.now)));
            Some(format!(
                ": {}{}",
                event.message.as_deref()?,
                at.unwrap_or_default()
            ))
        });
        let what = match reason.starts_with("FailedPatch") || reason.starts_with("FailedDelete") {
            true => "An object of the job cannot be changed, and the operator tries again",
            false => "The job waits",
        };
        sentences.push(format!("{what}: {reason}{}", message.unwrap_or_default()));
    }
    sentences
}

/// Returns the limits that end a job that goes on.
fn limits(job: &StoredJob, now: Timestamp) -> Vec<String> {
    let mut all = Vec::new();
    let Ok(outline) = &job.outline else {
        return all;
    };
    if let Some(limit) = job.restart_limit() {
        all.push(match limit.saturating_sub(job.status.restart_count) {
            ..=0 => {
                "The next failure that restarts replicas fails the job: the limit of restarts is reached."
                    .to_owned()
            }
            1 => "After one more restart, a failure fails the job.".to_owned(),
            left => format!("After {left} more restarts, a failure fails the job."),
        });
    }
    let start = job.status.start_time.as_ref().map(|time| time.0);
    let seconds = outline
        .policy
        .active_deadline_seconds
        .map(SignedDuration::from_secs);
    let deadline = start
        .zip(seconds)
        .and_then(|(start, seconds)| start.checked_add(seconds).ok());
    all.extend(deadline.map(|at| format!("The job fails at its deadline, {}.", in_time(at, now))));
    all
}

fn in_time(at: Timestamp, now: Timestamp) -> String {
    match at.duration_since(now).as_secs() {
        ..=0 => "now".to_owned(),
        seconds => format!("in {}", short_time(seconds)),
    }
}

fn ago(time: Timestamp, now: Timestamp) -> String {
    short_time(now.duration_since(time).as_secs().max(0))
}
