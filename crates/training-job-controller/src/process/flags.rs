//! The command line of an operator.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

use training_job::api::{CleanPodPolicy, RestartScope};
use training_job::job::Accelerators;
use training_job_program::{SettingFlags, all_kinds_but, program, variable};

use crate::FinishedJobs;

/// Maximum number of concurrent reconciles per controller thread. Reconciles wait for the API server most of the time.
pub(super) const JOBS_PER_THREAD: usize = 16;

/// Maximum number of writes in flight per controller thread. Decision 15 has the measurement.
pub(super) const CALLS_PER_THREAD: usize = 16;

/// The flags of an operator, for `#[command(flatten)]` in a program's own command line.
///
/// Names and defaults are those of the Go training operator v1.8.1 where it has the flag. The default of
/// `--leader-election-id`, and the variables by which flags can be set, follow from the [`Program`](super::Program).
#[derive(Clone, Debug, Args)]
pub struct Flags {
    /// Path of the kubeconfig [default: $USE_KUBE_CONFIG, $KUBECONFIG, ~/.kube/config, or the service account].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Run only the jobs of this namespace [default: all namespaces].
    #[arg(long, env = "KUBEFLOW_NAMESPACE", value_name = "NAME", value_parser = namespace)]
    pub namespace: Option<String>,

    /// Kinds of job to run; all if empty.
    #[arg(
        long = "enable-scheme",
        help = enable_scheme_help(),
        env = variable("ENABLE_SCHEME"),
        value_name = "KIND",
        value_delimiter = ','
    )]
    pub enable_scheme: Vec<String>,

    /// Number of controller threads. Each allows 16 concurrent reconciles, and 16 writes in flight.
    #[arg(long, env = variable("CONTROLLER_THREADS"), value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub controller_threads: u16,

    /// Restart scope of jobs that do not set one; Replica restores the behavior of the Go operator [default: depends on the
    /// kind of job].
    #[arg(
        long,
        env = variable("DEFAULT_RESTART_SCOPE"),
        value_name = "SCOPE",
        ignore_case = true
    )]
    pub default_restart_scope: Option<Scope>,

    /// cleanPodPolicy of jobs that do not set one; None restores the behavior of the Go operator.
    #[arg(
        long,
        env = variable("DEFAULT_CLEAN_POD_POLICY"),
        value_name = "POLICY",
        default_value = "Running",
        ignore_case = true
    )]
    pub default_clean_pod_policy: CleanUp,

    /// Force the deletion of pods that are still terminating this long after their grace period, for example because their
    /// node is down. If the node is up, their processes may continue to run [default: never].
    #[arg(long, env = variable("FORCE_DELETE_AFTER"), value_name = "TIME", value_parser = duration)]
    pub force_delete_after: Option<Duration>,

    /// DNS domain of the cluster; a search domain in the pods of jobs with the layout Compact.
    #[arg(long, env = variable("CLUSTER_DOMAIN"), value_name = "NAME", default_value = "cluster.local",
          value_parser = domain)]
    pub cluster_domain: String,

    /// Enable leader election; processes that are not the leader stand by.
    #[arg(long, env = variable("LEADER_ELECT"), value_name = "BOOL", default_value_t = false,
          num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    pub leader_elect: bool,

    /// Name of the Lease for leader election.
    #[arg(
        long,
        env = variable("LEADER_ELECTION_ID"),
        value_name = "NAME",
        default_value = program().lease.as_str()
    )]
    pub leader_election_id: String,

    /// Namespace of the Lease [default: $MY_POD_NAMESPACE, or the namespace of the kubeconfig or service account].
    #[arg(
        long,
        env = variable("LEADER_ELECTION_NAMESPACE"),
        value_name = "NAME"
    )]
    pub leader_election_namespace: Option<String>,

    /// Time after the last renewal at which a standby takes over the Lease; whole seconds.
    #[arg(long, env = variable("LEADER_ELECTION_LEASE_DURATION"), value_name = "TIME", default_value = "15s",
          value_parser = duration)]
    pub leader_election_lease_duration: Duration,

    /// Time for which the leader retries a failed renewal before it gives up the Lease; less than the lease duration.
    #[arg(long, env = variable("LEADER_ELECTION_RENEW_DEADLINE"), value_name = "TIME", default_value = "10s",
          value_parser = duration)]
    pub leader_election_renew_deadline: Duration,

    /// Interval at which the leader renews the Lease and standbys read it; less than the renew deadline.
    #[arg(long, env = variable("LEADER_ELECTION_RETRY_PERIOD"), value_name = "TIME", default_value = "2s",
          value_parser = duration)]
    pub leader_election_retry_period: Duration,

    /// Address of the endpoint /metrics; 0 disables it.
    #[arg(
        long,
        env = variable("METRICS_BIND_ADDRESS"),
        value_name = "ADDRESS",
        default_value = ":8080"
    )]
    pub metrics_bind_address: String,

    /// Address of the endpoints /healthz and /readyz; 0 disables them.
    #[arg(
        long,
        env = variable("HEALTH_PROBE_BIND_ADDRESS"),
        value_name = "ADDRESS",
        default_value = ":8081"
    )]
    pub health_probe_bind_address: String,

    /// Scheduler for gang scheduling: volcano, or the name of a scheduler with the coscheduling plugin. Each job gets a
    /// PodGroup, and its pods are bound all together or not at all [default: none].
    #[arg(
        long,
        env = variable("GANG_SCHEDULER_NAME"),
        value_name = "NAME",
        default_value = ""
    )]
    pub gang_scheduler_name: String,

    /// Additions to containers that request a device. Set by the program; there is no flag.
    #[arg(skip)]
    pub accelerators: Accelerators,

    /// Keeps the jobs that have finished. The program sets it; it has no flag.
    #[arg(skip)]
    pub finished_jobs: Option<Arc<dyn FinishedJobs>>,

    /// The settings of the kinds.
    #[command(flatten)]
    pub settings: SettingFlags,

    /// The format and level of the logs.
    #[command(flatten)]
    pub logs: LogFlags,
}

/// The flags for logs: those of zap, the Go operator's logger.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogFlags {
    /// Presets: true for text at level debug, false for JSON at level info [default: text at level info].
    #[arg(long, env = variable("ZAP_DEVEL"), value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set)]
    pub zap_devel: Option<bool>,

    /// Format of the logs; console is text.
    #[arg(long, env = variable("ZAP_ENCODER"), value_name = "FORM")]
    pub zap_encoder: Option<Encoder>,

    /// Log level: debug, info, error, panic, or a number above 0, where a higher number logs more. RUST_LOG takes
    /// precedence.
    #[arg(long, env = variable("ZAP_LOG_LEVEL"), value_name = "LEVEL", value_parser = log_level)]
    pub zap_log_level: Option<tracing::level_filters::LevelFilter>,

    /// Accepted without effect, because logs have no stack traces.
    #[arg(long, env = variable("ZAP_STACKTRACE_LEVEL"), value_name = "LEVEL")]
    pub zap_stacktrace_level: Option<String>,

    /// Accepted without effect, because times are always RFC 3339.
    #[arg(long, env = variable("ZAP_TIME_ENCODING"), value_name = "FORM")]
    pub zap_time_encoding: Option<String>,
}

/// A format of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Encoder {
    /// One JSON object per line.
    Json,
    /// Text.
    Console,
}

/// The replicas that restart together with a failed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Scope {
    /// Only the failed replica.
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

/// The pods that are deleted at the end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum CleanUp {
    /// Pods that still run.
    Running,
    /// All pods, and with them their logs.
    All,
    /// No pods.
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

/// Parses a duration in Go's notation, such as `15s` or `1m30s`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a duration such as 15s or 1m30s".to_owned();
    let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(span).map_err(|_| wrong())
}

/// Parses a DNS domain, and removes the final dot.
fn domain(text: &str) -> Result<String, String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    match kube_schema::names::subdomain(text) {
        None => Ok(text.to_owned()),
        Some(_) => Err("must be a DNS domain such as cluster.local".to_owned()),
    }
}

/// Parses the name of a namespace; an empty one stands for all namespaces, as in the Go operator.
fn namespace(text: &str) -> Result<String, String> {
    match text.is_empty() || kube_schema::names::label_1123(text).is_none() {
        true => Ok(text.to_owned()),
        false => Err("must be the name of a namespace: lower-case letters, digits and -".to_owned()),
    }
}

/// Parses a level of zap: a name, or logr's verbosity from 1.
fn log_level(text: &str) -> Result<tracing::level_filters::LevelFilter, String> {
    use tracing::level_filters::LevelFilter as Level;
    match text.to_lowercase().as_str() {
        "debug" | "1" => Ok(Level::DEBUG),
        "info" => Ok(Level::INFO),
        "warn" => Ok(Level::WARN),
        "error" | "dpanic" | "panic" | "fatal" => Ok(Level::ERROR),
        number if number.parse::<u8>().is_ok_and(|n| n > 1) => Ok(Level::TRACE),
        _ => Err("must be debug, info, error, panic or a number above 0".to_owned()),
    }
}

/// Returns the help text of `--enable-scheme`.
fn enable_scheme_help() -> String {
    let example = program().kind_names.first();
    let example = example
        .map(|kind| format!(", such as {kind}"))
        .unwrap_or_default();
    let default = all_kinds_but(program().optional_kinds);
    format!("Kind of job to run{example}; can be repeated [default: {default}]")
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
