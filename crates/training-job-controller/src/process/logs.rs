//! Logs on standard error.

use std::io::IsTerminal;

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
        .with_writer(std::io::stderr)
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
