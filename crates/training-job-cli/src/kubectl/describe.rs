//! `describe`: a job with its spec, its status and its events on one page.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;
use training_job::render::pod_requests;

use crate::exit::Failure;
use crate::kinds::Kinds;

use super::events;
use super::help;
use super::job::ViewArgs;
use super::observe::{ObservedJob, Parts};
use super::status::{StatusView, tree};

const HELP: &str = "\
The page has the job's metadata, the templates of its roles, its services, the tree of `status`, and its events.

Examples:
  {program} describe train
  {program} describe mxjob/train -o yaml

Rights (in the namespace):
  get   jobs
  list  pods
  list  services
  list  events

Exit codes:
  0  the job is described
  2  no such job, a cluster that cannot be read, or bad usage";

/// Describe a job: metadata, roles, services, status and events.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    view: ViewArgs,
}

/// A role's template in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Template {
    role: String,
    replicas: u32,
    container: String,
    image: String,
    command: String,
    requests: BTreeMap<String, String>,
}

/// Returns the templates of the roles with replicas.
fn templates(observed: &ObservedJob) -> Vec<Template> {
    let Ok(outline) = &observed.job.outline else {
        return Vec::new();
    };
    let roles = outline.roles.iter().filter(|role| role.replicas > 0);
    let template = roles.map(|role| {
        let main = role.main_container.as_deref().unwrap_or_default();
        let containers = role.pod.containers.iter();
        let container = containers
            .clone()
            .find(|container| container.name == main)
            .or(containers.clone().next());
        let words = container.map(|container| [&container.command, &container.args]);
        let words = words.into_iter().flatten().flatten().flatten();
        let command: Vec<String> = words.map(|word| word.replace('\n', "\\n")).collect();
        let requests = pod_requests(&role.pod);
        Template {
            role: role.name.clone(),
            replicas: role.replicas,
            container: container
                .map(|container| container.name.clone())
                .unwrap_or_default(),
            image: container
                .and_then(|container| container.image.clone())
                .unwrap_or_default(),
            command: command.join(" "),
            requests: requests
                .iter()
                .map(|(name, amount)| (name.clone(), amount.to_string()))
                .collect(),
        }
    });
    template.collect()
}

/// Returns the page without the tree and the events.
pub(super) fn heading(observed: &ObservedJob) -> String {
    let metadata = &observed.job.object["metadata"];
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            text += &format!("{:<13} {value}\n", format!("{name}:"));
        }
    };
    let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    line("Name", string(&metadata["name"]));
    line("Namespace", string(&metadata["namespace"]));
    line(
        "Kind",
        format!(
            "{} ({})",
            observed.job.kind.name(),
            string(&observed.job.object["apiVersion"])
        ),
    );
    line("Labels", pairs(&metadata["labels"]));
    line("Annotations", pairs(&metadata["annotations"]));
    line("Created", string(&metadata["creationTimestamp"]));
    line("Queue", observed.job.queue().unwrap_or_default());
    if let Ok(outline) = &observed.job.outline {
        let policy = &outline.policy;
        let seconds =
            |seconds: Option<i64>| seconds.map(|seconds| format!("{seconds} s")).unwrap_or_default();
        line("Clean up", policy.clean_pods.as_str().to_owned());
        line(
            "Restarts",
            observed
                .job
                .restart_limit()
                .map(|limit| format!("at most {limit}"))
                .unwrap_or_default(),
        );
        line("Deadline", seconds(policy.active_deadline_seconds));
        line("Kept for", seconds(policy.ttl_seconds));
    }
    let services = observed
        .services
        .iter()
        .filter_map(|service| service.metadata.name.as_deref());
    line("Services", shortened(services.collect()));
    for template in templates(observed) {
        text += &format!("Role {}:\n", template.role);
        let mut line = |name: &str, value: String| {
            if !value.is_empty() {
                text += &format!("  {:<11} {value}\n", format!("{name}:"));
            }
        };
        line("Replicas", template.replicas.to_string());
        line("Container", template.container);
        line("Image", template.image);
        line("Command", template.command);
        let requests: Vec<String> = template
            .requests
            .iter()
            .map(|(name, amount)| format!("{name}={amount}"))
            .collect();
        line("Requests", requests.join(", "));
    }
    text
}

/// The number of names on a line.
const MAX_NAMES: usize = 5;

fn shortened(names: Vec<&str>) -> String {
    let first: Vec<&str> = names.iter().take(MAX_NAMES).copied().collect();
    match names.len().saturating_sub(MAX_NAMES) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Returns `a=b, c=d`, without the annotation in which kubectl keeps the manifest.
fn pairs(map: &Value) -> String {
    let entries = map.as_object().into_iter().flatten();
    let entries = entries.filter(|(name, _)| *name != "kubectl.kubernetes.io/last-applied-configuration");
    let texts: Vec<String> = entries
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    texts.join(", ")
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let parts = Parts {
        pods: true,
        events: true,
        services: true,
    };
    let observed = arguments.view.observe(kinds, parts)?;
    let view = StatusView::new(&observed);
    let services = observed
        .services
        .iter()
        .filter_map(|service| service.metadata.name.as_deref());
    let page = serde_json::json!({
        "status": view, "templates": templates(&observed), "services": services.collect::<Vec<_>>(),
        "events": observed.events,
    });
    arguments.view.print(&observed.job, &page, |is_wide| {
        let mut text = heading(&observed);
        text += &format!("\n{}", tree::text(&view, observed.now, is_wide));
        if !observed.events.is_empty() {
            text += &format!("\nEvents:\n{}", events::table(&observed.events, observed.now));
        }
        text
    })
}
