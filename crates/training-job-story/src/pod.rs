//! The facts of one pod, from one or several observations.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use training_job::api::labels::RESTART_ATTEMPT;

use crate::story::{ContainerRun, LogLine, PodHistory, Wait};
use crate::text::{line, message};

/// The maximum number of runs and of waits of a pod that are recorded; later ones replace earlier ones.
const MAX_RUNS: usize = 40;

/// The maximum number of lines of a pod.
pub(crate) const MAX_LINES: usize = 40;

/// The conditions of a pod that was stopped from outside: Kubernetes' own, and that of the node agent of local runs.
const STOPS: [&str; 2] = ["DisruptionTarget", "training.kubeflow.org/Stopped"];

#[derive(Clone, Debug, Default)]
pub(crate) struct PodFacts {
    history: PodHistory,
    /// Runs by the start and the container, as in the pod's status. The start in the story may be more exact.
    runs: BTreeMap<(Timestamp, String), ContainerRun>,
    log: VecDeque<LogLine>,
    pub(crate) lines: usize,
    omitted_runs: usize,
}

impl PodFacts {
    /// Records a state of the pod that was observed at `now`. `gone` is true if the pod was deleted and this is its last
    /// state.
    pub(crate) fn observe(&mut self, pod: &Pod, gone: bool, now: Timestamp) {
        let meta = &pod.metadata;
        let status = pod.status.clone().unwrap_or_default();
        let history = &mut self.history;
        history.name = line(meta.name.as_deref().unwrap_or_default());
        history.uid = line(meta.uid.as_deref().unwrap_or_default());
        let attempt = meta
            .annotations
            .iter()
            .flatten()
            .find(|(key, _)| *key == RESTART_ATTEMPT);
        history.attempt = attempt.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        history.node = node.map(line);
        history.phase = line(status.phase.as_deref().unwrap_or("Pending"));
        history.reason = line(status.reason.as_deref().unwrap_or_default());
        history.message = message(status.message.as_deref().unwrap_or_default());
        if history.created_at.is_none() {
            history.created_at = Some(exact(meta.creation_timestamp.as_ref(), now).unwrap_or(now));
        }
        let mut conditions = status.conditions.iter().flatten();
        history.is_shut_down |=
            conditions.any(|condition| STOPS.contains(&&*condition.type_) && condition.status == "True");
        self.observe_scheduling(&status, now);
        let inits = status.init_container_statuses.iter().flatten();
        for (container, is_init) in inits.map(|container| (container, true)).chain(
            status
                .container_statuses
                .iter()
                .flatten()
                .map(|container| (container, false)),
        ) {
            self.observe_container(container, is_init, now);
        }
        let history = &mut self.history;
        if history.stopping_at.is_none() {
            let grace = SignedDuration::from_secs(meta.deletion_grace_period_seconds.unwrap_or(0));
            let requested = meta
                .deletion_timestamp
                .as_ref()
                .and_then(|at| at.0.checked_sub(grace).ok());
            history.stopping_at = requested.map(|at| exact(Some(&Time(at)), now).unwrap_or(at));
        }
        if gone && history.gone_at.is_none() {
            history.gone_at = Some(now);
        }
    }

    fn observe_scheduling(&mut self, status: &PodStatus, now: Timestamp) {
        let mut conditions = status.conditions.iter().flatten();
        let Some(scheduled) = conditions.find(|condition| condition.type_ == "PodScheduled") else {
            return;
        };
        let at = exact(scheduled.last_transition_time.as_ref(), now);
        if scheduled.status == "True" {
            if self.history.scheduled_at.is_none() {
                self.history.scheduled_at = at;
            }
        } else {
            let reason = scheduled.reason.as_deref().unwrap_or("Unschedulable");
            self.wait(at.unwrap_or(now), reason, scheduled.message.as_deref());
        }
    }

    fn observe_container(&mut self, container: &ContainerStatus, is_init: bool, now: Timestamp) {
        let states = [container.last_state.as_ref(), container.state.as_ref()];
        for state in states.into_iter().flatten() {
            if let Some(end) = &state.terminated {
                let Some(started) = end.started_at.as_ref().or(end.finished_at.as_ref()) else {
                    continue;
                };
                let run = self.run(container, is_init, started.0, now);
                run.exit_code = Some(end.exit_code);
                run.signal = end.signal;
                run.reason = line(end.reason.as_deref().unwrap_or_default());
                run.message = message(end.message.as_deref().unwrap_or_default());
                if run.finished_at.is_none() {
                    let finished = exact(end.finished_at.as_ref(), now);
                    run.finished_at = Some(finished.unwrap_or(run.started_at).max(run.started_at));
                }
            } else if let Some(started) = state.running.as_ref().and_then(|run| run.started_at.as_ref()) {
                self.run(container, is_init, started.0, now);
            }
        }
        if let Some(waiting) = container.state.as_ref().and_then(|state| state.waiting.as_ref()) {
            let ends = self.runs.values().filter_map(|run| run.finished_at);
            let since = ends.max().or(self.history.scheduled_at).unwrap_or(now);
            let reason = waiting.reason.as_deref().unwrap_or("Waiting");
            self.wait(since, reason, waiting.message.as_deref());
        }
    }

    fn run(
        &mut self,
        container: &ContainerStatus,
        is_init: bool,
        started: Timestamp,
        now: Timestamp,
    ) -> &mut ContainerRun {
        let key = (started, container.name.clone());
        if !self.runs.contains_key(&key) && self.runs.len() >= MAX_RUNS {
            self.runs.pop_first();
            self.omitted_runs += 1;
        }
        self.runs.entry(key).or_insert_with(|| ContainerRun {
            container: line(&container.name),
            is_init,
            started_at: exact(Some(&Time(started)), now).unwrap_or(started),
            finished_at: None,
            exit_code: None,
            signal: None,
            reason: String::new(),
            message: String::new(),
        })
    }

    /// Records a wait unless it continues the latest one.
    fn wait(&mut self, at: Timestamp, reason: &str, why: Option<&str>) {
        let (reason, why) = (line(reason), message(why.unwrap_or_default()));
        let waits = &mut self.history.waits;
        let is_full = waits.len() >= MAX_RUNS;
        match waits.last_mut() {
            Some(latest) if latest.reason == reason && at <= latest.at => latest.message = why,
            Some(latest)
                if latest.reason == reason && !self.runs.values().any(|run| run.started_at > latest.at) =>
            {
                latest.message = why;
            }
            Some(_) if is_full => self.omitted_runs += 1,
            _ => waits.push(Wait {
                at,
                reason,
                message: why,
            }),
        }
    }

    /// Records a line of the pod's log.
    pub(crate) fn line(&mut self, text: &str, at: Option<Timestamp>) {
        self.lines += 1;
        if self.log.len() >= MAX_LINES {
            self.log.pop_front();
        }
        self.log.push_back(LogLine { at, text: line(text) });
    }

    /// Returns the history of the pod, and the numbers of runs and lines that were left out.
    pub(crate) fn finish(&self) -> (PodHistory, usize, usize) {
        let history = PodHistory {
            runs: self.runs.values().cloned().collect(),
            log: self.log.iter().cloned().collect(),
            ..self.history.clone()
        };
        (history, self.omitted_runs, self.lines - self.log.len())
    }
}

/// Returns a time of an object's status. Such times are in whole seconds; one within the second before the observation is
/// replaced by the time of the observation, which is later than the change by a moment only.
fn exact(time: Option<&Time>, now: Timestamp) -> Option<Timestamp> {
    let time = time?.0;
    let age = now.duration_since(time);
    let is_recent = !age.is_negative() && age < SignedDuration::from_secs(1);
    Some(if is_recent && time.subsec_nanosecond() == 0 {
        now
    } else {
        time
    })
}
