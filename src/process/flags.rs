//! The command line of an operator.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

use crate::api::{CleanPodPolicy, RestartScope};
use crate::job::Accelerators;

use super::program::{enable_scheme_help, program, variable};
use super::settings::SettingFlags;

/// How many jobs are in work at once for each controller thread: reconciles wait for the API server most
/// of the time.
pub(super) const JOBS_PER_THREAD: usize = 16;

/// How many creates and deletes are under way at once for each controller thread.
pub(super) const CALLS_PER_THREAD: usize = 64;

/// The flags of an operator, for `#[command(flatten)]` in a program's own command line.
///
/// Names and defaults are those of the Go training operator v1.8.1 where it has the flag. The default of
/// `--leader-election-id`, and the variables by which flags can be set, follow from the [`Program`](super::Program).
#[derive(Clone, Debug, Args)]
pub struct Flags {
    /// The file that tells how to reach the cluster [default: $USE_KUBE_CONFIG, $KUBECONFIG, ~/.kube/config, or the
    /// service account].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The one namespace whose jobs are run [default: all namespaces].
    #[arg(long, env = "KUBEFLOW_NAMESPACE", value_name = "NAME")]
    pub namespace: Option<String>,

    /// The kinds of job to run; all if empty.
    #[arg(
        long = "enable-scheme",
        help = enable_scheme_help(),
        env = variable("ENABLE_SCHEME"),
        value_name = "KIND",
        value_delimiter = ','
    )]
    pub enable_scheme: Vec<String>,

    /// How many times 16 jobs may be in work at once, with up to 64 calls under way if the API server takes so many.
    #[arg(long, env = variable("CONTROLLER_THREADS"), value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub controller_threads: u16,

    /// What restarts with a failed replica where the job does not say; Replica as the Go operator has it
    /// [default: what suits the kind of job].
    #[arg(
        long,
        env = variable("DEFAULT_RESTART_SCOPE"),
        value_name = "SCOPE",
        ignore_case = true
    )]
    pub default_restart_scope: Option<Scope>,

    /// Which pods go at the end of a job that does not say; None as the Go operator has it.
    #[arg(
        long,
        env = variable("DEFAULT_CLEAN_POD_POLICY"),
        value_name = "POLICY",
        default_value = "Running",
        ignore_case = true
    )]
    pub default_clean_pod_policy: CleanUp,

    /// Delete a pod by force so long after its grace period if it is still terminating, as on a node that is down. Its
    /// processes may run on if the node does [default: never].
    #[arg(long, env = variable("FORCE_DELETE_AFTER"), value_name = "TIME", value_parser = duration)]
    pub force_delete_after: Option<Duration>,

    /// The domain of the cluster's DNS; pods of jobs with the layout Compact search it for their names.
    #[arg(long, env = variable("CLUSTER_DOMAIN"), value_name = "NAME", default_value = "cluster.local",
          value_parser = domain)]
    pub cluster_domain: String,

    /// Whether operators that run at the same time elect one that works; the others stand by.
    #[arg(long, env = variable("LEADER_ELECT"), value_name = "BOOL", default_value_t = false,
          num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    pub leader_elect: bool,

    /// The name of the Lease by which they elect.
    #[arg(
        long,
        env = variable("LEADER_ELECTION_ID"),
        value_name = "NAME",
        default_value = program().lease.as_str()
    )]
    pub leader_election_id: String,

    /// Its namespace [default: $MY_POD_NAMESPACE, or the operator's own].
    #[arg(
        long,
        env = variable("LEADER_ELECTION_NAMESPACE"),
        value_name = "NAME"
    )]
    pub leader_election_namespace: Option<String>,

    /// How long the others wait for a leader that is silent; whole seconds.
    #[arg(long, env = variable("LEADER_ELECTION_LEASE_DURATION"), value_name = "TIME", default_value = "15s",
          value_parser = duration)]
    pub leader_election_lease_duration: Duration,

    /// How long a leader tries to renew its lease before it gives up; less than the lease duration.
    #[arg(long, env = variable("LEADER_ELECTION_RENEW_DEADLINE"), value_name = "TIME", default_value = "10s",
          value_parser = duration)]
    pub leader_election_renew_deadline: Duration,

    /// How often the lease is renewed, or looked at; less than the renew deadline.
    #[arg(long, env = variable("LEADER_ELECTION_RETRY_PERIOD"), value_name = "TIME", default_value = "2s",
          value_parser = duration)]
    pub leader_election_retry_period: Duration,

    /// Where /metrics is served; 0 for nowhere.
    #[arg(
        long,
        env = variable("METRICS_BIND_ADDRESS"),
        value_name = "ADDRESS",
        default_value = ":8080"
    )]
    pub metrics_bind_address: String,

    /// Where /healthz and /readyz are served; 0 for nowhere.
    #[arg(
        long,
        env = variable("HEALTH_PROBE_BIND_ADDRESS"),
        value_name = "ADDRESS",
        default_value = ":8081"
    )]
    pub health_probe_bind_address: String,

    /// The scheduler that binds each job's pods together or not at all, told by a PodGroup: volcano, or the name of one with
    /// the coscheduling plugin [default: none].
    #[arg(
        long,
        env = variable("GANG_SCHEDULER_NAME"),
        value_name = "NAME",
        default_value = ""
    )]
    pub gang_scheduler_name: String,

    /// What containers get that ask for a device. No flag: a program that has it from somewhere sets it.
    #[arg(skip)]
    pub accelerators: Accelerators,

    /// The kinds' own settings.
    #[command(flatten)]
    pub settings: SettingFlags,

    /// How logs and their amount are chosen.
    #[command(flatten)]
    pub logs: LogFlags,
}

/// The flags for logs: those of zap, the Go operator's logger.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogFlags {
    /// true: text, all decisions and details; false: JSON, all decisions [default: text, all decisions].
    #[arg(long, env = variable("ZAP_DEVEL"), value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set)]
    pub zap_devel: Option<bool>,

    /// The form of the logs: console is text.
    #[arg(long, env = variable("ZAP_ENCODER"), value_name = "FORM")]
    pub zap_encoder: Option<Encoder>,

    /// How much is logged: debug, info, error, panic, or a number above 0 for ever more detail. RUST_LOG, if
    /// set, goes before it.
    #[arg(long, env = variable("ZAP_LOG_LEVEL"), value_name = "LEVEL", value_parser = log_level)]
    pub zap_log_level: Option<tracing::level_filters::LevelFilter>,

    /// Accepted; there are no stack traces.
    #[arg(long, env = variable("ZAP_STACKTRACE_LEVEL"), value_name = "LEVEL")]
    pub zap_stacktrace_level: Option<String>,

    /// Accepted; times are RFC 3339.
    #[arg(long, env = variable("ZAP_TIME_ENCODING"), value_name = "FORM")]
    pub zap_time_encoding: Option<String>,
}

/// A form of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Encoder {
    /// One JSON object a line.
    Json,
    /// Text.
    Console,
}

/// What restarts together with a failed replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Scope {
    /// The replica alone.
    Replica,
    /// All replicas of its role.
    Role,
    /// All replicas of the job.
    Job,
}

impl From<Scope> for RestartScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Replica => Self::Replica,
            Scope::Role => Self::Role,
            Scope::Job => Self::Job,
        }
    }
}

/// Which pods go at the end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum CleanUp {
    /// Those that still run.
    Running,
    /// All, and their logs.
    All,
    /// None.
    None,
}

impl From<CleanUp> for CleanPodPolicy {
    fn from(pods: CleanUp) -> Self {
        match pods {
            CleanUp::Running => Self::Running,
            CleanUp::All => Self::All,
            CleanUp::None => Self::None,
        }
    }
}

/// A time as Go writes it, such as `15s` or `1m30s`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time; write one such as 15s or 1m30s");
    let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(span).map_err(|_| wrong())
}

/// A domain as names of pods can end with it, without the dot of the root.
fn domain(text: &str) -> Result<String, String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    match kube_syntax::names::subdomain(text) {
        None => Ok(text.to_owned()),
        Some(_) => Err(format!("{text:?} is no domain; write one such as cluster.local")),
    }
}

/// A level as zap has them: names, or the verbosity of logr from 1 on.
fn log_level(text: &str) -> Result<tracing::level_filters::LevelFilter, String> {
    use tracing::level_filters::LevelFilter as Level;
    match text.to_lowercase().as_str() {
        "debug" | "1" => Ok(Level::DEBUG),
        "info" => Ok(Level::INFO),
        "warn" => Ok(Level::WARN),
        "error" | "dpanic" | "panic" | "fatal" => Ok(Level::ERROR),
        number if number.parse::<u8>().is_ok_and(|n| n > 1) => Ok(Level::TRACE),
        _ => Err(format!(
            "{text:?} is no level; write debug, info, error, panic or a number above 0"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_writes_them() {
        assert_eq!(duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert!(duration("15").is_err() && duration("-3s").is_err());
    }

    #[test]
    fn a_domain_has_no_dot_at_its_end() {
        assert_eq!(domain("cluster.local."), Ok("cluster.local".to_owned()));
        assert_eq!(domain("k8s.example.com"), Ok("k8s.example.com".to_owned()));
        assert!(domain("").is_err() && domain("Cluster_local").is_err());
    }
}
