//! The life of one pod: one task, from the pod's first start to its deletion.

mod files;
mod removal;
mod start;
mod stop;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::agent::Agent;
use super::api::PodRef;
use super::container::{ContainerRecord, RunState, Termination, containers};
use super::event::{NodeEvent, PodPhase};
use super::lifecycle::{FinalPhase, Step, next_step, should_restart};
use super::process::Exit;
use super::recovery::{self, FoundPod};
use super::report::StatusReporter;
use super::restart::RestartPolicy;
use super::status::{Observed, StopCause, status};

use files::Files;
use stop::Stop;

/// An event for the task of a pod.
#[derive(Debug)]
pub(super) enum Command {
    Changed(Box<Pod>),
    /// The pod was removed from the API.
    Gone,
    /// The agent stops; the processes have this time to end.
    Shutdown(Duration),
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
    /// The running process groups, by index of their container.
    groups: BTreeMap<usize, u32>,
    /// The ends of runs, each with the index of its container.
    ends: JoinSet<(usize, Exit)>,
    files: Files,
    stop: Option<Stop>,
    /// The time at which sidecars are killed that do not end with the others.
    sidecars_end: Option<Instant>,
    deleted: bool,
    gone: bool,
    shutting_down: bool,
    /// The phase that was last reported to the user.
    last_phase: Option<PodPhase>,
    reporter: StatusReporter,
}

impl PodTask {
    pub(super) fn new(agent: Arc<Agent>, pod: Pod, commands: mpsc::UnboundedReceiver<Command>) -> Self {
        let at = PodRef::from_pod(&pod);
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
            policy: RestartPolicy::from_pod(&pod),
            containers: containers(&pod),
            conditions: status
                .and_then(|status| status.conditions.clone())
                .unwrap_or_default(),
            groups: BTreeMap::new(),
            ends: JoinSet::new(),
            files: Files::default(),
            stop: None,
            sidecars_end: None,
            deleted: pod.metadata.deletion_timestamp.is_some(),
            gone: false,
            shutting_down: false,
            last_phase: None,
            reporter: StatusReporter::start(Arc::clone(&agent.api), at.clone()),
            agent,
            at,
            pod,
            commands,
        }
    }

    /// Runs the pod to its end, then waits until the pod is deleted.
    pub(super) async fn run(mut self) {
        match recovery::classify(&self.pod) {
            FoundPod::Ended => {}
            FoundPod::Lost => self.fail_lost(),
            FoundPod::New if self.deleted => {}
            FoundPod::New => self.run_containers().await,
        }
        let (agent, at) = (Arc::clone(&self.agent), self.at.clone());
        let exists = !self.await_deletion().await;
        agent.forget(&at, exists);
    }

    /// Reports a pod as failed whose processes belonged to another agent and are dead by now.
    fn fail_lost(&mut self) {
        recovery::mark_lost(&self.pod, &mut self.containers, Timestamp::now());
        self.report(Some(FinalPhase::Failed));
    }

    async fn run_containers(&mut self) {
        loop {
            while let Ok(command) = self.commands.try_recv() {
                self.handle(command);
            }
            let Step {
                start,
                stop,
                wake,
                final_phase,
            } = next_step(&self.containers, self.stop.is_some(), Instant::now());
            if let Some(final_phase) = final_phase {
                self.report(Some(final_phase));
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

    /// Waits for the next event or timer, and handles it.
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
            Some(()) = self.files.next(|at| self.groups.contains_key(&at)) => {}
            Some(end) = self.ends.join_next() => match end {
                Ok((at, exit)) => self.on_container_ended(at, exit),
                // The task of the run died. Its group was killed with it, but its container is unknown.
                Err(error) => self.on_run_lost(&error),
            },
            command = self.commands.recv() => self.handle(command.unwrap_or(Command::Gone)),
            () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => self.check_timers(),
        }
    }

    fn handle(&mut self, command: Command) {
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
                self.shutting_down = true;
                self.order_stop(self.capped(grace), StopCause::NodeShutdown);
            }
        }
    }

    fn on_container_ended(&mut self, at: usize, exit: Exit) {
        self.groups.remove(&at);
        let winding_down = self.stop.is_some() || self.sidecars_end.is_some();
        let record = &mut self.containers[at];
        let containers = &self.agent.containers;
        containers.set_launch(&self.at, &record.name, None);
        let (started, pid) = match &record.state {
            RunState::Running { started, pid } => (Some(*started), Some(*pid)),
            _ => (None, None),
        };
        let reason = match (pid, exit.code) {
            (None, _) => "ContainerCannotRun",
            (Some(_), 0) => "Completed",
            (Some(_), _) => "Error",
        };
        let end = Termination {
            exit_code: exit.code,
            signal: exit.signal,
            reason: reason.to_owned(),
            message: exit.message,
            started,
            finished: Timestamp::now(),
            pid,
        };
        let own = record.own_restart.as_ref();
        let restart = !winding_down && should_restart(self.policy, own, record.type_, exit.code);
        record.ended(
            end,
            restart,
            &self.at.name,
            &self.agent.config.restart_backoff,
            Instant::now(),
        );
    }

    fn on_run_lost(&mut self, error: &tokio::task::JoinError) {
        tracing::error!(pod = self.at.name, %error, "the task of a container ended unexpectedly; the pod fails");
        self.signal_all(Signal::KILL);
        let running: Vec<usize> = self.groups.keys().copied().collect();
        self.stop = Some(Stop {
            kill_at: Instant::now(),
            killed: true,
            cause: StopCause::Lost,
        });
        for at in running {
            self.on_container_ended(
                at,
                Exit {
                    code: 137,
                    signal: Some(9),
                    message: Some(error.to_string()),
                },
            );
        }
    }

    /// Reports the pod's status to the API, and its phase to the user.
    fn report(&mut self, final_phase: Option<FinalPhase>) {
        let observed = Observed {
            containers: &self.containers,
            address: self.address,
            start_time: self.start_time,
            final_phase,
            cause: self.stop.as_ref().map(|stop| stop.cause),
            previous: &self.conditions,
            now: Timestamp::now(),
        };
        let status = status(&self.pod, &observed);
        self.conditions = status.conditions.clone().unwrap_or_default();
        let phase = PodPhase::from_status(&self.at.namespace, &self.at.name, &status);
        if self.last_phase.as_ref() != Some(&phase) {
            self.agent.send_event(NodeEvent::Phase(phase.clone()));
            self.last_phase = Some(phase);
        }
        self.reporter.report(status);
    }
}
