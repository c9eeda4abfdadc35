//! `kubectl training`: jobs of a cluster for their users, with their stories and pages.
//!
//! Each view observes, derives a value, and prints it: `observe` reads a job with its pods and events, and the views are
//! functions of what it returns. [`story`] has the stories that an operator and a local run keep.

mod change;
mod complete;
mod connection;
mod events;
mod explain;
mod history;
mod job;
mod job_events;
mod list;
mod logs;
mod observe;
mod outline;
mod output;
mod patch;
mod plugin;
mod replicas;
mod report;
mod situation;
mod status;
mod stored;
pub mod story;
mod target;
#[cfg(test)]
mod tests;
mod ui;
mod wait;

use jiff::SignedDuration;
use kube::runtime::watcher;
use training_job_client::call_error::explained;

pub use connection::Connection;
pub use observe::find;
pub use outline::{Outline, outline};
pub use plugin::Kubectl;
pub use stored::StoredJob;

/// Returns a help text of the plugin.
pub(crate) fn help(text: &str) -> String {
    training_job_review::help(&text.replace("{program}", NAME))
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
        Some((verb, error)) => Err(explained(error, verb, resource)),
        None => Ok(()),
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
