//! What happened in a run, line by line: the run's identity.

use std::fmt::{self, Display, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use training_job::memory::{Change, Object};

use crate::job::{self, Json};
use crate::random::Hash;

/// The log of one run. Clones are handles to the same log.
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
    /// A log that begins now.
    fn default() -> Self {
        Self {
            start: Instant::now(),
            log: Arc::default(),
        }
    }
}

impl History {
    /// Milliseconds since the beginning.
    pub fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The beginning.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Adds a line.
    pub fn note(&self, text: impl Display) {
        use std::fmt::Write;
        let now = self.now();
        let mut log = self.log();
        // Writing into a string does not fail.
        let _ = writeln!(log.text, "{:>4}.{:03} {text}", now / 1_000, now % 1_000);
        log.lines += 1;
    }

    /// Adds a line for a change of what is stored, which this operator made, or others.
    pub fn change(&self, change: &Change, operator: Option<usize>) {
        let (verb, kind, name) = (change.action().as_str(), change.kind(), change.name());
        let version = change.resource_version();
        let gist = Gist {
            plural: change.plural(),
            object: change.object(),
        };
        match operator {
            Some(number) => self.note(format_args!("{version} {verb} {kind} {name} {gist}(op{number})")),
            None => self.note(format_args!("{version} {verb} {kind} {name} {gist}(others)")),
        }
    }

    /// The whole log.
    pub fn text(&self) -> String {
        self.log().text.clone()
    }

    /// How many lines there are.
    pub fn lines(&self) -> usize {
        self.log().lines
    }

    /// The hash of the whole log.
    pub fn hash(&self) -> u64 {
        let mut hash = Hash::default();
        hash.add(self.log().text.as_bytes());
        hash.value()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is worth a look in an object.
struct Gist<'a> {
    plural: &'a str,
    object: &'a Object,
}

impl Gist<'_> {
    /// The end of its UID, which tells objects of one run apart.
    fn uid(&self) -> &str {
        let uid = Json::meta(self.object, "uid").as_str().unwrap_or_default();
        let end = uid.len().checked_sub(5).and_then(|at| uid.get(at..));
        end.unwrap_or(uid)
    }

    fn pod(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.uid())?;
        let annotations = Json::meta(self.object, "annotations");
        if let Some(attempt) = annotations["training.kubeflow.org/restart-attempt"].as_str() {
            write!(f, "+{attempt}")?;
        }
        write!(f, " {} ", job::phase(self.object))
    }

    fn event(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = |key| self.object[key].as_str().unwrap_or_default();
        write!(f, "{}: {} ", text("reason"), text("message"))
    }

    fn conditions(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, condition) in job::conditions(self.object).enumerate() {
            let before = if index > 0 { " " } else { "" };
            match (condition["type"].as_str(), condition["status"].as_str()) {
                (Some(kind), Some("True")) => write!(f, "{before}{kind}")?,
                (kind, status) => {
                    write!(f, "{before}{}={}", kind.unwrap_or("?"), status.unwrap_or("?"))?;
                }
            }
        }
        Ok(())
    }
}

impl Display for Gist<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let deleting = if job::is_deleting(self.object) {
            "deleting "
        } else {
            ""
        };
        match self.plural {
            "pods" => {
                self.pod(f)?;
                f.write_str(deleting)
            }
            "events" => self.event(f),
            "services" => write!(f, "{} {deleting}", self.uid()),
            _ => {
                write!(f, "{} {deleting}[", self.uid())?;
                self.conditions(f)?;
                match self.object["status"].get("recovery") {
                    Some(recovery) => write!(f, "] {recovery} "),
                    None => f.write_str("]  "),
                }
            }
        }
    }
}
