//! `events`: the events of a job and its pods.

mod follow;
mod text;

use std::process::ExitCode;

use k8s_openapi::api::core::v1::Event;
use text::name;
use training_job_review::report::note;
use training_job_review::{Failure, Kinds, write};

use crate::help;
use crate::job::ViewArgs;
use crate::observe::{Parts, forbidden, observe};
use crate::output::{Output, print_value};

pub(super) use text::table;

const HELP: &str = "\
The events of the job, and those of its pods, also of pods that were deleted. The API server keeps events for an hour by
default. With -f, the command goes on with new events until the job is deleted, and prints an event again when its count
grows; -o json prints a document for each event.

Examples:
  {program} events train
  {program} events train -f
  {program} events train --warnings
  {program} events train -o json

Rights (in the namespace):
  get   jobs
  list  events
With -f:
  list   jobs
  watch  jobs
  watch  events

Exit codes:
  0    the events are printed, or there are none
  2    no such job, a cluster that cannot be read, or bad usage
  130  ended by Ctrl-C";

/// Print the events of a job and of its pods, the oldest first.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    view: ViewArgs,
    /// Print new events as they come, until the job is deleted.
    #[arg(short, long)]
    follow: bool,
    /// Leave out all events but warnings.
    #[arg(long)]
    warnings: bool,
}

impl Args {
    fn selects(&self, event: &Event) -> bool {
        !self.warnings || event.type_.as_deref() == Some("Warning")
    }
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    if arguments.follow {
        return arguments.view.job.with_job(kinds, async |connection, job| {
            let selects = |event: &Event| arguments.selects(event);
            follow::follow(arguments.view.output, selects, &connection, job).await
        });
    }
    let parts = Parts {
        events: true,
        ..Parts::default()
    };
    let mut observed = arguments.view.job.with_job(kinds, async |connection, job| {
        let observed = observe(&connection.client, job, parts).await?;
        match observed.forbidden.contains(&"events") {
            true => Err(forbidden("list", "events", Some(&connection.namespace))),
            false => Ok(observed),
        }
    })?;
    observed.events.retain(|event| arguments.selects(event));
    match arguments.view.output {
        Output::Json | Output::Yaml => {
            print_value(
                arguments.view.output,
                &serde_json::json!({"events": observed.events}),
            )?;
        }
        Output::Name => write::print(&observed.events.iter().map(name).collect::<String>())?,
        Output::Text | Output::Wide if observed.events.is_empty() => {
            note("no events; the API server keeps them for an hour by default");
        }
        Output::Text | Output::Wide => write::print(&table(&observed.events, observed.now))?,
    }
    Ok(ExitCode::SUCCESS)
}
