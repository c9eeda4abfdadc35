//! `local node`: acts as a node of a cluster that runs its pods as processes.

mod contact;
mod lock;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use contact::Contact;
use futures::pin_mut;
use kube::Client;
use kube_schema::names::MAX_LABEL_CHARS;
use local_node::{Bind, Node, NodeConfig, default_node_name};
use tokio::sync::mpsc;
use training_job_client::{Signals, cluster};
use training_job_controller::process::ClusterFlags;
use training_job_review::help;

use super::pod_output::{note, print_event};
use super::processes::{MAX_QUEUED_LINES, ProcessArgs};
use crate::kinds::Kinds;

const HELP: &str = "\
Serves clusters without kubelets, such as a bare control plane in a test, and trials of a cluster's
jobs on this machine. The program is the scheduler and the kubelet of its node:

* It runs every pod of the default scheduler that has no node, in --namespace or in all namespaces.
  In a cluster with a scheduler, set --no-bind: then it runs only the pods that the scheduler
  assigns to it. These must tolerate the taint training.kubeflow.org/node-agent:NoSchedule.
* Images are not pulled: the containers' commands run on this machine, as your user. Every user who
  may create pods in the cluster can run programs on this machine.
* It serves no logs to the API server: read them here, or in the files of --keep-logs. `kubectl logs`
  and `kubectl training logs` end with an error.
* It needs permission to list, watch, get and delete pods, to create pods/binding, to patch
  pods/status, to list services, to get the ConfigMaps and Secrets of pods, and, for its Node
  object, to get, create and delete nodes and to patch nodes/status.

If the API server is unreachable, pods keep running, and their states are reported later. Ctrl-C or
SIGTERM ends the processes (SIGTERM, after 10 s SIGKILL), reports their exit codes (failed pods get
the reason Terminated), and deletes the node. If the node is killed, its processes end with it. The
next node of the same name reports their pods as Failed with exit code 137, so that operators can
restart them.

Examples:
  {program} local node --kubeconfig admin.conf --venv .venv --workdir ~/src/model
  {program} local node --namespace training --keep-logs logs
  {program} local node --context staging --name local-mine --no-bind

Exit codes:
  0    ended by Ctrl-C or SIGTERM
  2    the cluster cannot be used, the name is taken, or bad usage
  130  ended at once by a second Ctrl-C";

/// The time of the processes between SIGTERM and SIGKILL when the node ends.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// The kubeconfig file [default: KUBECONFIG, ~/.kube/config, or the service account of a pod]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// The node's name [default: local-HOSTNAME]
    #[arg(long, value_name = "NAME", value_parser = node_name)]
    pub name: Option<String>,

    /// Run only the pods of this namespace [default: all namespaces]
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// Run only pods that a scheduler has assigned to this node
    #[arg(long)]
    pub no_bind: bool,

    /// The directory in which the processes start; a relative `workingDir` of a container is resolved against it
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workdir: PathBuf,

    #[command(flatten)]
    pub processes: ProcessArgs,
}

/// Checks the name before the start, because the API server would reject it only after the node has started.
fn node_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let ends = |c: char| c.is_ascii_alphanumeric();
    if text.len() <= MAX_LABEL_CHARS
        && text.chars().all(allowed)
        && text.starts_with(ends)
        && text.ends_with(ends)
    {
        return Ok(text.to_owned());
    }
    Err(format!(
        "must be at most {MAX_LABEL_CHARS} characters of a-z, 0-9, - and ., with a letter or digit first and last"
    ))
}

/// Runs the node until a signal arrives. Returns 0, or 128 plus the signal's number after a second signal.
///
/// # Errors
/// The cluster cannot be reached, the name is taken, or the node cannot start on this machine.
pub(super) async fn run(args: &Args, kinds: &Kinds) -> anyhow::Result<ExitCode> {
    let config = args.processes.node_config(args.workdir.clone(), kinds)?;
    let mut signals = Signals::listen()?;
    let name = args.name.clone().unwrap_or_else(default_node_name);
    let flags = ClusterFlags::new(args.kubeconfig.as_deref(), args.context.as_deref());
    let (client, server) = cluster::client(&flags).await?;
    let lock = lock::acquire(&server, &name)?;
    ensure!(
        lock.is_some(),
        "node {name} of {server} already runs on this machine; choose another --name"
    );
    match contact::first_contact(&client, &server, &name, &mut signals).await? {
        Contact::Made => {}
        Contact::Interrupted => return Ok(ExitCode::SUCCESS),
    }
    serve(args, config, client, &server, name, &mut signals).await
}

async fn serve(
    args: &Args,
    mut config: NodeConfig,
    client: Client,
    server: &str,
    name: String,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    let (sender, mut events) = mpsc::channel(MAX_QUEUED_LINES);
    config.name = name.clone();
    config.namespace = args.namespace.clone();
    config.bind = if args.no_bind {
        Bind::None
    } else {
        Bind::DefaultScheduler
    };
    config.register = true;
    let workdir = args
        .workdir
        .canonicalize()
        .unwrap_or_else(|_| args.workdir.clone());
    let node = Node::start(client, config, sender).context("the node cannot be started")?;
    note(&format!(
        "node {name} of {server}: images are not pulled: commands run on this machine, in {}",
        workdir.display()
    ));
    loop {
        tokio::select! {
            biased;
            _ = signals.next() => break,
            Some(event) = events.recv() => print_event(&event, args.namespace.is_none(), args.processes.why),
        }
    }
    note("stopping; a second signal kills the processes at once");
    let stopping = node.shutdown(GRACE_PERIOD);
    pin_mut!(stopping);
    loop {
        tokio::select! {
            biased;
            code = signals.next() => return Ok(ExitCode::from(code)),
            () = &mut stopping => break,
            Some(event) = events.recv() => print_event(&event, args.namespace.is_none(), args.processes.why),
        }
    }
    while let Ok(event) = events.try_recv() {
        print_event(&event, args.namespace.is_none(), args.processes.why);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::node_name;

    #[test]
    fn names_of_nodes() {
        for good in ["local", "local-my.host", "a", "0"] {
            assert_eq!(node_name(good).as_deref(), Ok(good));
        }
        for bad in ["", "-a", "a.", "A", "a_b", "a b", &"a".repeat(64)] {
            assert!(node_name(bad).is_err(), "{bad}");
        }
    }
}
