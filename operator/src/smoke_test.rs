//! `training-operator smoke-test`: runs a job in a cluster, to see that the operator works.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use futures::StreamExt;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Client, ResourceExt};
use serde_json::Value;
use training_job_cli::cluster::{self, with_timeout};
use training_job_cli::{Failure, Kinds, exit, help};
use training_job_client::call_error::{explained, failure_of};
use training_job_controller::process::ClusterFlags;

const HELP: &str = "\
The user must be allowed to create, get, list, watch and delete jobs of the kind. `helm test` runs this
command in a pod.

Examples:
  training-operator smoke-test job.yaml
  training-operator new PyTorchJob --image busybox -- true | training-operator smoke-test -

Exit codes:
  0  the job succeeded
  1  the job failed, or did not end in time
  2  the job cannot be created, or bad usage";

/// Run a job in a cluster, wait until it ends, and delete it.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    /// The manifest of one job, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The time in which the job must end
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    /// Keep the job and its pods if it fails or does not end in time
    #[arg(long)]
    keep_failed: bool,
    /// The job's namespace [default: that of the manifest, of the context, or of this pod]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// The kubeconfig file [default: KUBECONFIG, ~/.kube/config, or the service account of this pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Parses a duration such as `15s` or `1m30s`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a duration such as 15s or 1m30s".to_owned();
    let span: k8s_openapi::jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(span).map_err(|_| wrong())
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let file = arguments.file.display().to_string();
    let job = read(&arguments.file, kinds).map_err(|error| Failure::new(&file, format!("{error:#}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(run_job(arguments, job));
    match ended.map_err(|error| failure_of(&file, &error))? {
        Outcome::Succeeded => Ok(ExitCode::SUCCESS),
        Outcome::Failed => Ok(exit::check_failed()),
    }
}

/// Returns the job of a file and its resource.
fn read(file: &Path, kinds: &Kinds) -> anyhow::Result<(DynamicObject, ApiResource)> {
    let mut text = String::new();
    match file == Path::new("-") {
        true => std::io::stdin().read_to_string(&mut text).map(|_| ())?,
        false => text = std::fs::read_to_string(file)?,
    }
    let documents = kube_manifest::parse(&text).map_err(|error| anyhow!("{}", error.problem))?;
    let [document] = &documents[..] else {
        bail!("must have one document (has {})", documents.len());
    };
    let job = document.to_json();
    let name = job["kind"].as_str().unwrap_or_default();
    let Some(kind) = kinds.iter().find(|kind| kind.name() == name) else {
        let known: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
        bail!("kind: must be one of {} (is {name:?})", known.join(", "));
    };
    let version = job["apiVersion"].as_str().unwrap_or_default();
    let version = version.split_once('/').map_or(version, |(_, version)| version);
    let gvk = GroupVersionKind::gvk(&kind.resource.group, version, name);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &kind.resource.plural);
    Ok((serde_json::from_value(job)?, resource))
}

enum Outcome {
    Succeeded,
    Failed,
}

/// Creates a job, waits for its end, and deletes it unless it failed and is to be kept.
async fn run_job(arguments: &Args, (job, resource): (DynamicObject, ApiResource)) -> anyhow::Result<Outcome> {
    let Args {
        kubeconfig, context, ..
    } = arguments;
    let flags = ClusterFlags::new(kubeconfig.as_deref(), context.as_deref());
    let (client, _) = cluster::client(&flags).await?;
    let (api, job) = in_namespace(&client, arguments, job, &resource);
    let created = with_timeout(api.create(&PostParams::default(), &job)).await;
    let created = match created? {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            bail!(
                "{}; delete it, or give the job of the test another name",
                status.message
            )
        }
        created => created.map_err(|error| explained(error, "create", &resource.plural))?,
    };
    let name = created.name_any();
    let namespace = created.namespace().unwrap_or_default();
    println!("{} {namespace}/{name}: created", resource.kind);
    let ended = tokio::time::timeout(arguments.timeout, until_ended(&api, &name)).await;
    let last = match &ended {
        Ok(_) => None,
        Err(_) => with_timeout(api.get_opt(&name))
            .await
            .and_then(|read| Ok(read?))
            .unwrap_or(None),
    };
    let is_kept = arguments.keep_failed && !matches!(ended, Ok(Ok(Outcome::Succeeded)));
    let deleted = match is_kept {
        true => None,
        false => Some(with_timeout(api.delete(&name, &DeleteParams::background())).await),
    };
    let outcome = match ended {
        Ok(outcome) => outcome?,
        Err(_) => {
            let waits = last
                .as_ref()
                .map(|job| text(&job.data["status"]["waitingReason"]));
            let waits = waits
                .filter(|reason| !reason.is_empty())
                .map(|reason| format!(" ({reason})"));
            last.iter().for_each(print_cause);
            println!(
                "{} {namespace}/{name}: did not end in time{}; training-operator doctor checks the installation",
                resource.kind,
                waits.unwrap_or_default()
            );
            Outcome::Failed
        }
    };
    match (deleted, &outcome) {
        (None, _) => println!(
            "the job is kept; delete it with: kubectl delete {} {name} --namespace {namespace}",
            resource.plural
        ),
        (Some(deleted), outcome) => {
            deleted.and_then(|response| Ok(response?)).context("delete")?;
            if matches!(outcome, Outcome::Failed) {
                println!("the job is deleted; --keep-failed keeps it and its pods");
            }
        }
    }
    Ok(outcome)
}

/// Puts a job into its namespace.
fn in_namespace(
    client: &Client,
    arguments: &Args,
    mut job: DynamicObject,
    resource: &ApiResource,
) -> (Api<DynamicObject>, DynamicObject) {
    let named = arguments.namespace.clone().or(job.metadata.namespace.take());
    let namespace = named.unwrap_or_else(|| client.default_namespace().to_owned());
    (Api::namespaced_with(client.clone(), &namespace, resource), job)
}

/// Prints each condition of a job once, until the job has ended.
async fn until_ended(api: &Api<DynamicObject>, name: &str) -> anyhow::Result<Outcome> {
    let mut printed = Vec::new();
    let mut states = pin!(watch_object(api.clone(), name).default_backoff());
    while let Some(state) = states.next().await {
        // Errors are retried after a pause until the time is over.
        let Ok(Some(job)) = state else { continue };
        for condition in job.data["status"]["conditions"].as_array().into_iter().flatten() {
            if condition["status"] != "True" || printed.contains(&condition["type"]) {
                continue;
            }
            printed.push(condition["type"].clone());
            if condition["type"] == "Failed" {
                print_cause(&job);
            }
            println!("{}: {}", text(&condition["type"]), text(&condition["message"]));
            match text(&condition["type"]) {
                "Succeeded" => return Ok(Outcome::Succeeded),
                "Failed" => return Ok(Outcome::Failed),
                _ => {}
            }
        }
    }
    bail!("the watch ended")
}

/// Prints the cause of a failure with the last lines of its container.
fn print_cause(job: &DynamicObject) {
    let failure = &job.data["status"]["failure"];
    if let Some(summary) = failure["summary"].as_str() {
        println!("cause: {summary}");
        text(&failure["message"])
            .lines()
            .for_each(|line| println!("  {line}"));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
