//! `explain`: the jobs of files, or those that a cluster stores.

use std::path::PathBuf;
use std::process::ExitCode;

use training_job_client::cluster::{ClusterArgs, run_with_client};
use training_job_kubectl::{Connection, find};
use training_job_review::check::{Job, valid_jobs};
use training_job_review::explain::{HELP, Options, print};
use training_job_review::{Failure, exit, help};

use super::with_cluster;
use crate::kinds::Kinds;

const EXAMPLE: &str = "explain --cluster mxjob/train --namespace ml";

const CLUSTER_HELP: &str = "\
With --cluster, a FILE is a job of the cluster: its name, or a kind or its plural, and the name.";

/// Describe how a job starts, succeeds, and reacts to each kind of failure.
#[derive(Debug, clap::Args)]
#[command(after_help = help(&with_cluster(HELP, EXAMPLE, CLUSTER_HELP)))]
pub struct Args {
    /// Files, directories (with all *.yaml, *.yml and *.json files below them), or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Explain jobs of the cluster, named NAME or KIND/NAME.
    #[arg(long)]
    cluster: bool,
    /// The namespace of the cluster's jobs [default: the namespace of the context].
    #[arg(short, long, value_name = "NAME", requires = "cluster")]
    namespace: Option<String>,
    #[command(flatten)]
    connection: ClusterArgs,
    #[command(flatten)]
    options: Options,
}

pub(super) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let jobs = match arguments.cluster {
        true => Some(stored(arguments, kinds)?),
        false => valid_jobs(kinds, &arguments.files),
    };
    match jobs {
        Some(jobs) => print(&jobs, &arguments.options),
        None => Ok(exit::bad_input()),
    }
}

/// Returns the jobs that the arguments name, as the cluster stores them.
fn stored(arguments: &Args, kinds: &Kinds) -> Result<Vec<Job>, Failure> {
    run_with_client(&arguments.connection, async |client| {
        let namespace = arguments.namespace.as_deref();
        let namespace = namespace.unwrap_or(client.default_namespace()).to_owned();
        let connection = Connection { client, namespace };
        let mut jobs = Vec::new();
        for argument in &arguments.files {
            let stored = find(&connection, kinds, &argument.to_string_lossy()).await?;
            jobs.push(stored.checked()?);
        }
        Ok(jobs)
    })
}
