//! The main part of a process, between parsing its flags and its end.

use std::sync::Arc;

use ::http::header::USER_AGENT;
use k8s_controller::LeaderElection;
use kube::Client;
use kube_follow::Gate;
use parking_lot::Mutex;
use tokio::sync::watch;
use tower::util::AndThenLayer;

use crate::{Operator, Options};
use training_job::Kind;
use training_job::job::{GangScheduler, Settings};
use training_job_program::{grant_command, grant_logs_command, program};

use super::around::Around;
use super::client::{Versions, no_answer, refusal};
use super::cluster::{ClusterConfig, ClusterFlags, cluster_config, fallback};
use super::fence::Fence;
use super::flags::{CALLS_PER_THREAD, Flags, JOBS_PER_THREAD};
use super::http::Readiness;
use super::process_metrics::{ProcessMetrics, VERSION};
use super::retry_after::copied;
use super::stop::Stop;
use super::{ProcessError, check_controllers, check_kind, client, enabled, http};

/// Runs until a signal arrives.
pub(super) async fn run(flags: &Flags, kinds: &[Kind]) -> Result<(), ProcessError> {
    let kinds = enabled(kinds, &flags.enable_scheme, program().optional_kinds)?;
    kinds.iter().try_for_each(check_kind)?;
    check_controllers(&kinds)?;
    check_election(flags)?;
    let stop = Stop::on_signals()?;
    let cluster = cluster(flags).await?;
    let state = State::default();
    let registry = state.metrics.registry(program());
    let names: Vec<&str> = kinds.iter().map(Kind::name).collect();
    tracing::info!(
        version = VERSION,
        kinds = names.join(","),
        namespace = flags.namespace.as_deref().unwrap_or("all"),
        leader_elect = flags.leader_elect,
        controller_threads = u64::from(flags.controller_threads),
        gang_scheduler = flags.gang_scheduler_name,
        "operator starting"
    );
    let metrics_listener = http::listen("--metrics-bind-address", &flags.metrics_bind_address).await?;
    let health_listener =
        http::listen("--health-probe-bind-address", &flags.health_probe_bind_address).await?;
    let readiness = state.clone();
    tokio::spawn(http::serve("metrics", metrics_listener, http::metrics(registry)));
    tokio::spawn(http::serve(
        "health",
        health_listener,
        http::health(move || readiness.readiness()),
    ));
    let work = Work {
        flags,
        kinds,
        state,
        stop,
        account: cluster.service_account(),
    };
    if flags.leader_elect {
        work.by_election(cluster).await?;
    } else {
        let builder = client::builder(&cluster, Versions::All)?;
        let builder = builder.with_layer(&Around::new(&work.state.metrics.api));
        let gate = Gate::new(identity());
        let client = builder
            .with_layer(&gate)
            .with_layer(&AndThenLayer::new(copied))
            .build();
        work.lead(client, &gate).await;
    }
    tracing::info!("stopped");
    Ok(())
}

struct Work<'a> {
    flags: &'a Flags,
    kinds: Vec<Kind>,
    state: State,
    stop: Stop,
    /// The namespace and the name of the service account, if the credentials are its token.
    account: Option<(String, String)>,
}

impl Work<'_> {
    /// Runs the operator while this process holds the lease, and stands by otherwise.
    async fn by_election(&self, cluster: ClusterConfig) -> Result<(), ProcessError> {
        let flags = self.flags;
        let namespace = flags.leader_election_namespace.clone();
        let namespace = namespace
            .or_else(|| fallback("MY_POD_NAMESPACE"))
            .unwrap_or_else(|| cluster.config.default_namespace.clone());
        let identity = identity();
        let fence = Fence::new(
            &namespace,
            &flags.leader_election_id,
            flags.leader_election_renew_deadline,
        );
        self.state.stand_by(fence.clone());
        // A write that waited at the gate passes the fence when it is sent.
        let gate = Gate::new(&identity);
        let builder =
            client::builder(&cluster, Versions::All)?.with_layer(&Around::new(&self.state.metrics.api));
        let builder = builder.with_layer(&Around::new(&fence)).with_layer(&gate);
        let client = builder.with_layer(&AndThenLayer::new(copied)).build();
        // The lease has a client of its own, so that a renewal waits neither behind other calls nor at the gate, nor for
        // a dead connection of theirs. k8s-controller would take refused credentials for missing permissions.
        let builder = client::builder(&cluster, Versions::All)?.with_layer(&refusal(&cluster, no_answer));
        let builder = builder
            .with_layer(&Around::new(&self.state.metrics.api))
            .with_layer(&Around::new(&fence));
        let for_lease = builder.with_layer(&AndThenLayer::new(copied)).build();
        let election = LeaderElection::new(for_lease, &namespace, &flags.leader_election_id, &identity)
            .with_lease_duration(flags.leader_election_lease_duration)
            .with_renew_deadline(flags.leader_election_renew_deadline)
            .with_retry_period(flags.leader_election_retry_period);
        loop {
            let leads = watch::Sender::new(false);
            let term = election.with_lease(async {
                leads.send_replace(true);
                self.state.metrics.lease_acquired();
                self.lead(client.clone(), &gate).await;
            });
            let give_up = async {
                self.stop.clone().stopped().await;
                if *leads.borrow() {
                    // The term ends by itself, and releases the lease.
                    std::future::pending::<()>().await;
                }
            };
            let ended = tokio::select! {
                biased;
                ended = term => ended,
                () = give_up => Some(()),
            };
            fence.close();
            self.state.stand_by(fence.clone());
            if ended.is_some() {
                return Ok(());
            }
            self.state.metrics.lease_lost();
            tracing::warn!(identity, "lost the lease; this process is a standby");
        }
    }

    /// Returns the command that grants this operator what it needs.
    fn permissions_remedy(&self) -> String {
        let Some((namespace, account)) = &self.account else {
            return "grant them to its user".to_owned();
        };
        format!(
            "run: {}",
            grant_command(namespace, account, self.kinds.iter().map(Kind::name))
        )
    }

    async fn lead(&self, client: Client, gate: &Gate) {
        let threads = usize::from(self.flags.controller_threads);
        let mut settings = Settings::default();
        settings.restart_scope = self.flags.default_restart_scope.map(Into::into);
        settings.clean_pods = self.flags.default_clean_pod_policy.into();
        settings.force_delete_after = self.flags.force_delete_after;
        settings.cluster_domain.clone_from(&self.flags.cluster_domain);
        settings.accelerators = Arc::new(self.flags.accelerators.clone());
        settings.gang_scheduler = GangScheduler::named(&self.flags.gang_scheduler_name);
        settings.values = Arc::new(self.flags.settings.0.clone());
        let options = Options {
            namespace: self.flags.namespace.clone().filter(|n| !n.is_empty()),
            settings,
            concurrency: threads * JOBS_PER_THREAD,
            calls: threads * CALLS_PER_THREAD,
            gate: gate.clone(),
            metrics: self.state.metrics.operator.clone(),
            permissions_remedy: self.permissions_remedy(),
            logs_remedy: match &self.account {
                None => "grant get on pods/log to the user of the operator".to_owned(),
                Some((namespace, account)) => format!("run: {}", grant_logs_command(namespace, account)),
            },
            finished_jobs: self.flags.finished_jobs.clone(),
            ..Options::default()
        };
        let operator = Operator::new(client, options);
        let operator = self
            .kinds
            .iter()
            .fold(operator, |operator, kind| operator.manage_kind(kind.clone()));
        let names = self.kinds.iter().map(Kind::name).collect::<Vec<_>>();
        tracing::info!(
            kinds = names.join(","),
            namespace = self.flags.namespace,
            "running jobs"
        );
        let mut ready = operator.ready();
        self.state.lead(ready.clone());
        let count = async {
            if ready.wait_for(|is_ready| *is_ready).await.is_ok() {
                self.state.metrics.leads();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = operator.run_until(self.stop.clone().stopped()) => {},
            () = count => {},
        }
    }
}

#[derive(Clone, Default)]
struct State {
    leadership: Arc<Mutex<Leadership>>,
    metrics: ProcessMetrics,
}

#[derive(Default)]
enum Leadership {
    #[default]
    Starting,
    Standby(Fence),
    Leading(watch::Receiver<bool>),
}

impl State {
    fn stand_by(&self, fence: Fence) {
        self.metrics.stands_by();
        *self.leadership.lock() = Leadership::Standby(fence);
    }

    fn lead(&self, ready: watch::Receiver<bool>) {
        *self.leadership.lock() = Leadership::Leading(ready);
    }

    fn readiness(&self) -> Readiness {
        let (role, unready) = match &*self.leadership.lock() {
            Leadership::Starting => ("starting", Some("starting")),
            Leadership::Standby(fence) if fence.is_standing_by() => ("standby", None),
            Leadership::Standby(_) => ("standby", Some("the lease has not been read yet")),
            Leadership::Leading(ready) if *ready.borrow() => ("leader", None),
            Leadership::Leading(_) => ("leader", Some("the first lists are not complete")),
        };
        Readiness {
            role,
            unready,
            missing_crds: self.metrics.operator.missing_crds(),
        }
    }
}

async fn cluster(flags: &Flags) -> Result<ClusterConfig, ProcessError> {
    // The operator makes all retries, per job and with bounds.
    let mut cluster = cluster_config(&ClusterFlags::new(flags.kubeconfig.as_deref(), None)).await?;
    let agent = format!("{}/{}", program().name, env!("CARGO_PKG_VERSION"));
    // A name that is not a valid header value is left out.
    if let Ok(agent) = agent.parse() {
        cluster.config.headers.push((USER_AGENT, agent));
    }
    Ok(cluster)
}

/// Returns the name of this candidate: the name of the pod or the host, and the UID of the pod, so that the next process
/// of the pod takes its own lease at once. A container starts only when the one before it has ended. Without the UID, a
/// random number makes the name unique.
fn identity() -> String {
    use std::hash::{BuildHasher, RandomState};
    let host = fallback("MY_POD_NAME").or_else(|| fallback("HOSTNAME"));
    let host = host.unwrap_or_else(|| program().name.clone());
    let random = || format!("{:016x}", RandomState::new().hash_one(std::process::id()));
    format!("{host}_{}", fallback("MY_POD_UID").unwrap_or_else(random))
}

/// Checks the flags of the election, because the library panics on inconsistent durations.
fn check_election(flags: &Flags) -> Result<(), ProcessError> {
    let wrong = |why| Err(ProcessError::Election(why));
    let lease = flags.leader_election_lease_duration;
    if lease.subsec_nanos() != 0 || i32::try_from(lease.as_secs()).is_err() {
        wrong("--leader-election-lease-duration must be whole seconds, at most 2147483647")
    } else if flags.leader_election_renew_deadline >= lease {
        wrong("--leader-election-renew-deadline must be less than --leader-election-lease-duration")
    } else if flags.leader_election_retry_period >= flags.leader_election_renew_deadline {
        wrong("--leader-election-retry-period must be less than --leader-election-renew-deadline")
    } else if flags.leader_election_retry_period.is_zero() {
        wrong("--leader-election-retry-period must be more than 0s")
    } else if flags.leader_election_id.is_empty() {
        wrong("--leader-election-id must not be empty")
    } else {
        Ok(())
    }
}
