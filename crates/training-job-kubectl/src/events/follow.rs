//! Prints the events of a job as they come.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::process::ExitCode;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::Api;
use kube::runtime::{WatchStreamExt, watcher};
use training_job_review::report::note;
use training_job_review::table::one_line;
use training_job_review::write;

use super::text::{HEADINGS, name, row};
use crate::connection::Connection;
use crate::job_events::JobEvents;
use crate::output::{Output, text_of};
use crate::stored::StoredJob;
use crate::wait::{Ended, until};
use crate::watch_error;

/// The widths of the columns before the message. The events to come are unknown, so the columns cannot fit them all.
const WIDTHS: [usize; 5] = [9, 7, 24, 32, 5];

/// Prints the events of the job that `selects` accepts, those that exist first, until the job is deleted.
pub(super) async fn follow(
    output: Output,
    selects: impl Fn(&Event) -> bool,
    connection: &Connection,
    job: StoredJob,
) -> anyhow::Result<ExitCode> {
    let selection = RefCell::new(JobEvents::of(&job, &[]));
    let select_again = |job: &StoredJob| {
        // The job may have more replicas than before.
        selection.replace(JobEvents::of(job, &[]));
        None
    };
    tokio::select! {
        ended = until(connection, &job, None, select_again) => {
            if let Ended::Impossible(why) = ended? {
                note(&format!("{}: {why}", job.argument()));
            }
            Ok(ExitCode::SUCCESS)
        }
        printed = print_all(output, selects, connection, job.namespace(), &selection) => {
            printed.map(|()| ExitCode::SUCCESS)
        }
        _ = tokio::signal::ctrl_c() => Ok(ExitCode::from(130)),
    }
}

/// Prints events until the reader of the output is gone.
async fn print_all(
    output: Output,
    selects: impl Fn(&Event) -> bool,
    connection: &Connection,
    namespace: &str,
    selection: &RefCell<JobEvents>,
) -> anyhow::Result<()> {
    let events = Api::<Event>::namespaced(connection.client.clone(), namespace);
    let mut changes = pin!(watcher::watcher(events, watcher::Config::default()).default_backoff());
    let mut printer = Printer::new(output);
    let mut listed = Vec::new();
    while let Some(change) = changes.next().await {
        let mut new = match change {
            Ok(watcher::Event::InitApply(event)) => {
                listed.push(event);
                continue;
            }
            Ok(watcher::Event::InitDone) => std::mem::take(&mut listed),
            Ok(watcher::Event::Apply(event)) => vec![event],
            Ok(watcher::Event::Init | watcher::Event::Delete(_)) => continue,
            Err(error) => {
                watch_error(error, "events")?;
                continue;
            }
        };
        selection.borrow().keep(&mut new);
        new.retain(&selects);
        if !printer.print(&new)? {
            break;
        }
    }
    Ok(())
}

/// Prints each version of an event once, although a watch lists all events again after a failure.
struct Printer {
    output: Output,
    has_headings: bool,
    /// The resource versions of the printed events, by their UIDs.
    printed: HashMap<String, String>,
}

impl Printer {
    fn new(output: Output) -> Self {
        Self {
            output,
            has_headings: false,
            printed: HashMap::new(),
        }
    }

    /// Prints events. Returns false if the reader of the output is gone.
    fn print(&mut self, events: &[Event]) -> io::Result<bool> {
        let mut text = String::new();
        let now = Timestamp::now();
        for event in events {
            let uid = event.metadata.uid.clone().unwrap_or_default();
            let version = event.metadata.resource_version.clone().unwrap_or_default();
            if self.printed.insert(uid, version.clone()) == Some(version) {
                continue;
            }
            match self.output {
                Output::Name => text += &name(event),
                Output::Json => text += &text_of(self.output, event)?,
                Output::Yaml => text += &format!("---\n{}", text_of(self.output, event)?),
                Output::Text | Output::Wide => {
                    if !std::mem::replace(&mut self.has_headings, true) {
                        text += &line(HEADINGS.map(str::to_owned));
                    }
                    text += &line(row(event, now));
                }
            }
        }
        write::print_lines(&text)
    }
}

fn line(cells: [String; 6]) -> String {
    let cells = cells.map(|cell| one_line(&cell));
    let mut line = String::new();
    for (n, cell) in cells.iter().enumerate() {
        let width = WIDTHS.get(n).copied().unwrap_or(0);
        line += &format!("{cell:width$}  ");
    }
    format!("{}\n", line.trim_end())
}
