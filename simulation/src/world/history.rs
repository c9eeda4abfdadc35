//! The log of a run. The same scenario gives the same log, byte for byte.

use std::fmt::{Display, Write};
use std::sync::Arc;

use kube_memory::{Change, Object};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::random::Hash;
use crate::world::job;
use crate::world::json::Json;
use crate::world::pod;

/// The log of one run. Clones share the same log.
#[derive(Clone)]
pub struct History {
    start: Instant,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    text: String,
    lines: usize,
}

impl Default for History {
    /// Creates a log that starts now.
    fn default() -> Self {
        Self {
            start: Instant::now(),
            log: Arc::default(),
        }
    }
}

impl History {
    /// Returns the milliseconds since the start.
    pub fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the start time.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Appends a line.
    pub fn note(&self, text: impl Display) {
        // Writing to a string does not fail.
        self.line(|line| {
            let _ = write!(line, "{text}");
        });
    }

    fn line(&self, add: impl FnOnce(&mut String)) {
        let now = self.now();
        let mut log = self.log.lock();
        let _ = write!(log.text, "{:>4}.{:03} ", now / 1_000, now % 1_000);
        add(&mut log.text);
        log.text.push('\n');
        log.lines += 1;
    }

    /// Appends a line for a change of a stored object. `operator` is the number of the operator that made it.
    pub fn change(&self, change: &Change, operator: Option<usize>) {
        let details = Details {
            plural: change.plural(),
            object: change.object(),
        };
        // Most lines are changes, so they are built without formatting.
        self.line(|line| {
            *line += &change.resource_version().to_string();
            for word in [change.action().as_str(), change.kind(), change.name()] {
                line.push(' ');
                *line += word;
            }
            line.push(' ');
            details.write(line);
            match operator {
                Some(number) => {
                    let _ = write!(line, "(op{number})");
                }
                None => *line += "(others)",
            }
        });
    }

    /// Returns the whole log.
    pub fn text(&self) -> String {
        self.log.lock().text.clone()
    }

    /// Returns the number of lines.
    pub fn lines(&self) -> usize {
        self.log.lock().lines
    }

    /// Returns the hash of the whole log.
    pub fn hash(&self) -> u64 {
        let mut hash = Hash::default();
        hash.add(self.log.lock().text.as_bytes());
        hash.value()
    }
}

/// The details of an object in a log line.
struct Details<'a> {
    plural: &'a str,
    object: &'a Object,
}

impl Details<'_> {
    /// Returns the end of the object's UID, which distinguishes the objects of one run.
    fn uid(&self) -> &str {
        let uid = Json::meta(self.object, "uid").as_str().unwrap_or_default();
        let end = uid.len().checked_sub(5).and_then(|at| uid.get(at..));
        end.unwrap_or(uid)
    }

    /// Appends the UID, attempt and phase of a pod or a group.
    fn of_attempt(&self, line: &mut String) {
        *line += self.uid();
        let annotations = Json::meta(self.object, "annotations");
        if let Some(attempt) = annotations["training.kubeflow.org/restart-attempt"].as_str() {
            line.push('+');
            *line += attempt;
        }
        line.push(' ');
        *line += pod::phase(self.object);
        line.push(' ');
    }

    fn event(&self, line: &mut String) {
        for (key, after) in [("reason", ": "), ("message", " ")] {
            *line += self.object[key].as_str().unwrap_or_default();
            *line += after;
        }
    }

    fn conditions(&self, line: &mut String) {
        for (index, condition) in job::conditions(self.object).enumerate() {
            if index > 0 {
                line.push(' ');
            }
            *line += condition["type"].as_str().unwrap_or("?");
            let status = condition["status"].as_str();
            if status != Some("True") || condition["type"].as_str().is_none() {
                line.push('=');
                *line += status.unwrap_or("?");
            }
        }
    }

    fn write(&self, line: &mut String) {
        let deleting = if job::is_deleting(self.object) {
            "deleting "
        } else {
            ""
        };
        match self.plural {
            "pods" => {
                self.of_attempt(line);
                *line += deleting;
            }
            job::GROUPS => {
                self.of_attempt(line);
                let _ = write!(line, "of {} {deleting}", self.object["spec"]["minMember"]);
            }
            "events" => self.event(line),
            _ => {
                *line += self.uid();
                line.push(' ');
                *line += deleting;
                if self.plural != "services" {
                    line.push('[');
                    self.conditions(line);
                    *line += "] ";
                    let fields = ["progress", "recovery"].into_iter();
                    for value in fields.filter_map(|field| self.object["status"].get(field)) {
                        *line += &value.to_string();
                    }
                    line.push(' ');
                }
            }
        }
    }
}
