//! Compares two sides job by job: the rules, the values that an author decides, and the objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use training_job::Settings;

use super::objects::{self, ChangeType, ObjectChange};
use crate::check::Job;
use crate::exit::Failure;
use crate::explain::{self, Explanation, Rule};
use crate::fields::{Fields, fields};
use crate::render::{Demand, demand};

/// A job of one side.
pub struct JobSide {
    /// The kind, namespace and name, such as `MXJob ml/train`.
    pub title: String,
    /// The rules and values. `None` for a job of a cluster that is invalid.
    pub rules: Option<Rules>,
    /// The objects that the operator creates, or those in the cluster.
    pub objects: Vec<Value>,
}

/// The rules that `explain` shows, and the values that the author of a job decides.
pub struct Rules {
    explanation: Explanation,
    fields: Fields,
}

/// The differences of a job.
pub(super) struct JobChange {
    pub(super) title: String,
    pub(super) change: ChangeType,
    /// The demand of its pods, on the side that has the job.
    pub(super) demand: Demand,
    /// The values that differ, in order of importance.
    pub(super) fields: Vec<Difference>,
    /// The rules that differ.
    pub(super) rules: Vec<Difference>,
    pub(super) objects: Vec<ObjectChange>,
}

/// A value or rule that differs. A side that does not have it is `None`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) name: String,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

impl Rules {
    /// Reads them from a job.
    ///
    /// # Errors
    /// The job is invalid with these settings.
    pub fn new(job: &Job, settings: &Settings) -> Result<Self, Failure> {
        let fields = fields(&job.kind, &job.object, settings);
        Ok(Self {
            explanation: explain::explain(job, settings)?,
            fields: fields.map_err(|errors| Failure::new(&job.origin, errors))?,
        })
    }
}

/// A job with a title that no other job of its side has.
pub(super) type Titled = (String, Job);

/// Gives each job its title. Jobs of one name, in files that are not applied together, have their file's path as well.
pub(super) fn titled(sides: [Vec<Job>; 2]) -> [Vec<Titled>; 2] {
    let mut repeated = BTreeSet::new();
    for side in &sides {
        let mut known = BTreeSet::new();
        repeated.extend(
            side.iter()
                .map(title)
                .filter(|title| !known.insert(title.clone())),
        );
    }
    sides.map(|side| {
        let jobs = side.into_iter().map(|job| match title(&job) {
            title if repeated.contains(&title) => (format!("{title} ({})", job.below), job),
            title => (title, job),
        });
        jobs.collect()
    })
}

/// Removes the jobs that both sides have in the same form, because to find the rules of a job takes long.
pub(super) fn remove_equal([old, new]: &mut [Vec<Titled>; 2]) {
    let by_title: BTreeMap<&String, &Job> = old.iter().map(|(title, job)| (title, job)).collect();
    let is_equal = |(title, job): &&Titled| {
        let other = by_title.get(title);
        other.is_some_and(|other| (&other.version, &other.object) == (&job.version, &job.object))
    };
    let equal: BTreeSet<String> = new
        .iter()
        .filter(is_equal)
        .map(|(title, _)| title.clone())
        .collect();
    for side in [old, new] {
        side.retain(|(title, _)| !equal.contains(title));
    }
}

/// Returns the jobs as a side, with their rules and objects.
pub(super) fn side(jobs: &[Titled], settings: &Settings) -> Result<Vec<JobSide>, Failure> {
    let sides = jobs.iter().map(|(title, job)| {
        Ok(JobSide {
            title: title.clone(),
            rules: Some(Rules::new(job, settings)?),
            objects: job.render(settings)?,
        })
    });
    sides.collect()
}

/// Returns the kind, namespace and name of a job. The namespace `default` is left out.
pub fn title(job: &Job) -> String {
    let metadata = &job.object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    match metadata["namespace"].as_str() {
        None | Some("default") => format!("{} {name}", job.kind.name()),
        Some(namespace) => format!("{} {namespace}/{name}", job.kind.name()),
    }
}

/// Returns the jobs that differ, in the order of the new side. Removed jobs come last.
pub(super) fn changes(old: &[JobSide], new: &[JobSide]) -> Result<Vec<JobChange>, Failure> {
    let mut before: BTreeMap<&str, &JobSide> = old.iter().map(|job| (job.title.as_str(), job)).collect();
    let mut changes = Vec::new();
    for job in new {
        changes.extend(change(before.remove(job.title.as_str()), Some(job))?);
    }
    for job in old.iter().filter(|job| before.contains_key(job.title.as_str())) {
        changes.extend(change(Some(job), None)?);
    }
    Ok(changes)
}

/// Returns the differences of a job, or `None` if there are none.
fn change(old: Option<&JobSide>, new: Option<&JobSide>) -> Result<Option<JobChange>, Failure> {
    let Some(side) = new.or(old) else { return Ok(None) };
    let [old_objects, new_objects] = [old, new].map(|side| side.map_or(&[][..], |side| &side.objects));
    let objects =
        objects::changes(old_objects, new_objects).map_err(|error| Failure::new("output", error))?;
    let gpus = |side: Option<&JobSide>| side.map(|side| demand(&side.objects).gpus());
    let mut fields = Vec::new();
    let mut rules = Vec::new();
    if let (Some(JobSide { rules: Some(old), .. }), Some(JobSide { rules: Some(new), .. })) = (old, new) {
        fields = differences(&old.fields, &new.fields);
        rules = rule_differences(&old.explanation, &new.explanation);
    }
    if let (Some(old), Some(new)) = (gpus(old), gpus(new))
        && old != new
    {
        let after_replicas = fields.iter().rposition(|field| field.name.ends_with(".replicas"));
        let gpus = Difference {
            name: "GPUs".to_owned(),
            old: Some(old),
            new: Some(new),
        };
        fields.insert(after_replicas.map_or(0, |at| at + 1), gpus);
    }
    let change = match (old, new) {
        (None, _) => ChangeType::Added,
        (_, None) => ChangeType::Removed,
        _ if objects.is_empty() && fields.is_empty() && rules.is_empty() => return Ok(None),
        _ => ChangeType::Changed,
    };
    Ok(Some(JobChange {
        title: side.title.clone(),
        change,
        demand: demand(&side.objects),
        fields,
        rules,
        objects,
    }))
}

/// Returns the fields whose values differ: numbers of replicas first, then in the order of the sides.
fn differences(old: &Fields, new: &Fields) -> Vec<Difference> {
    let value = |fields: &Fields, name: &str| {
        let field = fields.iter().find(|(other, _)| other == name);
        field.map(|(_, value)| value.clone())
    };
    let gone = old.iter().filter(|(name, _)| value(new, name).is_none());
    let mut differences: Vec<_> = new
        .iter()
        .chain(gone)
        .map(|(name, _)| Difference {
            name: name.clone(),
            old: value(old, name),
            new: value(new, name),
        })
        .filter(|difference| difference.old != difference.new)
        .collect();
    differences.sort_by_key(|difference| match difference.name.split_once('.') {
        None => 0,
        Some((_, "replicas")) => 1,
        Some(_) => 2,
    });
    differences
}

fn rule_differences(old: &Explanation, new: &Explanation) -> Vec<Difference> {
    let text = |explanation: &Explanation, topic: &str| {
        let rule = explanation.rules.iter().find(|rule| rule.topic == topic);
        rule.map(|rule| rule.text.clone())
    };
    let gone = old.rules.iter().filter(|rule| text(new, rule.topic).is_none());
    // A suspended job has no rules of its pods. `suspend` itself is a field.
    let is_suspended = old.events.is_empty() || new.events.is_empty();
    // The pods that are created at the start are compared as objects.
    let topics = new
        .rules
        .iter()
        .chain(gone)
        .filter(|rule| rule.topic != Rule::START && !is_suspended);
    let mut differences: Vec<_> = topics
        .map(|rule| Difference {
            name: rule.topic.to_owned(),
            old: text(old, rule.topic),
            new: text(new, rule.topic),
        })
        .filter(|difference| difference.old != difference.new)
        .collect();
    differences.extend(
        new.event_differences(old)
            .into_iter()
            .map(|[name, old, new]| Difference {
                name,
                old: Some(old),
                new: Some(new),
            }),
    );
    differences
}
