//! The log lines of a test.

use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use serde_json::Value;
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

/// A writer that collects the lines of a log.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

/// While a process has one subscriber, the thread that first reaches a line of log decides alone whether any thread
/// logs it, and the threads of other tests have no subscriber. With two, all subscribers are asked.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Starts to collect what this thread logs, until the guard is dropped.
    pub(crate) fn start() -> (Self, DefaultGuard) {
        LazyLock::force(&SECOND);
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        let bytes = self.0.lock();
        let lines = std::str::from_utf8(&bytes).unwrap().lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn a_line_that_another_thread_logs_first_is_collected() {
    let (log, _guard) = Log::start();
    let line = || tracing::info!("the line");
    std::thread::spawn(line).join().unwrap();
    line();
    assert_eq!(log.lines().len(), 1, "{:?}", log.lines());
}
