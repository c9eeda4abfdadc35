//! The containers of a node for its clients: their output, and commands in them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::spawn_blocking;

use super::api::PodRef;
use super::guard::{Group, Guard};
use super::kill::MARKER;
use super::launch::Launch;
use super::output::{LogOptions, OutputReader, StoredOutput};

/// The containers of all pods, by namespace, pod and container.
#[derive(Debug, Default)]
pub(super) struct ContainerTable {
    containers: Mutex<BTreeMap<(String, String), BTreeMap<String, ContainerEntry>>>,
}

#[derive(Debug, Default)]
struct ContainerEntry {
    runs: u64,
    current: Option<Arc<StoredOutput>>,
    previous: Option<Arc<StoredOutput>>,
    /// The launch of the present run, while it lasts.
    launch: Option<Launch>,
}

impl ContainerTable {
    fn with<T>(&self, pod: &PodRef, container: &str, act: impl FnOnce(&mut ContainerEntry) -> T) -> T {
        let mut containers = self.containers.lock();
        let pod = containers
            .entry((pod.namespace.clone(), pod.name.clone()))
            .or_default();
        act(pod.entry(container.to_owned()).or_default())
    }

    /// Adds the output of a new run. `make` makes it from the number of earlier runs.
    pub(super) fn begin(
        &self,
        pod: &PodRef,
        container: &str,
        make: impl FnOnce(u64) -> Arc<StoredOutput>,
    ) -> Arc<StoredOutput> {
        self.with(pod, container, |entry| {
            let output = make(entry.runs);
            entry.runs += 1;
            if let Some(outdated) = entry.previous.take() {
                outdated.remove();
            }
            entry.previous = entry.current.replace(Arc::clone(&output));
            output
        })
    }

    /// Adds the output of the runs, by their numbers, of a container that has not run under this agent.
    pub(super) fn take_over(&self, pod: &PodRef, container: &str, runs: BTreeMap<u64, Arc<StoredOutput>>) {
        self.with(pod, container, |entry| {
            entry.runs = runs.last_key_value().map_or(0, |(last, _)| last + 1);
            let mut newest = runs.into_values().rev();
            (entry.current, entry.previous) = (newest.next(), newest.next());
            newest.for_each(|outdated| outdated.remove());
        });
    }

    pub(super) fn set_launch(&self, pod: &PodRef, container: &str, launch: Option<Launch>) {
        self.with(pod, container, |entry| entry.launch = launch);
    }

    pub(super) fn remove(&self, pod: &PodRef) {
        self.containers
            .lock()
            .remove(&(pod.namespace.clone(), pod.name.clone()));
    }
}

/// The reason that a container has no output, or runs no command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The container has not run yet, or not twice if its previous run was requested.
    #[error("the container has no such run")]
    NoRun,
    /// The container does not run.
    #[error("the container does not run")]
    NotRunning,
    /// The files of the output cannot be read.
    #[error("the output cannot be read: {0}")]
    Output(#[source] io::Error),
    /// The command cannot be started.
    #[error("{program:?} cannot be run: {error}")]
    Command {
        /// The first word of the command.
        program: String,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
}

/// The containers of a [`Node`](super::Node): their output, and commands in them. From
/// [`Node::containers`](super::Node::containers).
#[derive(Clone)]
pub struct Containers {
    table: Arc<ContainerTable>,
    guard: Arc<Guard>,
}

impl Containers {
    pub(super) fn new(table: Arc<ContainerTable>, guard: Arc<Guard>) -> Self {
        Self { table, guard }
    }

    /// Returns a reader of a container's output: of its present or last run, or with `previous` of the run before. Needs
    /// [`NodeConfig::keep_output`](super::NodeConfig::keep_output). The output exists until the pod is deleted.
    ///
    /// # Errors
    /// The run does not exist, or its files cannot be read.
    pub async fn output(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        previous: bool,
        options: &LogOptions,
    ) -> Result<OutputReader, ContainerError> {
        let output = self.entry(namespace, pod, container, |entry| {
            let run = if previous { &entry.previous } else { &entry.current };
            run.clone()
        });
        let output = output.ok_or(ContainerError::NoRun)?;
        let reader = OutputReader::open(output, options.tail_lines, options.follow).await;
        reader.map_err(ContainerError::Output)
    }

    /// Starts a command in the environment and the directory of a running container. With `stdin` it has a standard
    /// input. The command is killed when the container's run ends, and when the returned value is dropped.
    ///
    /// # Errors
    /// The container does not run, or the command cannot be started.
    pub fn exec(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        command: &[String],
        stdin: bool,
    ) -> Result<ExecCommand, ContainerError> {
        static COMMANDS: AtomicU64 = AtomicU64::new(0);
        let launch = self.entry(namespace, pod, container, |entry| entry.launch.clone());
        let launch = launch.ok_or(ContainerError::NotRunning)?;
        let (program, args) = command.split_first().ok_or(ContainerError::NotRunning)?;
        let failed = |error| ContainerError::Command {
            program: program.clone(),
            error,
        };
        let mut marker = String::new();
        let env = launch.env.into_iter().map(|(name, value)| {
            if name != MARKER {
                return (name, value);
            }
            // The marker begins with the container's, so that the command ends with the container.
            let number = COMMANDS.fetch_add(1, Ordering::Relaxed);
            marker = format!("{value}exec-{number}/");
            (name, marker.clone())
        });
        let env: Vec<_> = env.collect();
        let mut child = Command::new(program)
            .args(args)
            .env_clear()
            .envs(env)
            .current_dir(&launch.directory)
            .stdin(if stdin { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let id = child.id();
        let id = id.ok_or_else(|| failed(io::Error::other("it ended before its process ID was read")))?;
        Ok(ExecCommand {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            group: self.guard.add(id, marker),
            child,
        })
    }

    fn entry<T>(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        get: impl FnOnce(&ContainerEntry) -> Option<T>,
    ) -> Option<T> {
        let containers = self.table.containers.lock();
        let pod = containers.get(&(namespace.to_owned(), pod.to_owned()))?;
        get(pod.get(container)?)
    }
}

impl fmt::Debug for Containers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Containers").finish_non_exhaustive()
    }
}

/// A command in a container.
#[derive(Debug)]
pub struct ExecCommand {
    /// The standard input, if it was requested.
    pub stdin: Option<ChildStdin>,
    /// The standard output.
    pub stdout: Option<ChildStdout>,
    /// The standard error.
    pub stderr: Option<ChildStderr>,
    child: Child,
    group: Group,
}

impl ExecCommand {
    /// Waits for the end of the command, and kills the processes that it left. Returns its exit code.
    pub async fn wait(mut self) -> i32 {
        let status = self.child.wait().await;
        let group = self.group;
        // A group that cannot be killed now is killed with the container.
        let _ = spawn_blocking(move || group.kill()).await;
        super::process::exit_code(&status).0
    }
}
