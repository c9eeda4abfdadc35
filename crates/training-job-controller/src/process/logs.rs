//! Logs on standard error. A line that cannot be written there is dropped and counted, because neither a full disk nor a
//! reader that has stopped may keep a job from running.

use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use super::flags::{Encoder, LogFlags};

/// Starts logging. [`main`](super::main) calls this first. Further calls in one process do nothing.
pub fn start(flags: &LogFlags) {
    let (encoder, level) = match flags.zap_devel {
        Some(true) => (Encoder::Console, LevelFilter::DEBUG),
        Some(false) => (Encoder::Json, LevelFilter::INFO),
        None => (Encoder::Console, LevelFilter::INFO),
    };
    let level = flags.zap_log_level.unwrap_or(level);
    // The lower libraries log little of use to an operator's user.
    let directives = format!("{},{level}", "hyper=warn,rustls=warn,tower=warn,hyper_util=warn");
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives));
    let logs = tracing_subscriber::fmt()
        .with_writer(|| Lines)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_env_filter(filter);
    let started = match flags.zap_encoder.unwrap_or(encoder) {
        Encoder::Json => logs.json().flatten_event(true).with_span_list(false).try_init(),
        Encoder::Console => logs.try_init(),
    };
    if started.is_err() {
        tracing::debug!("logging has already been started");
    }
}

/// The number of lines that could not be written.
static LOST: LazyLock<Counter> = LazyLock::new(Counter::default);

/// The state of standard error: true while its reader has stopped.
static IS_STUCK: Mutex<bool> = Mutex::new(false);

/// The time that a reader has to make room, in milliseconds. One that has stopped gets none until it reads again.
const MAX_WAIT_MILLISECONDS: i64 = 100;

/// The largest write to a pipe that does not wait if the pipe has room (`PIPE_BUF`).
const MAX_WRITE_BYTES: usize = 4096;

/// Returns the number of lines that could not be written.
pub(super) fn lost() -> Counter {
    LOST.clone()
}

/// Writes each line at once, and never fails or waits for long.
struct Lines;

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut is_stuck = IS_STUCK.lock();
        let written = write_line(io::stderr(), line, &mut is_stuck);
        if written.is_err() {
            LOST.inc();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_line(mut to: impl Write + std::os::fd::AsFd, line: &[u8], is_stuck: &mut bool) -> io::Result<()> {
    for part in line.chunks(MAX_WRITE_BYTES) {
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: if *is_stuck {
                0
            } else {
                MAX_WAIT_MILLISECONDS * 1_000_000
            },
        };
        let ready = poll(&mut [PollFd::new(&to, PollFlags::OUT)], Some(&wait))?;
        *is_stuck = ready == 0;
        if *is_stuck {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        to.write_all(part)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_reader_that_has_stopped_or_is_gone_costs_lines_only() {
        let (reader, writer) = io::pipe().unwrap();
        let mut is_stuck = false;
        let line = [b'x'; 1000];
        let written = (0..).find(|_| write_line(&writer, &line, &mut is_stuck).is_err());
        assert!(written > Some(0) && is_stuck, "the pipe is full");
        (&reader).read_exact(&mut [0; 10_000]).unwrap();
        assert!(write_line(&writer, &line, &mut is_stuck).is_ok());
        assert!(!is_stuck, "the reader reads again");
        drop(reader);
        let broken = write_line(&writer, &line, &mut is_stuck).unwrap_err();
        assert_eq!(broken.kind(), io::ErrorKind::BrokenPipe);
    }
}
