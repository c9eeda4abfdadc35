//! Starts the containers of a pod.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;
use tokio::time::Instant;

use super::files::Watched;
use super::{Command, PodTask};
use crate::agent::StartError;
use crate::container::{ContainerRecord, ContainerType, RunState, Start};
use crate::event::{NodeEvent, Prepared};
use crate::exec::Opened;
use crate::launch::Launch;
use crate::logs::RunLog;
use crate::prepare::{Preparation, PrepareError};
use crate::process::{self, Exit, Output};
use crate::volumes::Mount;

/// The wait before a retry if something is missing that a container needs.
const CONFIG_RETRY_DELAY: Duration = Duration::from_secs(2);

/// The wait before a retry if names of pods are missing that are about to be created.
const NAME_RETRY_DELAY: Duration = Duration::from_millis(100);

impl PodTask {
    /// Starts a container, or records the reason that it does not start.
    pub(super) async fn start(&mut self, at: usize) {
        let Some(container) = self.container(at).cloned() else {
            // Containers cannot be removed from a pod. Without this, a broken API would make the task spin.
            let message = Some("the pod no longer has this container".to_owned());
            let (reason, start) = ("CreateContainerError", Start::Never);
            self.containers[at].state = RunState::Waiting {
                reason,
                message,
                start,
            };
            return;
        };
        let marker = self.agent.guard.marker(&self.at.uid, &container.name);
        let preparation = match self.prepare(&container, &marker).await {
            Some(Ok(preparation)) => preparation,
            Some(Err(problem)) => return self.set_waiting(at, &problem),
            None => return,
        };
        if self.containers[at].restarts == 0 && self.containers[at].last.is_none() {
            self.agent.send_event(NodeEvent::Prepared(Prepared {
                namespace: self.at.namespace.clone(),
                pod: self.at.name.clone(),
                container: container.name.clone(),
                differences: preparation.differences,
            }));
        }
        let several = self.containers.len() > 1;
        let shown = several.then(|| container.name.clone());
        let output = Output {
            namespace: self.at.namespace.clone(),
            pod: self.at.name.clone(),
            log: RunLog {
                file: self.agent.log_file(&self.at, shown.as_deref()),
                stored: self.agent.keep_output(&self.at, &container.name),
                ..RunLog::default()
            },
            container: shown,
            events: self.agent.events.clone(),
        };
        if let Err(error) = self.make_files(&preparation.mounts) {
            let exit = Exit {
                code: 128,
                signal: None,
                message: Some(format!("the pod's folder cannot be written: {error}")),
            };
            return self.on_container_ended(at, exit);
        }
        match process::start(&preparation.launch, output, &self.agent.guard, marker) {
            Ok(mut process) => {
                process.opened = self.open(at, &preparation.launch);
                let containers = &self.agent.containers;
                containers.set_launch(&self.at, &container.name, Some(preparation.launch));
                self.containers[at].started(process.pid, Timestamp::now());
                self.files.watch(Watched {
                    agent: Arc::clone(&self.agent),
                    pod: self.pod.clone(),
                    at,
                    container,
                    mounts: preparation.mounts,
                });
                self.groups.insert(at, process.pid);
                self.ends.spawn(async move { (at, process.run().await) });
            }
            Err(exit) => self.on_container_ended(at, exit),
        }
    }

    /// Prepares a container. Returns `None` if the pod is stopped meanwhile, because an API without a response must
    /// not delay the stop.
    async fn prepare(
        &mut self,
        container: &Container,
        marker: &str,
    ) -> Option<Result<Preparation, StartError>> {
        let (agent, pod) = (Arc::clone(&self.agent), self.pod.clone());
        let mut prepared = pin!(agent.prepare(&pod, self.address, container, marker));
        while self.stop.is_none() {
            tokio::select! {
                prepared = &mut prepared => return Some(prepared),
                command = self.commands.recv() => self.handle(command.unwrap_or(Command::Gone)),
            }
        }
        None
    }

    /// Records the reason that a container has to wait, and for how long.
    fn set_waiting(&mut self, at: usize, problem: &StartError) {
        let (reason, start) = match problem {
            StartError::Prepare(PrepareError::NoCommand { .. }) => ("ImageCommandUnknown", Start::Never),
            StartError::Name(_) => ("ContainerCreating", Start::At(Instant::now() + NAME_RETRY_DELAY)),
            StartError::Prepare(PrepareError::Config(_)) | StartError::Api(_) => (
                "CreateContainerConfigError",
                Start::At(Instant::now() + CONFIG_RETRY_DELAY),
            ),
        };
        self.containers[at].state = RunState::Waiting {
            reason,
            message: Some(problem.to_string()),
            start,
        };
    }

    fn make_files(&self, mounts: &[Mount]) -> io::Result<()> {
        self.agent.folders.make(&self.at, self.address)?;
        mounts.iter().try_for_each(Mount::write)
    }

    /// Lets commands run in the pod, if the container is its first main container.
    fn open(&self, at: usize, launch: &Launch) -> Option<Opened> {
        let is_main = |record: &ContainerRecord| record.type_ == ContainerType::Main;
        if self.containers.iter().position(is_main) != Some(at) {
            return None;
        }
        let opened = self.agent.folders.open(&self.at, launch);
        let warn = |error: &io::Error| {
            tracing::warn!(pod = self.at.name, %error, "no command can be run in the pod");
        };
        opened.inspect_err(warn).ok()
    }

    fn container(&self, at: usize) -> Option<&Container> {
        let spec = self.pod.spec.as_ref()?;
        let record = self.containers.get(at)?;
        let mut list = match record.type_ {
            ContainerType::Main => spec.containers.iter(),
            ContainerType::Init | ContainerType::Sidecar => {
                spec.init_containers.as_deref().unwrap_or_default().iter()
            }
        };
        list.find(|container| container.name == record.name)
    }
}
