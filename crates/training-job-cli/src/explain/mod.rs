//! `explain`: describes a job's timeline.

pub(crate) mod dry_run;
mod success;
pub(crate) mod timeline;

use std::path::PathBuf;
use std::process::ExitCode;

use training_job::Settings;
use training_job::plan::ChildKind;

use crate::check::{Job, valid_jobs};
use crate::exit::{self, Failure};
use crate::help::help;
use crate::kinds::Kinds;
use crate::settings::SettingsArgs;
use crate::table::Table;
use crate::write;

use timeline::{Gang, JobTimeline};

const HELP: &str = "\
The answers are computed: the operator's planner runs on the job with simulated failures.

Examples:
  {program} explain job.yaml
  {program} explain job.yaml --gang-scheduler-name volcano
  {program} explain jobs/ | less

Exit codes:
  0  all jobs are explained
  2  bad YAML, an invalid job, or bad usage";

/// Describe how a job starts, succeeds, and reacts to each kind of failure.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// Files, directories (with all *.yaml, *.yml and *.json files below them), or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let settings = arguments.settings.read()?;
    let Some(jobs) = valid_jobs(kinds, &arguments.files) else {
        return Ok(exit::bad_input());
    };
    let texts = jobs.iter().map(|job| text(job, &settings));
    write::print(&texts.collect::<Result<Vec<_>, Failure>>()?.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the description of a job.
pub(crate) fn text(job: &Job, settings: &Settings) -> Result<String, Failure> {
    let timeline = (job.kind.timeline)(&job.object, &job.version, settings);
    let timeline = timeline.map_err(|errors| Failure::new(&job.origin, errors))?;
    Ok(describe(job, &timeline))
}

fn describe(job: &Job, timeline: &JobTimeline) -> String {
    let mut text = format!("{}\n", write::title(&job.object));
    if let Some(compatibility) = &timeline.compatibility {
        text += &format!("\n{compatibility}\n");
    }
    if let Some((field, manager)) = &timeline.other_manager {
        return text
            + &format!(
                "\n{field} names another controller, {manager}: this operator ignores the job. It creates no pods, writes no \
                 status, and sends no events.\n"
            );
    }
    let queue = timeline.queue.as_ref().map(|queue| {
        format!(
            "Queue: nothing is created before Kueue admits the job to {queue}. If Kueue preempts the job, all its pods are \
             deleted, which does not count as a restart.\n"
        )
    });
    let queue = queue.unwrap_or_default();
    if timeline.roles.is_empty() {
        return text + "\nThe job is suspended: nothing is created until it is resumed.\n" + &queue;
    }
    let names = |kind| {
        let of = timeline.created.iter().filter(|(k, _)| *k == kind);
        of.map(|(_, name)| name.as_str()).collect::<Vec<_>>()
    };
    let objects = timeline.created.iter().filter_map(|(kind, _)| match kind {
        ChildKind::Object(kind) => Some(format!("a {}", kind.kind)),
        _ => None,
    });
    let mut created: Vec<_> = objects.collect();
    created.extend(
        match (&timeline.common_service, names(ChildKind::Service).len()) {
            (Some(common), _) => Some(format!("the service {common} of all pods")),
            (None, 0) => None,
            (None, services) => Some(format!("{services} services")),
        },
    );
    created.push(format!("{} pods", names(ChildKind::Pod).len()));
    text += &format!(
        "\nStart: {} in this order: {}. ",
        created.join(", then "),
        shortened(&names(ChildKind::Pod)).join(", ")
    );
    text += &match &timeline.start_order[..] {
        [] => "No pod waits for another.\n".to_owned(),
        start_order => {
            let wait = |(role, others): &(String, String)| {
                format!("The {role} starts when all pods of {others} run.\n")
            };
            start_order.iter().map(wait).collect()
        }
    };
    text += &queue;
    text += &timeline.gang.as_ref().map(Gang::describe).unwrap_or_default();
    let roles: Vec<_> = timeline.roles.iter().map(|role| role.name.clone()).collect();
    text += &timeline.success.describe(&roles);
    if let Some(seconds) = timeline.deadline {
        text += &format!("Deadline: the job fails if it still runs {seconds} s after its start.\n");
    }
    text += &timeline.end.describe();
    text += "\nEvents of a replica, and their consequences:\n\n";
    let mut table = Table::new(&["ROLE", "EVENT", "CONSEQUENCE"]);
    for role in &timeline.roles {
        for (incident, consequence) in &role.incidents {
            table.row([role.name.clone(), incident.describe(), consequence.describe()]);
        }
    }
    text + &table.to_string()
}

/// Returns all names, or the first few and the last if there are many.
fn shortened<'n>(names: &[&'n str]) -> Vec<&'n str> {
    match names {
        [first @ .., last] if names.len() > 8 => {
            let few = first.iter().take(6).copied();
            few.chain(["…", *last]).collect()
        }
        _ => names.to_vec(),
    }
}
