//! What happened in a run, line by line: the run's identity.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::time::Instant;
use training_job::memory::Change;

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
    pub fn note(&self, text: impl std::fmt::Display) {
        use std::fmt::Write;
        let now = self.now();
        let mut log = self.log();
        // Writing into a string does not fail.
        let _ = writeln!(log.text, "{:>4}.{:03} {text}", now / 1_000, now % 1_000);
        log.lines += 1;
    }

    /// Adds a line for a change of what is stored.
    pub fn change(&self, change: &Change, by: &str) {
        let (verb, kind, name) = (change.action().as_str(), change.kind(), change.name());
        let version = change.resource_version();
        let gist = gist(change.plural(), change.object().value());
        self.note(format_args!("{version} {verb} {kind} {name} {gist}({by})"));
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
fn gist(plural: &str, object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let deleting = if text("/metadata/deletionTimestamp").is_some() {
        "deleting "
    } else {
        ""
    };
    match plural {
        "pods" => {
            let phase = text("/status/phase").unwrap_or("Pending");
            let attempt = text("/metadata/annotations/training.kubeflow.org~1restart-attempt");
            let uid = text("/metadata/uid").unwrap_or_default();
            let attempt = attempt.map(|a| format!("+{a}")).unwrap_or_default();
            format!("{}{attempt} {phase} {deleting}", short(uid))
        }
        "events" => format!(
            "{}: {} ",
            text("/reason").unwrap_or_default(),
            text("/message").unwrap_or_default()
        ),
        "services" => format!("{} {deleting}", short(text("/metadata/uid").unwrap_or_default())),
        _ => {
            let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
            let words: Vec<String> = conditions
                .into_iter()
                .flatten()
                .map(|c| match (c["type"].as_str(), c["status"].as_str()) {
                    (Some(kind), Some("True")) => kind.to_owned(),
                    (kind, status) => format!("{}={}", kind.unwrap_or("?"), status.unwrap_or("?")),
                })
                .collect();
            let recovery = object.pointer("/status/recovery").map(Value::to_string);
            format!(
                "{} {deleting}[{}] {} ",
                short(text("/metadata/uid").unwrap_or_default()),
                words.join(" "),
                recovery.unwrap_or_default()
            )
        }
    }
}

/// The end of a UID, which tells objects of one run apart.
fn short(uid: &str) -> &str {
    uid.len()
        .checked_sub(5)
        .and_then(|at| uid.get(at..))
        .unwrap_or(uid)
}
