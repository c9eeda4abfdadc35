//! Catches the signals that end the process.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end the process.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Begins to catch the signals. Before that they end the process.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal and returns its exit code.
    pub async fn next(&mut self) -> u8 {
        tokio::select! {
            Some(()) = self.interrupt.recv() => 130,
            Some(()) = self.terminate.recv() => 143,
            Some(()) = self.hangup.recv() => 129,
            else => std::future::pending().await,
        }
    }
}
