//! `events`: the events of a job and its pods.

use std::process::ExitCode;

use anyhow::bail;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use crate::duration::short_time;
use crate::exit::Failure;
use crate::help::help;
use crate::kinds::Kinds;
use crate::report::note;
use crate::table::Table;
use crate::write;

use super::connection::{ConnectionArgs, connect};
use super::observe::{Parts, event_time, find, observe};
use super::output::{Output, print_value};

const HELP: &str = "\
The events of the job, and those of its pods, also of pods that were deleted. The API server keeps events for an hour by
default.

Examples:
  {program} events train
  {program} events train --warnings
  {program} events train -o json

Rights (in the namespace):
  get   jobs
  list  events

Exit codes:
  0  the events are printed, or there are none
  2  no such job, a cluster that cannot be read, or bad usage";

/// Print the events of a job and of its pods, the oldest first.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    /// The job, as NAME or KIND/NAME.
    #[arg(value_name = "JOB")]
    job: String,
    /// Leave out all events but warnings.
    #[arg(long)]
    warnings: bool,
    /// The format of the output.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Returns events as a table.
pub(super) fn table(events: &[Event], now: Timestamp) -> String {
    let mut table = Table::new(&["LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"]);
    for event in events {
        let about = &event.involved_object;
        let kind = about.kind.as_deref().unwrap_or_default().to_lowercase();
        let count = event
            .series
            .as_ref()
            .and_then(|series| series.count)
            .or(event.count)
            .unwrap_or(1);
        let text = |text: &Option<String>| text.clone().unwrap_or_default().trim().replace(['\n', '\r'], " ");
        table.row([
            event_time(event)
                .map(|time| short_time(now.duration_since(time).as_secs().max(0)))
                .unwrap_or_default(),
            text(&event.type_),
            text(&event.reason),
            format!("{kind}/{}", about.name.as_deref().unwrap_or_default()),
            count.to_string(),
            text(&event.message),
        ]);
    }
    table.to_string()
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let mut observed = connect(&arguments.connection, async |connection| {
        let job = find(&connection, kinds, &arguments.job).await?;
        let parts = Parts {
            events: true,
            ..Parts::default()
        };
        let observed = observe(&connection.client, job, parts).await?;
        if observed.forbidden.contains(&"events") {
            bail!(
                "you are not allowed to list events in namespace {}",
                connection.namespace
            );
        }
        Ok(observed)
    })?;
    if arguments.warnings {
        observed
            .events
            .retain(|event| event.type_.as_deref() == Some("Warning"));
    }
    match arguments.output {
        Output::Json | Output::Yaml => {
            print_value(arguments.output, &serde_json::json!({"events": observed.events}))?;
        }
        Output::Name => {
            let names = observed
                .events
                .iter()
                .filter_map(|event| event.metadata.name.as_ref());
            write::print(&names.map(|name| format!("event/{name}\n")).collect::<String>())?;
        }
        Output::Text | Output::Wide if observed.events.is_empty() => {
            note("no events; the API server keeps them for an hour by default");
        }
        Output::Text | Output::Wide => write::print(&table(&observed.events, observed.now))?,
    }
    Ok(ExitCode::SUCCESS)
}
