//! `training-operator explain`: a job's life in plain words.

mod trial;

use std::process::ExitCode;

use training_job::plan::ChildKind;

use crate::check::{Job, check};
use crate::cli::Explain;
use crate::exit::{self, Failure};
use crate::table::Table;
use crate::{finding, write};

pub(crate) use trial::life;

/// What the operator does in a job's life, found by trying.
pub(crate) struct Life {
    /// What is made at the start, in order.
    made: Vec<(ChildKind, String)>,
    /// Its roles that have replicas; none if it is suspended.
    roles: Vec<RoleLife>,
    /// Seconds after which it fails.
    deadline: Option<i64>,
    /// What is left of it.
    end: End,
}

/// What is left of a job once it has ended.
struct End {
    /// Of a replica that runs then: its pod, its service.
    running: Left,
    /// Of one that has ended.
    finished: Left,
    /// Seconds until the job itself is deleted.
    time_to_live: Option<i64>,
}

/// Which of a replica's objects are left.
struct Left {
    pod: bool,
    service: bool,
}

struct RoleLife {
    name: String,
    replicas: u32,
    /// Whether the job has succeeded once all of this role have, whatever the others do.
    decides: bool,
    events: Vec<(Event, Outcome)>,
}

/// Something that happens to one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Exit(i32),
    Evicted,
    Deleted,
    /// The job has been active for so many seconds.
    Deadline(i64),
}

/// What follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Fails,
    /// `scope` restarts, and the job fails at the next such event after this many; never if unset.
    Restarts {
        scope: &'static str,
        times: Option<i32>,
    },
    /// It gets a new pod, which counts as no restart.
    Replaced,
    RunsOn,
}

impl Event {
    const ALL: [Self; 6] = [
        Self::Exit(1),
        Self::Exit(137),
        Self::Exit(139),
        Self::Exit(143),
        Self::Evicted,
        Self::Deleted,
    ];

    fn words(self) -> String {
        match self {
            Self::Exit(code @ 137) => format!("exit code {code} (killed)"),
            Self::Exit(code @ 139) => format!("exit code {code} (segmentation fault)"),
            Self::Exit(code @ 143) => format!("exit code {code} (terminated)"),
            Self::Exit(code) => format!("exit code {code}"),
            Self::Evicted => "evicted, or its node lost".to_owned(),
            Self::Deleted => "its pod deleted by somebody".to_owned(),
            Self::Deadline(seconds) => format!("still running after {seconds} s (the deadline)"),
        }
    }
}

impl End {
    fn words(&self) -> String {
        let service = |left: &Left| match (left.pod, left.service) {
            (false, false) => " with their services",
            (true, false) => ", without their services",
            _ => "",
        };
        let running = match self.running.pod {
            true => "go on",
            false => "are deleted",
        };
        let finished = match self.finished.pod {
            true => "stay, with their logs",
            false => "are deleted",
        };
        let mut text = format!(
            "End: pods that still run {running}{}; those that have ended {finished}{}.",
            service(&self.running),
            service(&self.finished)
        );
        if let Some(seconds) = self.time_to_live {
            text += &format!(" {seconds} s later the job is deleted with all it has.");
        }
        text + "\n"
    }
}

impl Outcome {
    fn words(&self) -> String {
        match self {
            Self::Fails => "the job fails".to_owned(),
            Self::Replaced => "it gets a new pod, without limit".to_owned(),
            Self::RunsOn => "nothing: the job runs on".to_owned(),
            Self::Restarts { scope, times: None } => format!("{scope} restarts, without limit"),
            Self::Restarts {
                scope,
                times: Some(1),
            } => {
                format!("{scope} restarts once; the next time the job fails")
            }
            Self::Restarts {
                scope,
                times: Some(times),
            } => format!("{scope} restarts, {times} times; the next time the job fails"),
        }
    }
}

/// Explains jobs.
pub(crate) fn run(arguments: &Explain) -> Result<ExitCode, Failure> {
    let checked = check(&arguments.files);
    finding::print(&checked.findings);
    if !checked.is_good() {
        return Ok(exit::bad_input());
    }
    let texts = checked.jobs.iter().map(|job| {
        let life = (job.kind.explain)(&job.object);
        let life = life.map_err(|refusal| Failure::new(&job.origin, format!("{refusal:?}")))?;
        Ok(text(job, &life))
    });
    write::print(&texts.collect::<Result<Vec<_>, Failure>>()?.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn text(job: &Job, life: &Life) -> String {
    let mut text = format!("{}\n", write::title(&job.object));
    if life.roles.is_empty() {
        return text + "\nThe job is suspended: nothing is made until it is resumed.\n";
    }
    let names = |kind| {
        let of = life.made.iter().filter(|(k, _)| *k == kind);
        of.map(|(_, name)| name.as_str()).collect::<Vec<_>>()
    };
    text += &format!(
        "\nStart: {} services, then {} pods in this order: {}. No pod waits for another.\n",
        names(ChildKind::Service).len(),
        names(ChildKind::Pod).len(),
        shortened(&names(ChildKind::Pod)).join(", ")
    );
    let deciding = life.roles.iter().filter(|role| role.decides);
    let deciding: Vec<_> = deciding
        .map(|role| match role.replicas {
            1 => format!("{}-0 has", role.name),
            n => format!("all {n} replicas of {} have", role.name),
        })
        .collect();
    text += &match &deciding[..] {
        [] => "Success: when all replicas have ended with exit code 0.\n".to_owned(),
        deciding => format!(
            "Success: when {} ended with exit code 0, whatever the others do.\n",
            deciding.join(" ended with exit code 0, or ")
        ),
    };
    if let Some(seconds) = life.deadline {
        text += &format!("Deadline: {seconds} s after its start a job that still runs fails.\n");
    }
    text += &life.end.words();
    text += "\nWhen this happens to a replica:\n\n";
    let mut table = Table::new(&["ROLE", "EVENT", "THEN"]);
    for role in &life.roles {
        for (event, outcome) in &role.events {
            table.row([role.name.clone(), event.words(), outcome.words()]);
        }
    }
    text + &table.to_string()
}

/// The first few names and the last.
fn shortened<'n>(names: &[&'n str]) -> Vec<&'n str> {
    match names {
        [first @ .., last] if names.len() > 8 => {
            let few = first.iter().take(6).copied();
            few.chain(["…", *last]).collect()
        }
        _ => names.to_vec(),
    }
}
