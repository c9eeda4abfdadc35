//! The life of one pod: one task, from its first start to its deletion.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodCondition};
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::adopt;
use super::agent::{Agent, NotNow};
use super::api::{ApiError, PodRef};
use super::event::{NodeEvent, PodPhase, Prepared};
use super::lifecycle::{
    ContainerRecord, Ended, Kind, Outcome, RestartPolicy, Start, State, Step, containers, restarts, step,
};
use super::logs::Record;
use super::prepare::{Preparation, Unprepared};
use super::process::{self, Exit, Output};
use super::report::{Reporter, retries};
use super::status::{Observed, StopCause, status};
use super::stop::signal_group;

/// When to look again for what a container needs and does not find.
const CONFIG_RETRY: Duration = Duration::from_secs(2);
/// How long the API may take for the last words of a stopping agent.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// The grace of a pod that names none, in seconds.
const DEFAULT_GRACE: i64 = 30;

/// What the task of a pod is told.
#[derive(Debug)]
pub(super) enum Command {
    Changed(Box<Pod>),
    /// The pod is no more in the API.
    Gone,
    /// The agent stops; the processes have this long.
    Shutdown(Duration),
}

/// An end that has been ordered.
struct Stop {
    kill_at: Instant,
    killed: bool,
    cause: StopCause,
}

/// The task of one pod.
pub(super) struct PodTask {
    agent: Arc<Agent>,
    at: PodRef,
    pod: Pod,
    commands: mpsc::UnboundedReceiver<Command>,
    address: Ipv4Addr,
    start_time: Timestamp,
    deadline: Option<Instant>,
    policy: RestartPolicy,
    containers: Vec<ContainerRecord>,
    conditions: Vec<PodCondition>,
    /// The process groups that run, by container.
    groups: BTreeMap<usize, u32>,
    ends: JoinSet<(usize, Exit)>,
    stop: Option<Stop>,
    /// When sidecars that do not end with the others are killed.
    sidecars_end: Option<Instant>,
    deleted: bool,
    gone: bool,
    leaving: bool,
    /// What the user knows of its phase.
    told: Option<PodPhase>,
    reporter: Reporter,
}

impl PodTask {
    pub(super) fn new(agent: Arc<Agent>, pod: Pod, commands: mpsc::UnboundedReceiver<Command>) -> Self {
        let at = PodRef::of(&pod);
        let status = pod.status.as_ref();
        let started = status
            .and_then(|status| status.start_time.as_ref())
            .map(|time| time.0);
        let limit = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
        let limit = limit
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map(Duration::from_secs);
        Self {
            address: agent.address(&pod),
            start_time: started.unwrap_or_else(Timestamp::now),
            deadline: limit.and_then(|limit| Instant::now().checked_add(limit)),
            policy: RestartPolicy::of(&pod),
            containers: containers(&pod),
            conditions: status
                .and_then(|status| status.conditions.clone())
                .unwrap_or_default(),
            groups: BTreeMap::new(),
            ends: JoinSet::new(),
            stop: None,
            sidecars_end: None,
            deleted: pod.metadata.deletion_timestamp.is_some(),
            gone: false,
            leaving: false,
            told: None,
            reporter: Reporter::start(Arc::clone(&agent.api), at.clone()),
            agent,
            at,
            pod,
            commands,
        }
    }

    /// Runs the pod to its end, and stays until it is deleted.
    pub(super) async fn run(mut self) {
        match adopt::judge(&self.pod) {
            adopt::Past::Final => {}
            adopt::Past::Lost => self.give_up_lost(),
            adopt::Past::None if self.deleted => {}
            adopt::Past::None => self.live().await,
        }
        self.bury().await;
    }

    /// Its processes were another agent's and are dead or out of reach.
    fn give_up_lost(&mut self) {
        adopt::mark_lost(&self.pod, &mut self.containers, Timestamp::now());
        self.report(Some(Outcome::Failed));
    }

    async fn live(&mut self) {
        loop {
            while let Ok(command) = self.commands.try_recv() {
                self.obey(command);
            }
            let Step {
                start,
                stop,
                wake,
                outcome,
            } = step(&self.containers, self.stop.is_some(), Instant::now());
            if let Some(outcome) = outcome {
                self.report(Some(outcome));
                return;
            }
            self.stop_sidecars(&stop);
            if !start.is_empty() {
                for at in start {
                    self.start(at).await;
                }
                self.report(None);
                continue;
            }
            self.report(None);
            self.await_change(wake).await;
        }
    }

    /// Waits for whatever happens first, and takes it in.
    async fn await_change(&mut self, wake: Option<Instant>) {
        let kill = self
            .stop
            .as_ref()
            .filter(|stop| !stop.killed)
            .map(|stop| stop.kill_at);
        let deadline = self.deadline.filter(|_| self.stop.is_none());
        let timer = [wake, kill, deadline, self.sidecars_end]
            .into_iter()
            .flatten()
            .min();
        tokio::select! {
            Some(end) = self.ends.join_next() => match end {
                Ok((at, exit)) => self.ended(at, exit),
                // The run's task died: its group has been killed with it, but which it was is not known.
                Err(error) => self.lost_run(&error),
            },
            command = self.commands.recv() => self.obey(command.unwrap_or(Command::Gone)),
            () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => self.timers(),
        }
    }

    fn timers(&mut self) {
        let now = Instant::now();
        if self.stop.is_none() && self.deadline.is_some_and(|deadline| deadline <= now) {
            self.order_stop(self.grace(None), StopCause::Deadline);
        }
        if let Some(stop) = self
            .stop
            .as_mut()
            .filter(|stop| !stop.killed && stop.kill_at <= now)
        {
            stop.killed = true;
            self.signal_all(Signal::KILL);
        }
        if self.sidecars_end.is_some_and(|end| end <= now) {
            self.sidecars_end = None;
            self.signal_all(Signal::KILL);
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Changed(pod) => {
                self.pod = *pod;
                if self.pod.metadata.deletion_timestamp.is_some() {
                    self.deleted = true;
                    let grace = self.grace(self.pod.metadata.deletion_grace_period_seconds);
                    self.order_stop(grace, StopCause::Deleted);
                }
            }
            Command::Gone => {
                self.gone = true;
                self.order_stop(Duration::ZERO, StopCause::Deleted);
            }
            Command::Shutdown(grace) => {
                self.leaving = true;
                self.order_stop(self.capped(grace), StopCause::NodeShutdown);
            }
        }
    }

    fn grace(&self, seconds: Option<i64>) -> Duration {
        let spec = self
            .pod
            .spec
            .as_ref()
            .and_then(|spec| spec.termination_grace_period_seconds);
        let seconds = seconds.or(spec).unwrap_or(DEFAULT_GRACE);
        self.capped(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }

    fn capped(&self, grace: Duration) -> Duration {
        self.agent.config.grace_cap.map_or(grace, |cap| cap.min(grace))
    }

    /// Ends the processes. A second order may shorten the time that the first has given, never lengthen it.
    fn order_stop(&mut self, grace: Duration, cause: StopCause) {
        let now = Instant::now();
        let kill_at = now + grace.min(Duration::from_secs(86_400));
        match &mut self.stop {
            Some(stop) => stop.kill_at = stop.kill_at.min(kill_at),
            None => {
                self.stop = Some(Stop {
                    kill_at,
                    killed: false,
                    cause,
                });
                self.signal_all(Signal::TERM);
            }
        }
        self.timers();
    }

    fn signal_all(&self, signal: Signal) {
        for group in self.groups.values() {
            signal_group(*group, signal);
        }
    }

    fn stop_sidecars(&mut self, sidecars: &[usize]) {
        if sidecars.is_empty() || self.sidecars_end.is_some() {
            return;
        }
        for group in sidecars.iter().filter_map(|at| self.groups.get(at)) {
            signal_group(*group, Signal::TERM);
        }
        self.sidecars_end = Some(Instant::now() + self.grace(None));
    }

    /// Starts a container, or notes why it does not start.
    async fn start(&mut self, at: usize) {
        let Some(container) = self.container(at).cloned() else {
            // Containers cannot be taken out of a pod; without this a broken API would make the task spin.
            let message = Some("the pod has no such container any more".to_owned());
            let (reason, start) = ("CreateContainerError", Start::Never);
            self.containers[at].state = State::Waiting {
                reason,
                message,
                start,
            };
            return;
        };
        let marker = self.agent.guard.marker(&self.at.uid, &container.name);
        let preparation = match self.prepare(&container, &marker).await {
            Some(Ok(preparation)) => preparation,
            Some(Err(problem)) => return self.wait(at, &problem),
            None => return,
        };
        if self.containers[at].restarts == 0 && self.containers[at].last.is_none() {
            self.agent.tell(NodeEvent::Prepared(Prepared {
                namespace: self.at.namespace.clone(),
                pod: self.at.name.clone(),
                container: container.name.clone(),
                differences: preparation.differences,
            }));
        }
        let several = self.containers.len() > 1;
        let shown = several.then_some(container.name);
        let output = Output {
            namespace: self.at.namespace.clone(),
            pod: self.at.name.clone(),
            record: Record {
                file: self.agent.log_file(&self.at, shown.as_deref()),
                ..Record::default()
            },
            container: shown,
            events: self.agent.events.clone(),
        };
        match process::start(&preparation.launch, output, &self.agent.guard, marker) {
            Ok(process) => {
                self.containers[at].started(process.pid, Timestamp::now());
                self.groups.insert(at, process.pid);
                self.ends.spawn(async move { (at, process.run().await) });
            }
            Err(exit) => self.ended(at, exit),
        }
    }

    /// `None` if the pod is stopped meanwhile: an API that does not answer must not hold that up.
    async fn prepare(&mut self, container: &Container, marker: &str) -> Option<Result<Preparation, NotNow>> {
        let (agent, pod) = (Arc::clone(&self.agent), self.pod.clone());
        let mut prepared = pin!(agent.prepare(&pod, self.address, container, marker));
        while self.stop.is_none() {
            tokio::select! {
                prepared = &mut prepared => return Some(prepared),
                command = self.commands.recv() => self.obey(command.unwrap_or(Command::Gone)),
            }
        }
        None
    }

    fn wait(&mut self, at: usize, problem: &NotNow) {
        let (reason, start) = match problem {
            NotNow::Unprepared(Unprepared::NoCommand { .. }) => ("ImageCommandUnknown", Start::Never),
            NotNow::Unprepared(Unprepared::Config(_)) | NotNow::Api(_) => (
                "CreateContainerConfigError",
                Start::At(Instant::now() + CONFIG_RETRY),
            ),
        };
        self.containers[at].state = State::Waiting {
            reason,
            message: Some(problem.to_string()),
            start,
        };
    }

    fn ended(&mut self, at: usize, exit: Exit) {
        self.groups.remove(&at);
        let winding_down = self.stop.is_some() || self.sidecars_end.is_some();
        let record = &mut self.containers[at];
        let (started, pid) = match &record.state {
            State::Running { started, pid } => (Some(*started), Some(*pid)),
            _ => (None, None),
        };
        let reason = match (pid, exit.code) {
            (None, _) => "ContainerCannotRun",
            (Some(_), 0) => "Completed",
            (Some(_), _) => "Error",
        };
        let ended = Ended {
            exit_code: exit.code,
            signal: exit.signal,
            reason: reason.to_owned(),
            message: exit.message,
            started,
            finished: Timestamp::now(),
            pid,
        };
        let restart = !winding_down && restarts(self.policy, record.kind, exit.code);
        record.ended(
            ended,
            restart,
            &self.at.name,
            &self.agent.config.restart_backoff,
            Instant::now(),
        );
    }

    fn lost_run(&mut self, error: &tokio::task::JoinError) {
        tracing::error!(pod = self.at.name, %error, "the task of a container ended by itself: the pod is given up");
        self.signal_all(Signal::KILL);
        let running: Vec<usize> = self.groups.keys().copied().collect();
        self.stop = Some(Stop {
            kill_at: Instant::now(),
            killed: true,
            cause: StopCause::Lost,
        });
        for at in running {
            self.ended(
                at,
                Exit {
                    code: 137,
                    signal: Some(9),
                    message: Some(error.to_string()),
                },
            );
        }
    }

    fn container(&self, at: usize) -> Option<&Container> {
        let spec = self.pod.spec.as_ref()?;
        let record = self.containers.get(at)?;
        let mut list = match record.kind {
            Kind::Main => spec.containers.iter(),
            Kind::Init | Kind::Sidecar => spec.init_containers.as_deref().unwrap_or_default().iter(),
        };
        list.find(|container| container.name == record.name)
    }

    fn report(&mut self, outcome: Option<Outcome>) {
        let observed = Observed {
            containers: &self.containers,
            address: self.address,
            start_time: self.start_time,
            outcome,
            cause: self.stop.as_ref().map(|stop| stop.cause),
            previous: &self.conditions,
            now: Timestamp::now(),
        };
        let status = status(&self.pod, &observed);
        self.conditions = status.conditions.clone().unwrap_or_default();
        let phase = PodPhase::from_status(&self.at.namespace, &self.at.name, &status);
        if self.told.as_ref() != Some(&phase) {
            self.agent.tell(NodeEvent::Phase(phase.clone()));
            self.told = Some(phase);
        }
        self.reporter.report(status);
    }

    /// Delivers the final status, and removes the pod from the API once it is to be deleted.
    async fn bury(mut self) {
        if self.leaving {
            let _ = tokio::time::timeout(LAST_WORDS, self.last_words()).await;
            return;
        }
        // The last status goes first: whoever deletes the pod wants to know how it ended.
        loop {
            if self.gone {
                return;
            }
            tokio::select! {
                () = self.reporter.arrived() => break,
                command = self.commands.recv() => self.after_end(command),
            }
        }
        while !self.deleted {
            if self.gone || self.leaving {
                return;
            }
            let command = self.commands.recv().await;
            self.after_end(command);
        }
        let delete = remove(&self.agent, &self.at);
        let mut delete = pin!(delete);
        loop {
            tokio::select! {
                () = &mut delete => return,
                command = self.commands.recv() => if matches!(command, None | Some(Command::Gone)) { return },
            }
        }
    }

    async fn last_words(&mut self) {
        self.reporter.arrived().await;
        if self.deleted {
            remove(&self.agent, &self.at).await;
        }
    }

    fn after_end(&mut self, command: Option<Command>) {
        match command {
            None | Some(Command::Gone) => self.gone = true,
            Some(Command::Shutdown(_)) => self.leaving = true,
            Some(Command::Changed(pod)) => self.deleted |= pod.metadata.deletion_timestamp.is_some(),
        }
    }
}

async fn remove(agent: &Agent, pod: &PodRef) {
    for delay in retries() {
        match agent.api.delete(pod).await {
            Ok(()) | Err(ApiError::Gone) => return,
            Err(error @ (ApiError::Conflict(_) | ApiError::Failed(_))) => {
                tracing::warn!(pod = pod.name, %error, "the pod cannot be deleted, trying again");
                tokio::time::sleep(delay).await;
            }
        }
    }
}
