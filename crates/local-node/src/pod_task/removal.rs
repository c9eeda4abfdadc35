//! Delivers a pod's final status after its processes have ended, and removes the pod from the API when it is deleted.

use std::pin::pin;
use std::time::Duration;

use super::{Command, PodTask};
use crate::agent::Agent;
use crate::api::{ApiError, PodRef};
use crate::report::retries;

/// The timeout of the final status when the agent stops.
const FINAL_STATUS_TIMEOUT: Duration = Duration::from_secs(3);

impl PodTask {
    /// Delivers the final status, and removes the pod from the API once it is being deleted. Returns false if the agent
    /// stops before.
    pub(super) async fn await_deletion(mut self) -> bool {
        if self.shutting_down {
            let delivered = tokio::time::timeout(FINAL_STATUS_TIMEOUT, self.deliver_final_status()).await;
            return delivered.is_ok() && (self.deleted || self.gone);
        }
        // The final status is delivered first, because the user who deletes the pod may want to see how it ended.
        loop {
            if self.gone {
                return true;
            }
            tokio::select! {
                () = self.reporter.delivered() => break,
                command = self.commands.recv() => self.handle_after_end(command),
            }
        }
        while !self.deleted {
            if self.gone || self.shutting_down {
                return self.gone;
            }
            let command = self.commands.recv().await;
            self.handle_after_end(command);
        }
        let delete = remove(&self.agent, &self.at);
        let mut delete = pin!(delete);
        loop {
            tokio::select! {
                () = &mut delete => return true,
                command = self.commands.recv() => if matches!(command, None | Some(Command::Gone)) { return true },
            }
        }
    }

    async fn deliver_final_status(&mut self) {
        self.reporter.delivered().await;
        if self.deleted {
            remove(&self.agent, &self.at).await;
        }
    }

    /// Handles a command that arrives after the end of the processes.
    fn handle_after_end(&mut self, command: Option<Command>) {
        match command {
            None | Some(Command::Gone) => self.gone = true,
            Some(Command::Shutdown(_)) => self.shutting_down = true,
            Some(Command::Changed(pod)) => self.deleted |= pod.metadata.deletion_timestamp.is_some(),
        }
    }
}

/// Removes the pod from the API, with retries until it succeeds.
async fn remove(agent: &Agent, pod: &PodRef) {
    for delay in retries() {
        match agent.api.delete(pod).await {
            Ok(()) | Err(ApiError::Gone) => return,
            Err(error) => {
                error.before_retry(&pod.name, "delete the pod", delay).await;
            }
        }
    }
}
