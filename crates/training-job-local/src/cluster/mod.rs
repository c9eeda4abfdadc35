//! A cluster on this machine: the in-memory API over HTTPS, the operator and a node.

mod credentials;
mod pods;
mod server;

use local_node::{Node, NodeEvent};
use tokio::sync::mpsc;
use training_job_controller::Operator;

use crate::error::RunError;
use crate::run::{AbortOnDrop, MAX_GRACE_PERIOD};

/// A cluster on this machine. Dropping it kills the processes of its pods.
pub struct LocalCluster {
    kubeconfig: String,
    node: Node,
    operator: AbortOnDrop,
    server: AbortOnDrop,
    output: mpsc::Receiver<NodeEvent>,
}

impl LocalCluster {
    pub(crate) async fn start(
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
