//! `ui`: the list and the stories of jobs in a browser.
//!
//! | file | content |
//! |---|---|
//! | `access.rs` | the requests that are answered |
//! | `route.rs` | address → what it shows |
//! | `filter.rs` | the filters of the list |
//! | `pages.rs` | the list as HTML |
//! | `views.rs` | reads what a page shows from the cluster and the history |
//! | `changes.rs` | watches, as server-sent events |
//! | `log.rs` | a log as it grows |
//! | `server.rs` | HTTP |

mod access;
mod changes;
mod filter;
mod log;
mod pages;
mod route;
mod server;
mod views;

use std::net::Ipv4Addr;
use std::process::ExitCode;

use access::Access;
use anyhow::Context;
use tokio::net::TcpListener;
use training_job_review::{Failure, Kinds, write};
use views::Views;

use super::connection::{Connection, ConnectionArgs, connect, connect_if_configured};
use super::help;
use super::history::HistoryArgs;

const HELP: &str = "\
Prints an address for a browser on this machine, and serves it until Ctrl-C: a list of jobs with filters, the story of each
job as `report` writes it, and logs as they grow. Pages change by themselves, and work without script too.

The server shows what your kubeconfig may read, changes nothing, and listens on 127.0.0.1 only. The address contains a token
that is new at each start, so do not share it.

Examples:
  {program} ui
  {program} ui -A --port 8080
  {program} ui -n ml --history /mnt/history

Rights (in the namespace, or in all with -A):
  get    jobs
  list   jobs
  watch  jobs
  list   pods
  watch  pods
  list   events
  get    pods/log

Without one of the rights, the pages lack what it gives, or do not change by themselves.

Exit codes:
  2    a cluster that is not configured, unless --history is set; a port that is not free, or bad usage
  130  ended by Ctrl-C";

/// Show jobs, their stories and logs in a browser.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    /// The jobs of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// The port [default: any that is free].
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    #[command(flatten)]
    history: HistoryArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let serve = async |connection: Connection| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await;
        let listener = listener.with_context(|| format!("--port {}", arguments.port))?;
        let access = Access::new(listener.local_addr()?.port())?;
        let views = Views {
            namespace: (!arguments.all_namespaces).then(|| connection.namespace.clone()),
            history: arguments.history.history(),
            client: connection.client,
            kinds: kinds.clone(),
        };
        write::print(&format!("{}\n", access.address()))?;
        tokio::select! {
            () = server::serve(&listener, access, views) => Ok(ExitCode::SUCCESS),
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::from(130)),
        }
    };
    match arguments.history.is_selected() {
        true => connect_if_configured(&arguments.connection, serve),
        false => connect(&arguments.connection, serve),
    }
}
