//! `training-operator local node`: this machine as a node of a cluster, its pods as processes.

mod contact;
mod lock;
mod output;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::pin_mut;
use kube::Client;
use local_node::{Bind, Node, NodeConfig, default_node_name};
use tokio::sync::mpsc;

use super::processes::{MAX_WAITING_LINES, ProcessArgs};
use super::signals::Signals;
use crate::cluster;
use crate::kinds::kinds;

use contact::Contact;
use output::{note, print_event};

const HELP: &str = "\
For a cluster without kubelets, such as a bare control plane in a test, and to try jobs of a
cluster on this machine. It is scheduler and kubelet in one:

* It takes every pod of the default scheduler that has no node, of --namespace or of all. In a
  cluster with a scheduler use --no-bind: then only pods come that the scheduler puts here, which
  must tolerate the node's taint training.kubeflow.org/node-agent:NoSchedule.
* Images are not pulled: containers' commands run as they are found here, as your user. Whoever
  may create pods in the cluster runs programs on this machine.
* It needs the rights to list, watch, get and delete pods, to create pods/binding, to patch
  pods/status, to list services, to get the ConfigMaps and Secrets that pods name, and for its
  Node object to get, create and delete nodes and to patch nodes/status.

While the API server cannot be reached, pods go on, and their states are reported when it is back.
Ctrl-C or SIGTERM ends the pods' processes (SIGTERM, after 10 s SIGKILL), reports how they ended
(those that failed with reason Terminated), and removes the node. If the node is killed, its
processes end with it; the next one of the same name reports their pods as Failed with exit code
137, so that operators restart what may be restarted.

Examples:
  training-operator local node --kubeconfig admin.conf --venv .venv/mxnet --workdir examples/mxnet
  training-operator local node --namespace training --keep-logs logs
  training-operator local node --context staging --name local-mine --no-bind

Exit codes:
  0    ended by Ctrl-C or SIGTERM
  2    the cluster cannot be used, the name is taken, or bad usage
  130  killed at once by a second Ctrl-C";

/// How long the pods' processes may take to end when the node does.
const GRACE: Duration = Duration::from_secs(10);

/// Which cluster, which pods, and how they run.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// How to reach the cluster [default: KUBECONFIG, ~/.kube/config, or the service account of a pod]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig to use [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// The node's name [default: local- and this machine's name]
    #[arg(long, value_name = "NAME", value_parser = node_name)]
    pub name: Option<String>,

    /// Run the pods of this namespace only [default: of all]
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// Take only pods that a scheduler has put on this node
    #[arg(long)]
    pub no_bind: bool,

    /// Where the pods' processes start; a container's relative `workingDir` is looked for there
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workdir: PathBuf,

    #[command(flatten)]
    pub processes: ProcessArgs,
}

/// Checks the name here, because the API server would refuse it only after the node has started.
fn node_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let ends = |c: char| c.is_ascii_alphanumeric();
    if text.len() <= 63 && text.chars().all(allowed) && text.starts_with(ends) && text.ends_with(ends) {
        return Ok(text.to_owned());
    }
    Err("at most 63 of a-z, 0-9, - and . are needed, a letter or digit first and last".to_owned())
}

/// Runs the node until a signal comes: 0 after the first, 128 and its number after a second.
///
/// # Errors
/// The cluster cannot be reached with what is given, the name is taken, or the machine lacks something.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.processes.check()?;
    let mut signals = Signals::listen()?;
    let name = args.name.clone().unwrap_or_else(default_node_name);
    let (client, server) = cluster::client(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let lock = lock::acquire(&server, &name)?;
    ensure!(
        lock.is_some(),
        "a node {name} of {server} runs on this machine already; choose another --name"
    );
    match contact::first_contact(&client, &server, &name, &mut signals).await? {
        Contact::Made => {}
        Contact::Interrupted => return Ok(ExitCode::SUCCESS),
    }
    serve(args, client, &server, name, &mut signals).await
}

async fn serve(
    args: &Args,
    client: Client,
    server: &str,
    name: String,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    let (sender, mut events) = mpsc::channel(MAX_WAITING_LINES);
    let config = NodeConfig {
        name: name.clone(),
        namespace: args.namespace.clone(),
        bind: if args.no_bind {
            Bind::None
        } else {
            Bind::DefaultScheduler
        },
        register: true,
        ..args.processes.node_config(args.workdir.clone(), &kinds())
    };
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
    note("stopping; once more to kill at once");
    let stopping = node.shutdown(GRACE);
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
