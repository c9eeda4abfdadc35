//! `suspend`, `resume`, `restart` and `scale`: changes of a job's spec.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use jiff::SignedDuration;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use training_job::api::ConditionType;
use training_job_client::Signals;
use training_job_client::call_error::explained;
use training_job_client::cluster::with_timeout;
use training_job_review::report::note;
use training_job_review::{Failure, Kinds, exit, write};

use crate::connection::{Connection, connect};
use crate::help;
use crate::job::JobArgs;
use crate::observe::find;
use crate::outline::Outline;
use crate::patch::patch;
use crate::stored::StoredJob;
use crate::wait::{Ended, until};

const SUSPEND_HELP: &str = "\
The operator deletes the job's pods and services. Time of the deadline and restarts do not count meanwhile, and nothing
of the replicas' work is kept but what they stored themselves, such as checkpoints.

Examples:
  {program} suspend train
  {program} suspend mxjob/train -n ml

Rights (in the namespace):
  get    jobs
  patch  jobs

Exit codes:
  0  the job has suspend: true, now or before
  2  no such job, a job that has ended, or bad usage";

const RESUME_HELP: &str = "\
The operator creates the pods and services of all replicas. The time of the deadline begins again.

Examples:
  {program} resume train

Rights (in the namespace):
  get    jobs
  patch  jobs

Exit codes:
  0  the job has suspend: false, now or before
  2  no such job, a job that has ended, or bad usage";

const RESTART_HELP: &str = "\
The job is suspended until the operator has seen it, and then resumed: the operator deletes the pods of all replicas and
creates new ones once they are gone. The restart counts against no limit, whatever the restart policies, and the time
of the deadline begins again. If the command is interrupted, it resumes the job.

Deleting pods instead would be a failure that counts against backoffLimit.

Examples:
  {program} restart train
  {program} restart train && {program} logs train -f

Rights (in the namespace):
  get    jobs
  list   jobs
  watch  jobs
  patch  jobs

Exit codes:
  0    the job restarts
  1    no operator has suspended the job in time; it is resumed
  2    no such job, a job that is suspended, has ended or is in a queue, or bad usage
  130  ended by Ctrl-C; the job is resumed";

const SCALE_HELP: &str = "\
The operator creates or deletes the pods with the highest indexes of the role. If the environment of the other replicas
depends on the number, the whole job restarts, which counts against no limit, and a note says so before. An elastic
PyTorchJob, an MPIJob and a TFJob with dynamic workers accept members that come and go, and go on.

Examples:
  {program} scale train --role worker=4
  {program} scale train --role worker=4 --role ps=2

Rights (in the namespace):
  get    jobs
  patch  jobs

Exit codes:
  0  the job has these numbers of replicas, now or before
  2  no such job or role, a job that has ended, a role with two numbers, a number that the API server refuses or that the
     kind derives from other fields, or bad usage";

/// Suspend a job: its pods are deleted until it is resumed.
#[derive(Debug, clap::Args)]
#[command(after_help = help(SUSPEND_HELP))]
pub(crate) struct SuspendArgs {
    #[command(flatten)]
    job: JobArgs,
}

/// Resume a suspended job.
#[derive(Debug, clap::Args)]
#[command(after_help = help(RESUME_HELP))]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    job: JobArgs,
}

/// Restart all replicas of a job.
#[derive(Debug, clap::Args)]
#[command(after_help = help(RESTART_HELP))]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    job: JobArgs,
    /// The time in which the operator has to suspend the job.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = super::duration)]
    timeout: SignedDuration,
}

/// Change the numbers of replicas of roles.
#[derive(Debug, clap::Args)]
#[command(after_help = help(SCALE_HELP))]
pub(crate) struct ScaleArgs {
    #[command(flatten)]
    job: JobArgs,
    /// A role and its number of replicas; can be repeated.
    #[arg(long, value_name = "ROLE=NUMBER", required = true, value_parser = role_and_number)]
    role: Vec<(String, u32)>,
}

fn role_and_number(text: &str) -> Result<(String, u32), String> {
    let parts = text
        .split_once('=')
        .and_then(|(role, number)| Some((role.to_lowercase(), number.parse().ok()?)));
    parts.ok_or_else(|| "must be a role and its number of replicas, such as worker=4".to_owned())
}

/// The number of attempts to change a job that others change as well.
const MAX_ATTEMPTS: usize = 5;

/// Sets fields of a job. `fields` returns their paths with the values that they get, and is called again if the job has
/// changed meanwhile. Returns the job as it was before, and true if a field had another value.
async fn set(
    connection: &Connection,
    kinds: &Kinds,
    argument: &str,
    fields: impl Fn(&StoredJob) -> anyhow::Result<Vec<(String, Value)>>,
) -> anyhow::Result<(StoredJob, bool)> {
    for attempt in 1..=MAX_ATTEMPTS {
        let job = find(connection, kinds, argument).await?;
        let (object, change) = changed(&job, fields(&job)?)?;
        if object == job.object {
            return Ok((job, false));
        }
        let api = Api::<DynamicObject>::namespaced_with(
            connection.client.clone(),
            job.namespace(),
            &job.kind.resource,
        );
        let parameters = PatchParams {
            field_manager: Some("kubectl-training".to_owned()),
            ..PatchParams::default()
        };
        match with_timeout(api.patch(job.name(), &parameters, &Patch::Merge(&change))).await? {
            Ok(_) => return Ok((job, true)),
            Err(kube::Error::Api(status)) if status.code == 409 && attempt < MAX_ATTEMPTS => {}
            Err(error) => return Err(explained(error, "patch", &job.kind.resource.plural)),
        }
    }
    bail!("the job is changed by others all the time; try again")
}

/// Returns the object of a job with these values of fields, and the merge patch that sets them.
fn changed(job: &StoredJob, fields: Vec<(String, Value)>) -> anyhow::Result<(Value, Value)> {
    let (mut object, mut change) = (job.object.clone(), json!({}));
    for (path, value) in fields {
        let one = patch(&object, &path, value)?;
        json_patch::merge(&mut object, &one);
        json_patch::merge(&mut change, &one);
    }
    Ok((object, change))
}

fn outline(job: &StoredJob) -> anyhow::Result<&Outline> {
    job.outline
        .as_ref()
        .map_err(|errors| anyhow!("{} is invalid: {errors}", job.argument()))
}

fn refuse_ended(job: &StoredJob) -> anyhow::Result<()> {
    if job.status.is_finished() {
        bail!(
            "{} has ended ({}); create the job again to run it again",
            job.argument(),
            job.state()
        );
    }
    Ok(())
}

/// Returns the field that suspends a job that has not ended.
fn suspend_field(job: &StoredJob, value: bool) -> anyhow::Result<Vec<(String, Value)>> {
    refuse_ended(job)?;
    let outline = outline(job)?;
    // An unset field and false are the same.
    match outline.policy.suspend == value {
        true => Ok(Vec::new()),
        false => Ok(vec![(outline.suspend_field.clone(), json!(value))]),
    }
}

fn done(job: &StoredJob, is_changed: bool, changed: &str, unchanged: &str) -> anyhow::Result<()> {
    let word = if is_changed { changed } else { unchanged };
    Ok(write::print(&format!("{} {word}\n", job.resource_name()))?)
}

pub(crate) fn suspend(arguments: &SuspendArgs, kinds: &Kinds) -> Result<ExitCode, Failure> {
    set_suspend(&arguments.job, kinds, true, ["suspended", "was suspended before"])
}

pub(crate) fn resume(arguments: &ResumeArgs, kinds: &Kinds) -> Result<ExitCode, Failure> {
    set_suspend(&arguments.job, kinds, false, ["resumed", "was not suspended"])
}

fn set_suspend(
    arguments: &JobArgs,
    kinds: &Kinds,
    value: bool,
    words: [&str; 2],
) -> Result<ExitCode, Failure> {
    connect(&arguments.connection, async |connection| {
        let (job, is_changed) = set(&connection, kinds, &arguments.job, |job| {
            suspend_field(job, value)
        })
        .await?;
        done(&job, is_changed, words[0], words[1])?;
        if let Some(queue) = job.queue() {
            note(&format!(
                "queue {queue} of Kueue decides when the job runs, and may change the field again"
            ));
        }
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn restart(arguments: &RestartArgs, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let timeout = Duration::try_from(arguments.timeout).unwrap_or_default();
    connect(&arguments.job.connection, async |connection| {
        let argument = &arguments.job.job;
        let start = |job: &StoredJob| {
            if outline(job)?.policy.suspend {
                bail!(
                    "{0} is suspended; start it with: kubectl training resume {0}",
                    job.argument()
                );
            }
            if let Some(queue) = job.queue() {
                bail!(
                    "queue {queue} of Kueue sets suspend of {}; set spec.active of its Workload to false and to true \
                     again to restart it",
                    job.argument()
                );
            }
            suspend_field(job, true)
        };
        // The job must not stay suspended, whatever ends the command from here on.
        let mut signals = Signals::listen()?;
        let (job, _) = set(&connection, kinds, argument, start).await?;
        let is_suspended = |job: &StoredJob| match job.status.is(ConditionType::Suspended) {
            true => Some(Ok(())),
            false => job
                .status
                .is_finished()
                .then(|| Err("the job has ended meanwhile".to_owned())),
        };
        let ended = tokio::select! {
            ended = until(&connection, &job, Some(timeout), is_suspended) => Ok(ended),
            code = signals.next() => Err(code),
        };
        let named = job.argument();
        let resumed = set(&connection, kinds, &named, |job| suspend_field(job, false)).await;
        // A job that was deleted or has ended cannot be resumed.
        if !matches!(ended, Ok(Ok(Ended::Impossible(_)))) {
            resumed.with_context(|| {
                format!("{named} stays suspended; when this is solved, run: kubectl training resume {named}")
            })?;
        }
        match ended {
            Ok(Ok(Ended::Met)) => {
                done(&job, true, "restarted", "")?;
                Ok(ExitCode::SUCCESS)
            }
            Ok(Ok(Ended::TimedOut)) => {
                note(&format!(
                    "no operator has suspended {named} in time, so it is not restarted; run: training-operator doctor"
                ));
                Ok(exit::check_failed())
            }
            Ok(Ok(Ended::Impossible(why))) => bail!("{named}: {why}"),
            Ok(Err(error)) => Err(error),
            Err(code) => Ok(ExitCode::from(code)),
        }
    })
}

/// Returns the fields that give roles these numbers of replicas.
///
/// # Errors
/// The job has no such role, or its kind derives the number of the role from other fields.
pub(super) fn scaled_fields(
    job: &StoredJob,
    wanted: &BTreeMap<&str, u32>,
) -> anyhow::Result<Vec<(String, Value)>> {
    let roles = &outline(job)?.roles;
    let mut fields = Vec::new();
    for (slug, number) in wanted {
        let Some(role) = roles.iter().find(|role| role.slug == *slug) else {
            let known: Vec<&str> = roles.iter().map(|role| role.slug.as_str()).collect();
            bail!(
                "--role {slug}: {} has no such role; use one of {}",
                job.argument(),
                known.join(", ")
            );
        };
        if role.replicas != *number {
            fields.push((role.replicas_path.clone(), json!(number)));
        }
    }
    let scaled = StoredJob::of_value(&job.kind, changed(job, fields.clone())?.0);
    if let Some(text) = scaled.outline.as_ref().ok().and_then(Outline::resize_note) {
        note(&text);
    }
    check_numbers(&scaled, wanted)?;
    Ok(fields)
}

/// Returns an error if a role of the scaled job does not have its wanted number of replicas.
pub(super) fn check_numbers(job: &StoredJob, wanted: &BTreeMap<&str, u32>) -> anyhow::Result<()> {
    // The API server describes the errors of a job that would be invalid.
    for role in job.outline.iter().flat_map(|outline| &outline.roles) {
        if let Some(number) = wanted.get(&*role.slug).filter(|number| **number != role.replicas) {
            bail!(
                "--role {}={number}: {} derives this number from other fields, and {} has no effect; change those \
                 fields with: kubectl edit {} --namespace {}",
                role.slug,
                job.kind.name(),
                role.replicas_path,
                job.resource_name(),
                job.namespace()
            );
        }
    }
    Ok(())
}

pub(crate) fn scale(arguments: &ScaleArgs, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let mut wanted = BTreeMap::new();
    for (role, number) in &arguments.role {
        if let Some(other) = wanted
            .insert(role.as_str(), *number)
            .filter(|other| other != number)
        {
            let problem = format!("{role} has the numbers {other} and {number}; keep one of them");
            return Err(Failure::new("--role", problem));
        }
    }
    connect(&arguments.job.connection, async |connection| {
        let fields = |job: &StoredJob| {
            refuse_ended(job)?;
            scaled_fields(job, &wanted)
        };
        let (job, is_changed) = set(&connection, kinds, &arguments.job.job, fields).await?;
        done(
            &job,
            is_changed,
            "scaled",
            "has these numbers of replicas already",
        )?;
        Ok(ExitCode::SUCCESS)
    })
}
