//! `top`: the resources that replicas request and use.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube_schema::quantity::{Quantity, amount};
use serde::Serialize;
use serde_json::Value;
use training_job::render::pod_requests;

use crate::cluster::with_timeout;
use crate::exit::Failure;
use crate::kinds::Kinds;
use crate::report::note;

use super::connection::Connection;
use super::help;
use super::job::ViewArgs;
use super::observe::{ObservedJob, Parts, explained, forbidden, is_forbidden, observe};

const HELP: &str = "\
Requests are those of the pods, as a scheduler counts them. Usage is shown where the cluster serves metrics.k8s.io, such
as with metrics-server; it has no usage of accelerators.

Examples:
  {program} top train
  {program} top train -o json

Rights (in the namespace):
  get   jobs
  list  pods
  list  pods.metrics.k8s.io

Exit codes:
  0  the resources are shown
  2  no such job, a cluster that cannot be read, or bad usage";

/// Show the resources that replicas request, and those that they use.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    view: ViewArgs,
}

/// The resources of a replica, or of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    replica: String,
    requests: BTreeMap<String, String>,
    usage: BTreeMap<String, String>,
}

pub(super) type Amounts = BTreeMap<String, Quantity>;

/// Returns a row for each pod, and one for all. `usage` has the amounts of pods by their names.
pub(super) fn rows(observed: &ObservedJob, usage: &BTreeMap<String, Amounts>) -> Vec<Row> {
    let keys = observed.job.kind.framework.keys();
    let (mut all_requests, mut all_usage) = (Amounts::new(), Amounts::new());
    let mut rows = Vec::new();
    for pod in &observed.pods {
        let label = |key: String| {
            pod.metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get(&key))
                .cloned()
        };
        let index = label(keys.replica_index()).unwrap_or_else(|| "0".to_owned());
        let name = pod.metadata.name.clone().unwrap_or_default();
        let replica =
            label(keys.replica_type()).map_or_else(|| name.clone(), |role| format!("{role}-{index}"));
        // A pod that has ended occupies nothing.
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let is_active = !matches!(phase, Some("Succeeded" | "Failed"));
        let requests = pod
            .spec
            .as_ref()
            .filter(|_| is_active)
            .map(pod_requests)
            .unwrap_or_default();
        let used = usage.get(&name).cloned().unwrap_or_default();
        add(&mut all_requests, &requests);
        add(&mut all_usage, &used);
        rows.push(Row {
            replica,
            requests: texts(&requests),
            usage: texts(&used),
        });
    }
    rows.push(Row {
        replica: "all".to_owned(),
        requests: texts(&all_requests),
        usage: texts(&all_usage),
    });
    rows
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.entry(name.clone()).or_default();
        *sum = *sum + *amount;
    }
}

fn texts(amounts: &Amounts) -> BTreeMap<String, String> {
    amounts
        .iter()
        .map(|(name, amount)| (name.clone(), amount.to_string()))
        .collect()
}

/// Returns an amount in the unit in which people read it: `250m`, `1.5Gi`.
fn readable(resource: &str, text: &str) -> String {
    let Some(number) = amount(text) else {
        return text.to_owned();
    };
    if resource == "cpu" {
        return format!("{}m", (number * 1_000.0).round());
    }
    if !matches!(resource, "memory" | "ephemeral-storage") {
        return text.to_owned();
    }
    let units = [("Gi", 1024f64.powi(3)), ("Mi", 1024f64.powi(2)), ("Ki", 1024.0)];
    let unit = units.iter().find(|(_, size)| number >= *size);
    match unit {
        Some((suffix, size)) => format!("{}{suffix}", (number / size * 10.0).round() / 10.0),
        None => text.to_owned(),
    }
}

/// Returns the rows as a table with a column for each resource.
pub(super) fn table(rows: &[Row]) -> String {
    let resources: BTreeSet<&String> = rows
        .iter()
        .flat_map(|row| row.requests.keys().chain(row.usage.keys()))
        .collect();
    let has_usage = rows.iter().any(|row| !row.usage.is_empty());
    let mut headings = vec!["REPLICA".to_owned()];
    for resource in &resources {
        let heading = resource.to_uppercase();
        headings.push(heading.clone());
        if has_usage {
            headings.push(format!("{heading} USED"));
        }
    }
    let columns = headings.len();
    let mut lines = vec![headings];
    for row in rows {
        let mut cells = vec![row.replica.clone()];
        let cell = |of: &BTreeMap<String, String>, resource: &str| {
            of.get(resource)
                .map_or_else(|| "-".to_owned(), |text| readable(resource, text))
        };
        for resource in &resources {
            cells.push(cell(&row.requests, resource));
            if has_usage {
                cells.push(cell(&row.usage, resource));
            }
        }
        lines.push(cells);
    }

    let width = |column: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(String::len)
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let text = lines.iter().map(|line| {
        let cells = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    });
    text.collect()
}

/// Returns the usage of a job's pods by name, or the reason why there is none.
async fn usage(
    connection: &Connection,
    observed: &ObservedJob,
) -> anyhow::Result<Result<BTreeMap<String, Amounts>, String>> {
    let kind = GroupVersionKind::gvk("metrics.k8s.io", "v1beta1", "PodMetrics");
    let resource = ApiResource::from_gvk_with_plural(&kind, "pods");
    let job = &observed.job;
    let api = Api::<DynamicObject>::namespaced_with(connection.client.clone(), job.namespace(), &resource);
    let list = with_timeout(api.list(&ListParams::default().labels(&job.selector()))).await?;
    let list = match list {
        Ok(list) => list,
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 503) => {
            return Ok(Err(
                "the cluster serves no metrics.k8s.io, so usage is unknown; install metrics-server"
                    .to_owned(),
            ));
        }
        Err(error) if is_forbidden(&error) => {
            return Ok(Err(
                "you are not allowed to list pods.metrics.k8s.io, so usage is unknown".to_owned(),
            ));
        }
        Err(error) => return Err(explained(error, "list", "pods.metrics.k8s.io")),
    };
    let of_pod = |metrics: &DynamicObject| {
        let mut sum = Amounts::new();
        for container in metrics.data["containers"].as_array().into_iter().flatten() {
            let used = container["usage"].as_object().into_iter().flatten();
            let used = used.filter_map(|(name, text): (_, &Value)| {
                Some((name.clone(), Quantity::parse(text.as_str()?)?))
            });
            add(&mut sum, &used.collect());
        }
        (metrics.metadata.name.clone().unwrap_or_default(), sum)
    };
    Ok(Ok(list.iter().map(of_pod).collect()))
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let parts = Parts {
        pods: true,
        ..Parts::default()
    };
    let (observed, usage) = arguments.view.job.with_job(kinds, async |connection, job| {
        let observed = observe(&connection.client, job, parts).await?;
        if !observed.forbidden.is_empty() {
            return Err(forbidden("list", "pods", Some(&connection.namespace)));
        }
        let usage = usage(&connection, &observed).await?;
        Ok((observed, usage))
    })?;
    let (usage, reason) = match usage {
        Ok(usage) => (usage, None),
        Err(reason) => (BTreeMap::new(), Some(reason)),
    };
    let rows = rows(&observed, &usage);
    let value = serde_json::json!({ "replicas": rows });
    let code = arguments.view.print(&observed.job, &value, |_| table(&rows))?;
    if let Some(reason) = reason {
        note(&reason);
    }
    Ok(code)
}
