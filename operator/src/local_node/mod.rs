//! `training-operator local node`: this machine as a node of a cluster, its pods as processes.

mod connect;
mod lock;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::pin_mut;
use kube::Client;
use local_node::{Bind, Node, NodeConfig, NodeEvent, default_node_name};
use tokio::sync::mpsc;

use crate::cluster;
use crate::kinds::kinds;
use crate::machine::{self, Machine, WAITING_LINES};
use crate::signals::Signals;

use connect::Contact;

/// How long the pods' processes may take to end when the node does.
const GRACE: Duration = Duration::from_secs(10);

/// Which cluster, which pods, and how they run.
#[derive(Debug, clap::Args)]
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
    pub machine: Machine,
}

/// The API server would refuse another only when it is too late to tell.
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
pub(crate) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.machine.check()?;
    let mut signals = Signals::listen()?;
    let name = args.name.clone().unwrap_or_else(default_node_name);
    let (client, server) = cluster::client(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let lock = lock::take(&server, &name)?;
    ensure!(
        lock.is_some(),
        "a node {name} of {server} runs on this machine already; choose another --name"
    );
    match connect::first_contact(&client, &server, &name, &mut signals).await? {
        Contact::Made => {}
        Contact::GivenUp => return Ok(ExitCode::SUCCESS),
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
    let (told, mut events) = mpsc::channel(WAITING_LINES);
    let config = NodeConfig {
        name: name.clone(),
        namespace: args.namespace.clone(),
        bind: if args.no_bind {
            Bind::None
        } else {
            Bind::DefaultScheduler
        },
        register: true,
        ..args.machine.node_config(args.workdir.clone(), &kinds())
    };
    let workdir = args
        .workdir
        .canonicalize()
        .unwrap_or_else(|_| args.workdir.clone());
    let node = Node::start(client, config, told).context("the node cannot be started")?;
    note(&format!(
        "node {name} of {server}: images are not pulled: commands run on this machine, in {}",
        workdir.display()
    ));
    loop {
        tokio::select! {
            biased;
            _ = signals.next() => break,
            Some(event) = events.recv() => show(args, &event),
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
            Some(event) = events.recv() => show(args, &event),
        }
    }
    while let Ok(event) = events.try_recv() {
        show(args, &event);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what a pod has to say, after its name and, if there may be several, its namespace.
fn show(args: &Args, event: &NodeEvent) {
    let full = |namespace: &str, pod: &str| match args.namespace {
        Some(_) => pod.to_owned(),
        None => format!("{namespace}/{pod}"),
    };
    match event {
        NodeEvent::Log(log) => {
            let speaker = machine::speaker(&full(&log.namespace, &log.pod), log);
            print(&format!("{speaker} | {}", log.text));
        }
        NodeEvent::Phase(phase) => print(&format!("{} * {phase}", full(&phase.namespace, &phase.pod))),
        NodeEvent::Prepared(prepared) if args.machine.why => {
            for line in machine::why(prepared) {
                print(&format!("{} ? {line}", full(&prepared.namespace, &prepared.pod)));
            }
        }
        _ => {}
    }
}

fn note(text: &str) {
    print(&format!("training-operator: {text}"));
}

/// A reader that is gone sees nothing; the pods go on.
fn print(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout().lock(), "{line}");
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
