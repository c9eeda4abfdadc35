//! `kubectl training`: jobs of a cluster for their users.
//!
//! Each view observes, derives a value, and prints it: `observe` reads a job with its pods and events, and the views are
//! functions of what it returns.

pub(crate) mod change;
pub(crate) mod complete;
mod connection;
pub(crate) mod events;
mod history;
mod job;
mod job_events;
pub(crate) mod list;
pub(crate) mod logs;
mod observe;
pub(crate) mod outline;
mod output;
mod patch;
mod replicas;
pub(crate) mod report;
mod situation;
pub(crate) mod status;
mod stored;
mod target;
#[cfg(test)]
mod tests;
pub(crate) mod ui;
pub(crate) mod wait;

use jiff::SignedDuration;
use kube::runtime::watcher;

pub(crate) use connection::{Connection, ConnectionArgs};
pub(crate) use job::ViewArgs;
pub(crate) use observe::find;
pub(crate) use stored::StoredJob;

/// Returns a help text of the plugin.
pub(crate) fn help(text: &str) -> String {
    crate::help::help(&text.replace("{program}", NAME))
}

/// The name in help texts and messages.
pub(crate) const NAME: &str = "kubectl training";

/// Parses a duration such as `15s` or `1h30m`.
fn duration(text: &str) -> Result<SignedDuration, String> {
    let parsed = text
        .parse::<SignedDuration>()
        .ok()
        .filter(|duration| !duration.is_negative());
    parsed.ok_or_else(|| "must be a duration such as 15s or 1h30m".to_owned())
}

/// Returns the error of a watch if it is about rights. A watch continues by itself after other errors.
fn watch_error(error: watcher::Error, resource: &str) -> anyhow::Result<()> {
    let denied = match error {
        watcher::Error::InitialListFailed(error) if observe::is_forbidden(&error) => Some(("list", error)),
        watcher::Error::WatchStartFailed(error) if observe::is_forbidden(&error) => Some(("watch", error)),
        _ => None,
    };
    match denied {
        Some((verb, error)) => Err(observe::explained(error, verb, resource)),
        None => Ok(()),
    }
}
