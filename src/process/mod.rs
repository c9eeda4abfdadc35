//! An operator as a process (feature `process`): flags, logs, health, metrics, leader election, signals.
//!
//! ```no_run
//! # use clap::Parser;
//! # use training_job::process::{Flags, Kinds};
//! /// Runs my jobs.
//! #[derive(Parser)]
//! struct Arguments {
//!     #[command(flatten)]
//!     flags: Flags,
//! }
//!
//! # fn kinds() -> Kinds { Kinds::default() }
//! fn main() -> std::process::ExitCode {
//!     let arguments = Arguments::parse();
//!     // Kinds::default().with::<MyJob>()
//!     training_job::process::main(&arguments.flags, kinds())
//! }
//! ```
//!
//! # Behaviour
//!
//! * Serves `/healthz` and `/readyz` on `--health-probe-bind-address`, `/metrics` on
//!   `--metrics-bind-address`. A process is ready when the first lists of all kinds are complete, or when it is a standby
//!   that could read the lease.
//! * With `--leader-elect`, works only while it holds the lease, and lets no write through that the
//!   lease does not cover. A process that loses the lease drops its caches and becomes a standby.
//! * Retries by itself, per job with a backoff, and waits for longer where a refusal's
//!   `Retry-After` asks for it.
//! * On SIGTERM or SIGINT starts nothing more, finishes what is under way (10 s at most), gives the
//!   lease back, and ends with code 0. A second signal ends it at once.
//!
//! # Permissions
//!
//! For each kind: list, watch and delete on the jobs, patch on their status, update on their
//! finalizers; get, list, watch, create, patch and delete on pods, services and ConfigMaps, and on what else its jobs have
//! ([`Framework::objects`](crate::Framework::objects)); create on events. For the election: get, create and update on leases in the lease's namespace.

mod client;
mod cluster;
mod fence;
mod flags;
mod http;
mod logs;
mod program;
mod retry_after;
mod serve;
mod settings;
mod stop;

use std::io;
use std::process::ExitCode;

use crate::admission::{self, DefinitionError, check};
use crate::controller::Operator;
use crate::job::{SettingDefinition, TrainingJob};

pub use cluster::{ClusterConfigError, cluster_config};
pub use flags::{CleanUp, Encoder, Flags, LogFlags, Scope};
pub use logs::start as start_logs;
pub use program::Program;
use program::program;
pub use settings::SettingFlags;

/// The kinds of job that an operator can run.
#[derive(Clone, Debug, Default)]
pub struct Kinds(Vec<Kind>);

#[derive(Clone, Debug)]
struct Kind {
    name: String,
    manage: fn(Operator) -> Operator,
    framework: fn() -> Result<(), DefinitionError>,
    settings: &'static [SettingDefinition],
}

impl Kind {
    /// Finds mistakes of the kind's author.
    fn check(&self) -> Result<(), ProcessError> {
        // Not the whole definition, which takes a while and 12 MB to make: it is looked at when it is printed.
        (self.framework)()?;
        let has_flag = |setting: &&SettingDefinition| program().settings.contains(setting);
        match self.settings.iter().find(|setting| !has_flag(setting)) {
            None => Ok(()),
            Some(setting) => Err(ProcessError::Setting {
                kind: self.name.clone(),
                setting: setting.name,
            }),
        }
    }
}

impl Kinds {
    /// Adds the jobs of type `J`.
    #[must_use]
    pub fn with<J: TrainingJob>(mut self) -> Self {
        self.0.push(Kind {
            name: J::kind(&()).into_owned(),
            manage: Operator::manage::<J>,
            framework: check::framework::<J>,
            settings: J::FRAMEWORK.settings,
        });
        self
    }

    /// Those that `--enable-scheme` names; all if it names none.
    fn enabled(&self, names: &[String]) -> Result<Vec<Kind>, ProcessError> {
        let named = names.iter().map(|name| self.named(name));
        let named = named.collect::<Result<Vec<_>, _>>()?;
        let wanted = |kind: &&Kind| names.is_empty() || named.contains(&kind.name.as_str());
        Ok(self.0.iter().filter(wanted).cloned().collect())
    }

    /// The kind that a name means, whatever its case. Two kinds may be spelt alike but for case: of these the first is meant by
    /// another spelling.
    fn named(&self, name: &str) -> Result<&str, ProcessError> {
        let known = || self.0.iter().map(|kind| kind.name.as_str());
        let spelt_so = known().find(|known| *known == name);
        let named = spelt_so.or_else(|| known().find(|known| known.eq_ignore_ascii_case(name)));
        named.ok_or_else(|| ProcessError::Kind {
            name: name.to_owned(),
            known: known().collect::<Vec<_>>().join(", "),
        })
    }
}

/// Prints the definition of the kind `J`, to be installed in a cluster: the rest of a program's `crd` command.
///
/// Exit codes: 0, or 1 if what the kind declares does not fit together; the reason is printed to standard error.
pub fn print_definition<J: TrainingJob>() -> ExitCode {
    let definition = admission::definition::<J>().map_err(|error| error.to_string());
    match definition.and_then(|definition| admission::manifest(&definition)) {
        Ok(manifest) => {
            print!("{manifest}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Why an operator cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// A kind that is not here.
    #[error("--enable-scheme: {name:?} is not supported; known are {known}")]
    Kind {
        /// What was asked for.
        name: String,
        /// The kinds that are here.
        known: String,
    },
    /// What a kind declares does not fit together.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// A setting of a kind that has no flag.
    #[error(
        "{kind} reads the setting {setting}, which has no flag: call Program::kind::<{kind}>() and set() before the command line is read"
    )]
    Setting {
        /// The kind.
        kind: String,
        /// The setting.
        setting: &'static str,
    },
    /// Times that do not fit together.
    #[error("{0}")]
    Election(&'static str),
    /// An address that cannot be had.
    #[error("{flag} {address}: {error}")]
    Listen {
        /// The flag that names it.
        flag: &'static str,
        /// The address.
        address: String,
        /// Why not.
        error: io::Error,
    },
    /// The cluster's address or credentials cannot be read.
    #[error("failed to find a cluster: {0}; set --kubeconfig or KUBECONFIG")]
    Config(String),
    /// No client for the cluster can be made.
    #[error("failed to create a client for the cluster: {0}")]
    Client(#[source] kube::Error),
    /// Something of the process itself.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs an operator for `kinds` until a signal ends it: the rest of a program's `main`.
///
/// Exit codes: 0 after a signal, 1 if it cannot run, 2 for flags that do not fit together.
pub fn main(flags: &Flags, kinds: Kinds) -> ExitCode {
    logs::start(&flags.logs);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(serve::run(flags, &kinds));
            // What is still under way in the background does not hold the process.
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

    fn kinds(names: &[&str]) -> Kinds {
        let kind = |name: &&str| Kind {
            name: (*name).to_owned(),
            manage: |operator| operator,
            framework: || Ok(()),
            settings: &[],
        };
        Kinds(names.iter().map(kind).collect())
    }

    #[test]
    fn kinds_are_enabled_by_their_spelling_or_else_in_any_case() {
        let all = kinds(&["HOTJob", "ToyJob", "HotJob"]);
        let enabled = |names: &[&str]| -> Result<Vec<String>, ProcessError> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let enabled = all.enabled(&names)?;
            Ok(enabled.into_iter().map(|kind| kind.name).collect())
        };
        assert_eq!(enabled(&[]).unwrap(), ["HOTJob", "ToyJob", "HotJob"]);
        assert_eq!(enabled(&["hotjob"]).unwrap(), ["HOTJob"]);
        assert_eq!(enabled(&["HotJob", "toyjob"]).unwrap(), ["ToyJob", "HotJob"]);
        assert!(enabled(&["HotJobs"]).is_err());
    }
}
