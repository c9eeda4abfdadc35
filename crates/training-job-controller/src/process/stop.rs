//! Signals that end the process.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A receiver of the request to stop; clones receive the same request.
#[derive(Clone, Debug)]
pub(super) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for SIGTERM and SIGINT from now on. The second signal ends the process immediately, with the exit code
    /// of that signal.
    pub(super) fn on_signals() -> std::io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            loop {
                let (name, code) = tokio::select! {
                    Some(()) = terminate.recv() => ("SIGTERM", 143),
                    Some(()) = interrupt.recv() => ("SIGINT", 130),
                    else => return,
                };
                if *sender.borrow() {
                    std::process::exit(code);
                }
                tracing::info!(
                    signal = name,
                    "operator stopping: finishes the reconciles in progress; a second signal ends the process immediately"
                );
                // A standby ends at once, so the line comes first.
                sender.send_replace(true);
            }
        });
        Ok(Self(receiver))
    }

    /// Completes when the process must stop.
    pub(super) async fn stopped(mut self) {
        if self.0.wait_for(|stop| *stop).await.is_err() {
            // No further signal can arrive.
            std::future::pending::<()>().await;
        }
    }
}
