//! A cluster on this machine: the in-memory API over HTTPS, the operator and a node.

mod credentials;
mod server;

use local_node::{Node, NodeConfig, NodeEvent};
use tokio::sync::mpsc;
use training_job::Kind;
use training_job::admission::definition_of;
use training_job_controller::Operator;

use crate::data::{DataDirectory, DataError, Objects};
use crate::error::RunError;
use crate::jobs::{Backend, Jobs, MAX_UNREAD_LINES, in_memory_api};
use crate::pods;
use crate::run::{AbortOnDrop, MAX_GRACE_PERIOD};

/// A cluster on this machine. Dropping it kills the processes of its pods.
pub struct LocalCluster {
    kubeconfig: String,
    node: Node,
    operator: AbortOnDrop,
    server: AbortOnDrop,
    output: mpsc::Receiver<NodeEvent>,
}

impl Jobs {
    /// Starts a cluster for jobs of these kinds, which its users create through its API on this port of 127.0.0.1, or any
    /// free port if it is 0. The configuration of the node is changed as by [`start`](Self::start). Must be called within a
    /// tokio runtime that has I/O and time enabled.
    ///
    /// With `data` the objects and the output of pods are in this directory, and a later cluster continues with them. Pods
    /// that ran are reported as lost to it, as after a reboot of their node.
    ///
    /// # Errors
    /// The directory cannot be used: see [`DataError`]. The machine lacks something that the node needs, or a port or a
    /// certificate for the API cannot be had.
    pub async fn cluster(
        self,
        mut config: NodeConfig,
        port: u16,
        data: Option<DataDirectory>,
    ) -> Result<LocalCluster, RunError> {
        let kinds: Vec<_> = self.kinds.iter().collect();
        let api = in_memory_api(kube_memory::Cluster::builder().rules(), &kinds)?;
        if let Some(directory) = data {
            config.output = Some(directory.output());
            persist(&api, directory.objects()?)?;
        }
        // A definition is served without rules if they cannot be made: the operator checks its jobs too.
        let definition =
            |kind: &Kind| definition_of(kind).unwrap_or_else(|_| kind.definition_without_rules());
        let backend = Backend::new(&api, definition, &kinds, self.options(), &mut config).await?;
        config.register = true;
        config.keep_output = true;
        let (send, output) = mpsc::channel(MAX_UNREAD_LINES);
        let node = Node::start(backend.client, config, send)?;
        LocalCluster::start(&api, port, backend.operator, node, output).await
    }
}

impl LocalCluster {
    async fn start(
        cluster: &kube_memory::Cluster,
        port: u16,
        operator: Operator,
        node: Node,
        output: mpsc::Receiver<NodeEvent>,
    ) -> Result<Self, RunError> {
        pods::serve(cluster, node.containers());
        let (kubeconfig, server) = server::start(cluster.endpoint(), port).await?;
        Ok(Self {
            kubeconfig,
            node,
            operator: AbortOnDrop(tokio::spawn(operator.run())),
            server: AbortOnDrop(tokio::spawn(server)),
            output,
        })
    }

    /// Returns the text of a kubeconfig with the address, the certificate and the token of the API. Whoever has it can
    /// run programs as the user of this process.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Returns the next event of a pod. Call it all the time: processes that write faster than it is called are slowed
    /// down. The future may be dropped and `next` called again.
    pub async fn next(&mut self) -> Option<NodeEvent> {
        self.output.recv().await
    }

    /// Ends all processes: SIGTERM, and after 5 s SIGKILL. Passes the events of that to `report`.
    pub async fn stop(mut self, mut report: impl FnMut(NodeEvent)) {
        // Pods that end now must not be replaced.
        for task in [&mut self.operator, &mut self.server] {
            task.0.abort();
            let _ = (&mut task.0).await;
        }
        let stopping = self.node.shutdown(MAX_GRACE_PERIOD);
        tokio::pin!(stopping);
        loop {
            tokio::select! {
                () = &mut stopping => break,
                Some(event) = self.output.recv() => report(event),
            }
        }
        while let Ok(event) = self.output.try_recv() {
            report(event);
        }
    }
}

/// Continues with the objects of an earlier cluster.
fn persist(cluster: &kube_memory::Cluster, objects: Objects) -> Result<(), DataError> {
    let path = objects.path().to_owned();
    let unserved = cluster
        .persist(objects)
        .map_err(|error| DataError::of_objects(&path, error))?;
    if unserved > 0 {
        tracing::warn!(
            objects = unserved,
            "the data has objects of kinds that this program does not serve; they are kept"
        );
    }
    Ok(())
}
