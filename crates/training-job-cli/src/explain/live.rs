//! Reads jobs of a cluster.

use crate::check::Job;
use crate::cluster::run_with_client;
use crate::exit::Failure;
use crate::kinds::Kinds;
use crate::kubectl::{Connection, find};

use super::Args;

/// Returns the jobs that the arguments name, as the cluster stores them.
pub(super) fn jobs(arguments: &Args, kinds: &Kinds) -> Result<Vec<Job>, Failure> {
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
