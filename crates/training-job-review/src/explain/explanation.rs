//! The rules of a job as rows, which commands print and compare.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use training_job::plan::ChildKind;

use super::timeline::{Gang, Incident, JobTimeline, count};
use crate::markdown;
use crate::table::Table;

/// The rules by which a job starts, succeeds, fails and is cleaned up.
#[derive(Debug, Serialize)]
pub struct Explanation {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    /// In the order of a job's life.
    pub rules: Vec<Rule>,
    /// By role, in the order of the job; each exit code is an event. Empty if the job has no pods.
    #[serde(serialize_with = "serialize_events")]
    pub(crate) events: Vec<Event>,
}

/// A rule that concerns the whole job.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The same in all jobs, such as `Success`.
    pub(crate) topic: &'static str,
    pub(crate) text: String,
}

/// An event that affects one replica of a role.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) role: String,
    pub(crate) incident: Incident,
    pub(crate) consequence: String,
}

impl Rule {
    /// The topic of the objects that are created at the start.
    pub(crate) const START: &'static str = "Start";
}

/// Events with the same consequence, as one row of a table.
struct MergedEvents<C> {
    roles: Vec<String>,
    incidents: Vec<Incident>,
    consequence: C,
}

impl Explanation {
    pub(super) fn new(job: &Value, timeline: &JobTimeline) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let events = timeline.roles.iter().flat_map(|role| {
            role.incidents.iter().map(|(incident, consequence)| Event {
                role: role.name.clone(),
                incident: *incident,
                consequence: consequence.describe(),
            })
        });
        let mut explanation = Self {
            kind: text(&job["kind"]),
            namespace: job["metadata"]["namespace"].as_str().map(str::to_owned),
            name: text(&job["metadata"]["name"]),
            rules: Vec::new(),
            events: events.collect(),
        };
        explanation.add_rules(timeline);
        explanation
    }

    fn add_rules(&mut self, timeline: &JobTimeline) {
        let rules = &mut self.rules;
        let mut add = |topic, text: String| rules.push(Rule { topic, text });
        if let Some(compatibility) = &timeline.compatibility {
            add("Compatibility", compatibility.clone());
        }
        if let Some((field, manager)) = &timeline.other_manager {
            let text = format!(
                "{field} names another controller, {manager}: this operator ignores the job. It creates no pods, writes no \
                 status, and sends no events."
            );
            self.events.clear();
            return add("Controller", text);
        }
        if timeline.roles.is_empty() {
            add(
                Rule::START,
                "the job is suspended: nothing is created until it is resumed.".to_owned(),
            );
        } else {
            add(Rule::START, timeline.describe_start());
            add("Order", timeline.describe_order());
        }
        if let Some(queue) = &timeline.queue {
            let text = format!(
                "nothing is created before Kueue admits the job to {queue}. If Kueue preempts the job, all its pods are \
                 deleted, which does not count as a restart."
            );
            add("Queue", text);
        }
        if timeline.roles.is_empty() {
            return;
        }
        let gang: Vec<_> = timeline.gang.iter().map(Gang::describe).collect();
        if !gang.is_empty() {
            add("Gang", gang.join(" "));
        }
        let roles: Vec<_> = timeline.roles.iter().map(|role| role.name.clone()).collect();
        let success = timeline.described_success.clone();
        add(
            "Success",
            success.unwrap_or_else(|| timeline.success.describe(&roles)),
        );
        if let Some(seconds) = timeline.deadline {
            add(
                "Deadline",
                format!("the job fails if it still runs {seconds} s after its start."),
            );
        }
        if let Some(stalls) = &timeline.stalls {
            add("Stalls", stalls.clone());
        }
        add("End", timeline.end.describe());
    }

    /// Adds the progress in the status of a stored job, if it is watched.
    pub(super) fn add_progress(&mut self, progress: &Value) {
        let [summary, line, at] =
            ["summary", "line", "at"].map(|field| progress[field].as_str().unwrap_or_default());
        let known: Vec<_> = [
            (!summary.is_empty()).then(|| summary.to_owned()),
            (!at.is_empty()).then(|| format!("at {at}")),
            (!line.is_empty()).then(|| format!("the last line is: {line}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !known.is_empty() {
            self.rules.push(Rule {
                topic: "Progress",
                text: known.join(", "),
            });
        }
    }

    /// Returns the explanation for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.title());
        for rule in &self.rules {
            text += &format!("{}: {}\n", rule.topic, rule.text);
        }
        if !self.events.is_empty() {
            let mut table = Table::new(&["ROLE", "EVENT", "CONSEQUENCE"]);
            self.event_rows().for_each(|row| table.row(row));
            text += &format!("\nEvents of a replica, and their consequences:\n\n{table}");
        }
        text
    }

    /// Returns the explanation as a section of a Markdown document.
    pub(super) fn markdown(&self) -> String {
        let rules = self.rules.iter();
        let rules = rules.map(|rule| [rule.topic.to_owned(), markdown::cell(&rule.text)]);
        let mut text = format!("### {}\n\n", self.title());
        text += &markdown::table(["Rule", "Text"], rules);
        if !self.events.is_empty() {
            let rows = self.event_rows().map(|row| row.map(|cell| markdown::cell(&cell)));
            text += "\n";
            text += &markdown::table(["Role", "Event", "Consequence"], rows);
        }
        text
    }

    fn title(&self) -> String {
        let name = match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        };
        format!("{} {name}", self.kind)
    }

    /// Returns the rows of the table of events: the roles, the events and their common consequence.
    fn event_rows(&self) -> impl Iterator<Item = [String; 3]> {
        let events = self
            .events
            .iter()
            .map(|event| (event, event.consequence.as_str()));
        merge(events).into_iter().map(|row| {
            let [roles, events] = self.describe(&row);
            [roles, events, row.consequence.to_owned()]
        })
    }

    /// Returns the events whose consequences differ from those of `old`, with the old and the new consequence. Events
    /// of roles that one of the two lacks are left out.
    pub(crate) fn event_differences(&self, old: &Self) -> Vec<[String; 3]> {
        let old = old.events.iter().map(|old| ((&old.role, old.incident), old));
        let old: BTreeMap<_, _> = old.collect();
        let differing = self.events.iter().filter_map(|new| {
            let old = old.get(&(&new.role, new.incident))?;
            let consequences = (old.consequence.as_str(), new.consequence.as_str());
            (old.consequence != new.consequence).then_some((new, consequences))
        });
        let rows = merge(differing).into_iter().map(|row| {
            let [roles, events] = self.describe(&row);
            let (old, new) = row.consequence;
            [format!("{roles}: {events}"), old.to_owned(), new.to_owned()]
        });
        rows.collect()
    }

    /// Returns the names of the roles and of the events of a row.
    fn describe<C>(&self, row: &MergedEvents<C>) -> [String; 2] {
        let count = self.events.chunk_by(|a, b| a.role == b.role).count();
        let is_all = count > 1 && row.roles.len() == count;
        let roles = if is_all {
            "any role".to_owned()
        } else {
            row.roles.join(", ")
        };
        [roles, Incident::describe_all(&row.incidents)]
    }
}

/// Serializes each event of each role, and the exit codes with the same consequence as one event.
fn serialize_events<S: Serializer>(events: &[Event], serializer: S) -> Result<S::Ok, S::Error> {
    let of_role = events.chunk_by(|a, b| a.role == b.role);
    let rows = of_role.flat_map(|events| {
        let key = |event: &Event| match event.incident {
            Incident::Exit(_) => None,
            other => Some(other),
        };
        merge(
            events
                .iter()
                .map(|event| (event, (event.consequence.as_str(), key(event)))),
        )
    });
    serializer.collect_seq(rows.map(|row| {
        let event = Incident::describe_all(&row.incidents);
        json!({"role": row.roles[0], "event": event, "consequence": row.consequence.0})
    }))
}

/// Merges the events of a role that have the same consequence, and then the roles with the same events.
fn merge<'e, C: PartialEq>(events: impl Iterator<Item = (&'e Event, C)>) -> Vec<MergedEvents<C>> {
    let mut of_roles: Vec<MergedEvents<C>> = Vec::new();
    for (event, consequence) in events {
        let same = |row: &&mut MergedEvents<C>| row.roles[0] == event.role && row.consequence == consequence;
        match of_roles.iter_mut().find(same) {
            Some(row) => row.incidents.push(event.incident),
            None => of_roles.push(MergedEvents {
                roles: vec![event.role.clone()],
                incidents: vec![event.incident],
                consequence,
            }),
        }
    }
    let mut merged: Vec<MergedEvents<C>> = Vec::new();
    for row in of_roles {
        let same = |other: &&mut MergedEvents<C>| {
            other.incidents == row.incidents && other.consequence == row.consequence
        };
        match merged.iter_mut().find(same) {
            Some(other) => other.roles.extend(row.roles),
            None => merged.push(row),
        }
    }
    merged
}

impl JobTimeline {
    fn describe_start(&self) -> String {
        let names = |kind| {
            let of = self.created.iter().filter(|(k, _)| *k == kind);
            of.map(|(_, name)| name.as_str()).collect::<Vec<_>>()
        };
        let objects = self.created.iter().filter_map(|(kind, _)| match kind {
            ChildKind::Object(kind) => Some(format!("a {}", kind.kind)),
            _ => None,
        });
        let mut created: Vec<_> = objects.collect();
        created.extend(match (&self.common_service, names(ChildKind::Service).len()) {
            (Some(common), _) => Some(format!("the service {common} of all pods")),
            (None, 0) => None,
            (None, services) => Some(count(services, "service")),
        });
        created.push(count(names(ChildKind::Pod).len(), "pod"));
        format!(
            "{} in this order: {}.",
            created.join(", then "),
            shortened(&names(ChildKind::Pod)).join(", ")
        )
    }

    fn describe_order(&self) -> String {
        if self.start_order.is_empty() {
            return "no pod waits for another.".to_owned();
        }
        format!("{}.", self.start_order.join("; "))
    }
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
