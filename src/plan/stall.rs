//! The progress of a job by the output of its replicas: which are read, what the status shows, and when the job is stalled.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::facts::{Facts, whole_second};
use super::failure::Failure;
use super::observed::{Phase, PodRecord};
use super::pod_end::main_name;
use super::printable::printable;
use super::reasons;
use super::survey::{ObservedReplica, Situation, Survey};
use super::types::{OutputWatch, Plan, WatchedPod};
use crate::api::{JobStatus, ProgressStatus, is_writable};
use crate::job::Replica;
use crate::output::{OutputRecord, Unread, rounded};
use crate::validate::Progress;

/// The least time between two writes of a status in which only the progress changes.
const MIN_WRITE_INTERVAL: Duration = Duration::from_secs(60);

/// The digits of a loss in the status.
const DIGITS: usize = 4;

/// The output of a job's watched replicas, as far as it is known.
#[derive(Debug)]
pub(super) struct Output<'a> {
    progress: &'a Progress,
    replicas: Vec<WatchedReplica<'a>>,
    /// The stall of the job, if all watched replicas run and none of them has made progress for too long.
    pub(super) stall: Option<Stall<'a>>,
}

#[derive(Debug)]
struct WatchedReplica<'a> {
    replica: Replica<'a>,
    pod: &'a PodRecord,
    /// The framework's container, or the first one.
    container: &'a str,
    restarts: i32,
    /// The record of the current run of the container, if there is one.
    record: Option<&'a OutputRecord>,
    is_running: bool,
}

/// A job that runs and makes no progress.
#[derive(Debug)]
pub(super) struct Stall<'a> {
    /// The replica that printed last.
    pub(super) replica: Replica<'a>,
    pub(super) pod: &'a PodRecord,
    /// The replica, the time and the last line.
    why: String,
    /// The failure of the replica, if the job restarts or fails for it.
    pub(super) failure: Failure,
}

impl<'a> Output<'a> {
    /// Returns the output of the job, if its policy requests it.
    pub(super) fn of(facts: &Facts<'a>, survey: &Survey<'a>) -> Option<Self> {
        let (job, observed) = (facts.job, facts.observed);
        let progress = job.policy.progress.as_ref()?;
        let watched = |of: &ObservedReplica<'a>| {
            let (pod, replica) = (of.pod?, of.replica);
            let main = main_name(replica.role);
            let container = main
                .and_then(|name| pod.container(name))
                .or(pod.containers.first());
            let name = container.map(|container| container.name.as_str()).or(main)?;
            // A pod that runs may have no status of its containers yet.
            let restarts = container.map_or(0, |container| container.restarts);
            let record = observed.output.get(&of.name).map(|record| &**record);
            let is_of_run = |record: &&OutputRecord| record.uid == pod.uid && record.restarts == restarts;
            let is_running = matches!(of.situation, Situation::Running { .. })
                && pod.phase == Phase::Running
                && container.is_none_or(|container| container.waiting.is_none() && container.ended.is_none());
            Some(WatchedReplica {
                replica,
                pod,
                container: name,
                restarts,
                record: record.filter(is_of_run),
                is_running,
            })
        };
        let is_active = |of: &&ObservedReplica<'a>| !matches!(of.situation, Situation::Succeeded);
        // A role that waits for other ones has no pods, and does not end the silence of those.
        let due = survey.roles.iter().flat_map(|of_role| {
            let is_due = survey.is_due(job, of_role.role);
            let replicas = of_role.replicas.iter();
            replicas.filter(move |of| is_due || of.pod.is_some())
        });
        let prints = |of: &&ObservedReplica<'a>| job.watches(&of.replica);
        let mut chosen: Vec<&ObservedReplica<'a>> = due.filter(is_active).filter(prints).collect();
        if !survey.replicas().any(|of| prints(&of) && is_active(&of)) {
            let mut roles = survey.roles.iter().rev();
            let first = roles.find_map(|of_role| {
                let mut replicas = of_role.replicas.iter();
                replicas.find(|of| of.pod.is_some() && is_active(of))
            });
            chosen.extend(first);
        }
        let total = chosen.len();
        let replicas: Vec<_> = chosen.into_iter().filter_map(watched).collect();
        // A replica without a pod is not silent.
        let has_all = replicas.len() == total;
        let mut output = Self {
            progress,
            replicas,
            stall: None,
        };
        output.stall = output.find_stall(facts.now).filter(|_| has_all);
        Some(output)
    }

    /// Returns the replica that is stalled, the time and the last line.
    pub(super) fn why(&self) -> Option<&str> {
        self.stall.as_ref().map(|stall| stall.why.as_str())
    }

    /// Returns the reads of output until the next plan, and notices about output that cannot be read.
    pub(super) fn actions(&self) -> Plan {
        Plan {
            output: Some(self.watch()),
            ..self.notices()
        }
    }

    fn watch(&self) -> OutputWatch {
        let running = self.replicas.iter().filter(|watched| watched.is_running);
        let pod = |watched: &WatchedReplica<'_>| WatchedPod {
            name: watched.pod.name.clone(),
            uid: watched.pod.uid.clone(),
            container: watched.container.to_owned(),
            restarts: watched.restarts,
        };
        OutputWatch {
            pods: running.map(pod).collect(),
            progress: self.progress.clone(),
        }
    }

    fn find_stall(&self, now: Timestamp) -> Option<Stall<'a>> {
        let is_silent = |watched: &WatchedReplica<'_>| {
            let record = watched
                .record
                .filter(|record| watched.is_running && record.unread.is_none())?;
            let limit = self.progress.limit(record.has_begun);
            limit.filter(|limit| record.silent_for >= *limit)
        };
        if !self.replicas.iter().all(|watched| is_silent(watched).is_some()) {
            return None;
        }
        let (last, record) = self.latest()?;
        let name = last.replica.pod_name();
        let seconds = record.silent_for.as_secs();
        let time = match seconds / 60 {
            0 | 1 => format!("{seconds} s"),
            minutes => format!("{minutes} min"),
        };
        let nothing = if self.progress.counts_steps() {
            "no new step"
        } else {
            "nothing"
        };
        let mut why = format!("{name} has printed {nothing} for {time}");
        match record.lines.back() {
            Some(line) => {
                let at = record.mark().map(|at| format!(", of {}", whole_second(at)));
                why += &format!(
                    "; its last line{}: {}",
                    at.unwrap_or_default(),
                    printable(line.clone())
                );
            }
            None => why += "; it has printed no line since its start",
        }
        let tails = self.replicas.iter().map(|watched| {
            let lines = watched.record.iter().flat_map(|record| &record.lines);
            let lines: String = lines.map(|line| format!("\n{line}")).collect();
            format!("\n{}:{}", watched.replica.pod_name(), printable(lines))
        });
        let tails: String = tails.collect();
        let failure = Failure::stalled(&last.replica, last.pod, &why, &tails, record.silent_for, now);
        Some(Stall {
            replica: last.replica,
            pod: last.pod,
            why,
            failure,
        })
    }

    /// Returns the replica that made progress last, with its record.
    fn latest(&self) -> Option<(&WatchedReplica<'a>, &'a OutputRecord)> {
        let read = self
            .replicas
            .iter()
            .filter_map(|watched| Some((watched, watched.record?)));
        read.max_by_key(|(_, record)| record.silent_since)
    }

    fn records(&self) -> impl Iterator<Item = &'a OutputRecord> {
        self.replicas.iter().filter_map(|watched| watched.record)
    }

    /// Returns true if the job has made progress since the stored one.
    pub(super) fn has_advanced_since(&self, stored: &JobStatus) -> bool {
        let limit = self.progress.limit(true);
        let advances = |record: &OutputRecord| {
            record.has_advanced && limit.is_none_or(|limit| record.silent_for < limit)
        };
        self.records().any(advances) || self.has_replaced(stored.progress.as_ref())
    }

    /// Returns true if the stored progress is that of a replica's record.
    fn is_of(&self, stored: &ProgressStatus, record: &OutputRecord) -> bool {
        let new = self.status_of(record);
        match self.progress.counts_steps() {
            true => stored.step == new.step,
            false => (&stored.at, &stored.line) == (&new.at, &new.line),
        }
    }

    /// Returns true if progress of all watched replicas was read, and none is the stored one. In an output without progress
    /// that of the status may be too long ago to be read.
    fn has_replaced(&self, stored: Option<&ProgressStatus>) -> bool {
        let all_begun = self.records().filter(|record| record.has_begun).count() == self.replicas.len();
        let is_stored = |record| stored.is_some_and(|stored| self.is_of(stored, record));
        all_begun && !self.replicas.is_empty() && !self.records().any(is_stored)
    }

    /// Returns the new progress for the status, if there is any. An operator that has seen none yet keeps the stored one,
    /// because it cannot know which replica printed last. One that has seen the stored progress keeps it as well until another
    /// replica has surely printed later, because another operator may have read the replicas in another order.
    pub(super) fn status(&self, stored: Option<&ProgressStatus>) -> Option<ProgressStatus> {
        let begun = self.records().filter(|record| record.has_begun);
        let newest = begun.max_by_key(|record| (record.has_advanced, record.silent_since))?;
        let is_new = match stored {
            Some(known) if newest.has_advanced => {
                let shown = self.records().filter(|record| self.is_of(known, record));
                let shown = shown.map(|record| record.silent_since).max();
                // Progress is seen up to an interval late, and half an interval later on a busy operator.
                let late = self.progress.interval() * 3 / 2;
                shown.is_none_or(|shown| newest.silent_since > shown + late)
            }
            Some(_) => self.has_replaced(stored),
            None => true,
        };
        is_new.then(|| self.status_of(newest))
    }

    fn status_of(&self, record: &OutputRecord) -> ProgressStatus {
        let numbers = &record.numbers;
        let round = |number: f64| rounded(number, DIGITS);
        ProgressStatus {
            summary: match (numbers.step, numbers.total) {
                (Some(step), Some(total)) => format!("{step}/{total}"),
                (Some(step), None) => format!("step {step}"),
                _ => String::new(),
            },
            step: numbers.step,
            total: numbers.total,
            loss: numbers.loss.map(round),
            values: record
                .values
                .iter()
                .map(|(name, value)| (name.clone(), round(*value)))
                .collect(),
            at: record
                .at
                .map(whole_second)
                .filter(|at| is_writable(*at))
                .map(Time),
            line: printable(record.line.clone()),
        }
    }

    /// Returns the least time between two writes of a status in which only the progress changes.
    pub(super) fn write_interval(&self) -> Duration {
        MIN_WRITE_INTERVAL.max(self.progress.interval() * 2)
    }

    fn notices(&self) -> Plan {
        let unread = self.replicas.iter().filter_map(|watched| {
            let unread = watched.record?.unread.as_ref()?;
            Some((watched.replica.pod_name(), unread))
        });
        let unread: Vec<_> = unread.collect();
        match unread.first() {
            None => Plan::default(),
            Some((pod, Unread::Denied(remedy))) => {
                let message = format!(
                    "the output of {pod} cannot be read, so that the job's progress is unknown and it is never stalled: {remedy}"
                );
                Plan::notice(reasons::LOGS_DENIED, message)
            }
            Some((pod, Unread::Unavailable(problem))) => {
                let message = format!(
                    "the output of {pod} cannot be read and is tried again: {}",
                    printable(problem.clone())
                );
                Plan::notices(reasons::LOGS_UNAVAILABLE, message, unread.len())
            }
        }
    }
}
