//! An operator as a process (feature `process`): flags, logs, health, metrics, leader election, signals.
//!
//! ```no_run
//! # use clap::Parser;
//! # use training_job_controller::process::Flags;
//! /// Runs my jobs.
//! #[derive(Parser)]
//! struct Arguments {
//!     #[command(flatten)]
//!     flags: Flags,
//! }
//!
//! # fn kinds() -> Vec<training_job::Kind> { Vec::new() }
//! fn main() -> std::process::ExitCode {
//!     let arguments = Arguments::parse();
//!     // vec![Kind::of::<MyJob>()]
//!     training_job_controller::process::main(&arguments.flags, kinds())
//! }
//! ```
//!
//! # Behavior
//!
//! * Serves `/healthz` and `/readyz` on `--health-probe-bind-address`, `/metrics` on
//!   `--metrics-bind-address`; `/` lists them. `/readyz?verbose` has the role of the process and the missing CRDs.
//!   Metrics are in the text format 0.0.4, or in OpenMetrics for a client that accepts it. A process is ready when the
//!   first lists of all kinds are complete, or when it is a standby
//!   that could read the lease.
//! * With `--leader-elect`, reconciles jobs only while it holds the lease, and blocks every write outside the time of the
//!   lease. A process that loses the lease drops its caches and becomes a standby.
//! * Retries failed calls per job with a backoff, and waits longer if the server requests it in `Retry-After`.
//! * On SIGTERM or SIGINT, starts no further reconcile, finishes those in progress (at most 10 s), releases the lease, and
//!   ends with exit code 0. A second signal ends the process immediately.
//!
//! # Permissions
//!
//! [`rules`] returns them: on jobs, their status and their finalizers; on pods, services,
//! ConfigMaps and the other objects of jobs ([`Framework::objects`](training_job::Framework::objects)); on events; and on
//! the lease of the leader election.

mod api_metrics;
mod around;
mod client;
mod cluster;
mod credentials;
mod exposition;
mod fence;
mod flags;
mod http;
mod logs;
mod process_metrics;
mod proxy;
mod resource_usage;
mod retry_after;
mod serve;
mod stop;

use std::io;
use std::process::ExitCode;

use training_job::Kind;
use training_job::admission::{DefinitionError, check_framework};
use training_job::job::SettingDefinition;

pub use client::client;
pub use cluster::{ClusterConfig, ClusterConfigError, ClusterFlags, cluster_config};
pub use exposition::MetricDescription;
pub use flags::{CleanUp, Encoder, Flags, LogFlags, Scope};
pub use logs::start as start_logs;
pub use process_metrics::metric_descriptions;
pub use training_job_program::{Program, SettingFlags, program, rules};

/// Checks the declarations of a kind's author.
fn check_kind(kind: &Kind) -> Result<(), ProcessError> {
    // The whole definition takes time and 12 MB, so it is checked only when it is printed.
    check_framework(kind)?;
    let has_flag = |setting: &&SettingDefinition| program().settings.contains(setting);
    match kind.framework.settings.iter().find(|setting| !has_flag(setting)) {
        None => Ok(()),
        Some(setting) => Err(ProcessError::Setting {
            kind: kind.name().to_owned(),
            setting: setting.name,
        }),
    }
}

/// Checks that each kind has a name and a controller of its own. Two controllers of one name would take each other's
/// pods for theirs.
fn check_controllers(kinds: &[Kind]) -> Result<(), ProcessError> {
    for (n, kind) in kinds.iter().enumerate() {
        let is_same = |other: &&Kind| {
            let resource = (&kind.resource.group, kind.name());
            resource == (&other.resource.group, other.name())
                || kind
                    .framework
                    .controllers()
                    .any(|own| other.framework.controllers().any(|name| name == own))
        };
        if let Some(other) = kinds[..n].iter().find(is_same) {
            return Err(ProcessError::Controller {
                kinds: format!("{} and {}", other.name(), kind.name()),
                controller: kind.framework.controller,
            });
        }
    }
    Ok(())
}

/// Returns the kinds with these names. Without names, returns all kinds but those that must be named.
fn enabled(kinds: &[Kind], names: &[String], optional: &[&str]) -> Result<Vec<Kind>, ProcessError> {
    let named = names.iter().map(|name| kind_named(kinds, name));
    let named = named.collect::<Result<Vec<_>, _>>()?;
    let is_enabled = |kind: &&Kind| match names.is_empty() {
        true => !optional.contains(&kind.name()),
        false => named.contains(&kind.name()),
    };
    Ok(kinds.iter().filter(is_enabled).cloned().collect())
}

/// Returns the kind of this name. An exact match takes precedence; otherwise the first kind that matches in any case is
/// used.
fn kind_named<'a>(kinds: &'a [Kind], name: &str) -> Result<&'a str, ProcessError> {
    let known = || kinds.iter().map(Kind::name);
    let exact = known().find(|known| *known == name);
    let named = exact.or_else(|| known().find(|known| known.eq_ignore_ascii_case(name)));
    named.ok_or_else(|| ProcessError::Kind {
        name: name.to_owned(),
        known: known().collect::<Vec<_>>().join(", "),
    })
}

/// An error that prevents an operator from running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// A name in `--enable-scheme` that is not a kind of this program.
    #[error("--enable-scheme: {name:?} is not supported; must be one of {known}")]
    Kind {
        /// The given name.
        name: String,
        /// The kinds of this program.
        known: String,
    },
    /// The declarations of a kind are inconsistent.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// Two kinds with one controller name.
    #[error("{kinds} must not both have the controller {controller}; pass another name to Framework::new")]
    Controller {
        /// The names of the kinds.
        kinds: String,
        /// The name of the controller.
        controller: &'static str,
    },
    /// A setting of a kind without a flag.
    #[error(
        "{kind} reads the setting {setting}, which has no flag: call Program::kinds() and install() before the command line is read"
    )]
    Setting {
        /// The kind of job.
        kind: String,
        /// The name of the setting.
        setting: &'static str,
    },
    /// The flags of the leader election are inconsistent.
    #[error("{0}")]
    Election(&'static str),
    /// An address that cannot be bound.
    #[error("{flag} {address}: {error}")]
    Listen {
        /// The flag with the address.
        flag: &'static str,
        /// The value of the flag.
        address: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The address or the credentials of the cluster cannot be read.
    #[error("failed to find a cluster: {0}")]
    Cluster(#[from] ClusterConfigError),
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs an operator for `kinds` until a signal ends it. A program calls it at the end of its `main`.
///
/// Exit codes: 0 after a signal, 1 if it cannot run, 2 for inconsistent flags.
pub fn main(flags: &Flags, kinds: Vec<Kind>) -> ExitCode {
    logs::start(&flags.logs);
    // The API server takes ten times the CPU that the operator takes, so that a second worker would not make it faster, but
    // the wake-ups between workers would cost a sixth more CPU (6.7 s in place of 5.6 s for 1,000 jobs of 5 pods). By
    // default there would be as many workers as the node has cores.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(serve::run(flags, &kinds));
            // Background tasks must not delay the end of the process.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            match error {
                ProcessError::Kind { .. } | ProcessError::Election(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::toy::ToyJob;
    use training_job::Framework;

    fn kinds(names: &[&str]) -> Vec<Kind> {
        let kind = |name: &&str| {
            let mut kind = Kind::of::<ToyJob>();
            (*name).clone_into(&mut kind.resource.kind);
            kind
        };
        names.iter().map(kind).collect()
    }

    #[test]
    fn kinds_are_enabled_by_their_spelling_or_else_in_any_case() {
        let all = kinds(&["HOTJob", "ToyJob", "HotJob"]);
        let enabled = |names: &[&str]| -> Result<Vec<String>, ProcessError> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let enabled = super::enabled(&all, &names, &["HotJob"])?;
            Ok(enabled.into_iter().map(|kind| kind.name().to_owned()).collect())
        };
        assert_eq!(
            enabled(&[]).unwrap(),
            ["HOTJob", "ToyJob"],
            "HotJob must be named"
        );
        assert_eq!(enabled(&["hotjob"]).unwrap(), ["HOTJob"]);
        assert_eq!(enabled(&["HotJob", "toyjob"]).unwrap(), ["ToyJob", "HotJob"]);
        assert!(enabled(&["HotJobs"]).is_err());
    }

    #[test]
    fn two_kinds_with_one_controller_are_rejected() {
        let mut all = kinds(&["ToyJob", "HotJob"]);
        let error = check_controllers(&all).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ToyJob and HotJob must not both have the controller toyjob-controller; pass another name to Framework::new"
        );
        all[1].framework = Framework::new("hot", "hotjob-controller");
        check_controllers(&all).unwrap();
    }

    #[test]
    fn rules_have_one_entry_for_each_group_and_set_of_verbs() {
        let rules = rules(&[Kind::of::<ToyJob>()]);
        let text: Vec<String> = rules
            .iter()
            .map(|rule| serde_json::to_string(rule).unwrap())
            .collect();
        assert_eq!(
            text,
            [
                r#"{"apiGroups":["example.com"],"resources":["toyjobs"],"verbs":["list","watch"]}"#,
                r#"{"apiGroups":["example.com"],"resources":["toyjobs"],"verbs":["delete"]}"#,
                r#"{"apiGroups":["example.com"],"resources":["toyjobs/status"],"verbs":["patch"]}"#,
                r#"{"apiGroups":["example.com"],"resources":["toyjobs/finalizers"],"verbs":["update"]}"#,
                r#"{"apiGroups":[""],"resources":["pods","services","configmaps"],"verbs":["get","list","watch","create","patch","delete"]}"#,
                r#"{"apiGroups":["example.com"],"resources":["queues"],"verbs":["get","list","watch","create","patch","delete"]}"#,
                r#"{"apiGroups":[""],"resources":["events"],"verbs":["create","patch"]}"#,
            ]
        );
    }
}
