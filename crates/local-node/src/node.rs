//! The node: watches pods, binds them, and passes each to a task of its own.

use std::fmt;
use std::io;
use std::path::absolute;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use kube_follow::{Gate, Watch};

use super::agent::Agent;
use super::api::{KubeApi, PodApi};
use super::config::NodeConfig;
use super::containers::Containers;
use super::dispatcher::{Dispatcher, Events};
use super::event::NodeEvent;
use super::guard::Guard;
use super::node_object;

/// The reason that a node could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The working directory does not exist.
    #[error("the working directory {0} does not exist")]
    Workdir(std::path::PathBuf),
    /// The machine lacks something that the node needs: loopback addresses, `/bin/sh`, the directory for logs.
    #[error("the node cannot be started: {0}")]
    Machine(#[from] io::Error),
}

/// A running node agent.
///
/// All processes of its pods end with it, by [`shutdown`](Self::shutdown), by [`kill`](Self::kill) or because it is
/// dropped. If the agent's own process is killed, a guard process kills them within some milliseconds.
pub struct Node {
    guard: Arc<Guard>,
    /// Requests an orderly end within the given time.
    stop: Option<oneshot::Sender<Duration>>,
    /// The dispatcher is the first.
    tasks: Vec<JoinHandle<()>>,
    containers: Containers,
    /// The API and the Node object's name, if the node is to be registered.
    registered: Option<(Arc<dyn PodApi>, String)>,
}

impl Node {
    /// Starts a node agent on the API behind `client`. Must be called within a tokio runtime that has I/O and time
    /// enabled.
    ///
    /// Events are sent to `events`. Receive them all the time, because lines of output wait for capacity in the
    /// channel: processes that write faster than you read are slowed down, as by a pipe.
    ///
    /// # Errors
    /// The machine lacks something that the node needs: see [`NodeError`]. An API that cannot be reached is not an
    /// error; the node retries without end.
    pub fn start(
        client: Client,
        config: NodeConfig,
        events: mpsc::Sender<NodeEvent>,
    ) -> Result<Self, NodeError> {
        // Of many pods whose states change while the server is away, none connects by itself.
        let client = Gate::new(&config.name).client(client);
        let pods: Api<Pod> = match &config.namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        let (send, received) = mpsc::unbounded_channel();
        let mut node = Self::start_on(Arc::new(KubeApi::new(client)), received, config, events)?;
        let watch = Watch::new(pods);
        node.tasks.push(tokio::spawn(async move {
            // A dispatcher that has ended needs no events.
            watch.run(|event| drop(send.send(event))).await;
        }));
        Ok(node)
    }

    pub(super) fn start_on(
        api: Arc<dyn PodApi>,
        watch: Events,
        mut config: NodeConfig,
        events: mpsc::Sender<NodeEvent>,
    ) -> Result<Self, NodeError> {
        config.workdir = absolute(&config.workdir)?;
        if !config.workdir.is_dir() {
            return Err(NodeError::Workdir(config.workdir));
        }
        config.venv = config.venv.map(absolute).transpose()?;
        config.path = config.path.iter().map(absolute).collect::<io::Result<_>>()?;
        config.logs = config.logs.map(absolute).transpose()?;
        config.output = config.output.map(absolute).transpose()?;
        for directory in config.mounts.values_mut() {
            *directory = absolute(&directory)?;
        }

        let registered = config.register.then(|| (Arc::clone(&api), config.name.clone()));
        let devices = config.devices.clone();
        let agent = Arc::new(Agent::new(config, api, events)?);
        let guard = Arc::clone(&agent.guard);
        let containers = Containers::new(Arc::clone(&agent.containers), Arc::clone(&guard));
        let (stop, stopped) = oneshot::channel();
        let mut tasks = vec![tokio::spawn(Dispatcher::new(agent).run(watch, stopped))];
        tasks.extend(
            registered
                .clone()
                .map(|(api, name)| tokio::spawn(node_object::keep_registered(api, name, devices))),
        );
        Ok(Self {
            guard,
            stop: Some(stop),
            tasks,
            containers,
            registered,
        })
    }

    /// Ends all pods' processes: SIGTERM, and after `grace` (or [`NodeConfig::grace_cap`], if that is shorter)
    /// SIGKILL. Reports their ends. Removes the Node object if the node registered one. Takes at most `grace` and
    /// some seconds. Dropping the future kills the processes at once.
    pub async fn shutdown(mut self, grace: Duration) {
        if let Some(stop) = self.stop.take() {
            // Without a receiver the dispatcher has ended, and there is nothing to stop.
            let _ = stop.send(grace);
        }
        if let Some(dispatcher) = self.tasks.first_mut() {
            let _ = dispatcher.await;
        }
        for task in &self.tasks {
            // The heartbeat would create the Node object again.
            task.abort();
        }
        if let Some((api, name)) = &self.registered {
            node_object::remove(api.as_ref(), name).await;
        }
    }

    /// Returns the containers, for clients that read their output or run commands in them.
    #[must_use]
    pub fn containers(&self) -> Containers {
        self.containers.clone()
    }

    /// Kills all pods' processes at once. Their ends are not reported. Blocks for some milliseconds.
    pub fn kill(self) {
        drop(self);
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.guard.close();
    }
}

#[cfg(test)]
mod tests;
