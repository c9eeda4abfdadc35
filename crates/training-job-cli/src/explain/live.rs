//! Reads jobs of a cluster.

use std::path::Path;

use anyhow::{Context, bail};
use kube::Client;
use kube::api::{Api, DynamicObject};

use crate::call_error::{is_unserved, unserved};
use crate::check::Job;
use crate::cluster::{run_with_client, with_timeout};
use crate::exit::Failure;
use crate::kinds::Kinds;

use super::Args;

/// Returns the jobs that the arguments name, as the cluster stores them.
pub(super) fn jobs(arguments: &Args, kinds: &Kinds) -> Result<Vec<Job>, Failure> {
    run_with_client(&arguments.connection, async |client| {
        let namespace = arguments
            .namespace
            .as_deref()
            .unwrap_or(client.default_namespace());
        let mut jobs = Vec::new();
        for file in &arguments.files {
            jobs.push(job(&client, namespace, file, kinds).await?);
        }
        Ok(jobs)
    })
}

async fn job(client: &Client, namespace: &str, argument: &Path, kinds: &Kinds) -> anyhow::Result<Job> {
    let argument = argument.to_string_lossy();
    let Some((kind, name)) = argument.split_once('/') else {
        bail!(
            "{argument}: must be KIND/NAME, for example {}/my-job",
            kinds[0].name().to_lowercase()
        );
    };
    let Some(kind) = kinds.of_argument(kind) else {
        let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
        bail!("unknown kind {kind}; use one of {}", names.join(", "));
    };
    let origin = format!("{} {namespace}/{name}", kind.name());
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind.resource);
    let stored = match with_timeout(api.get_opt(name)).await? {
        Err(error) if is_unserved(&error) => bail!("{origin}: {}", unserved(&kind.resource)),
        stored => stored.with_context(|| origin.clone())?,
    };
    let Some(stored) = stored else {
        bail!(
            "{origin} does not exist; list the jobs with: kubectl get {}",
            kind.resource.plural
        );
    };
    Job::stored(kind, &stored, origin)
}
