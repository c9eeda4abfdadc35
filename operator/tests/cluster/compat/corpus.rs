//! The recorded scenarios of `tests/compat`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use training_job_testbed::cluster::repository;

use super::compare::covers;

/// The actions of the user and the kubelet.
#[derive(Clone, Deserialize)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// The flags of the Go operator; empty by default.
    #[serde(default)]
    pub(crate) profile: String,
    /// The objects that exist before the job.
    #[serde(default)]
    pub(crate) objects: Vec<Value>,
    pub(crate) job: Value,
    pub(crate) steps: Vec<Value>,
    #[serde(default)]
    pub(crate) differs: Vec<Defect>,
}

/// Paths at which the Go operator has a defect.
#[derive(Clone, Deserialize)]
pub(crate) struct Defect {
    defect: Value,
    pub(crate) step: Words,
    pub(crate) at: Words,
    /// The right values by path.
    #[serde(default)]
    pub(crate) want: BTreeMap<String, Value>,
}

impl Defect {
    /// Its number, or its name.
    pub(crate) fn name(&self) -> String {
        match &self.defect {
            Value::String(name) => name.clone(),
            number => number.to_string(),
        }
    }
}

/// A word or a list of words.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Words {
    One(String),
    Many(Vec<String>),
}

impl Words {
    pub(crate) fn all(&self) -> &[String] {
        match self {
            Self::One(word) => std::slice::from_ref(word),
            Self::Many(words) => words,
        }
    }

    /// Returns true if one of these patterns matches a path.
    pub(crate) fn cover(&self, path: &str) -> bool {
        self.all().iter().any(|pattern| covers(pattern, path))
    }

    /// Returns true if these words include a step: `*`, a name, or `name..` for that step and all later ones.
    pub(crate) fn have(&self, step: &str, all: &[&str]) -> bool {
        let place = |name: &str| all.iter().position(|n| *n == name);
        self.all().iter().any(|word| match word.strip_suffix("..") {
            Some(first) => place(first).is_some_and(|first| place(step) >= Some(first)),
            None => word == "*" || word == step,
        })
    }
}

/// The objects, responses and events of the API server while the Go operator ran a scenario.
pub(crate) struct Golden {
    pub(crate) steps: Vec<Step>,
}

/// The recorded state after one step.
pub(crate) struct Step {
    pub(crate) name: String,
    /// The responses, the job, pods and services.
    pub(crate) held: Value,
    /// All events until then.
    pub(crate) events: BTreeSet<String>,
    /// Events that only some recordings have.
    pub(crate) sometimes: BTreeSet<String>,
    /// True if the Go client combined some events.
    pub(crate) partial: bool,
    /// Paths that differed between recordings.
    pub(crate) unstable: Vec<String>,
}

/// The folder of the recordings.
pub(crate) fn folder() -> PathBuf {
    repository().join("tests/compat")
}

pub(crate) fn read<T: DeserializeOwned>(path: PathBuf) -> T {
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns all scenarios, ordered by name.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let files = fs::read_dir(folder().join("scenarios")).unwrap();
    let mut all: Vec<Scenario> = files.map(|file| read(file.unwrap().path())).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

impl Scenario {
    pub(crate) fn golden(&self) -> Golden {
        let file = folder().join("golden").join(format!("{}.yaml", self.name));
        let whole: Value = read(file);
        let mut before = Map::new();
        let mut steps: Vec<Step> = Vec::new();
        for step in whole["steps"].as_array().unwrap() {
            let step = expand(step.as_object().unwrap(), &before);
            before.clone_from(&step);
            steps.push(Step::new(step, steps.last()));
        }
        // A path with a known right value is compared even if recordings differ there.
        let wanted = |at: &String| self.differs.iter().any(|defect| defect.want.contains_key(at));
        for step in &mut steps {
            step.unstable.retain(|at| !wanted(at));
        }
        Golden { steps }
    }
}

impl Golden {
    pub(crate) fn names(&self) -> Vec<&str> {
        self.steps.iter().map(|step| step.name.as_str()).collect()
    }
}

impl Step {
    fn new(mut step: Map<String, Value>, before: Option<&Self>) -> Self {
        let name = step.remove("step").unwrap().as_str().unwrap().to_owned();
        let mut texts = |key: &str| -> BTreeSet<String> {
            let all = step.remove(key).unwrap_or_default();
            let all = all.as_array().into_iter().flatten();
            all.map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let (mut events, mut sometimes) = (texts("events"), texts("eventsSometimes"));
        if let Some(before) = before {
            events.extend(before.events.iter().cloned());
            sometimes.extend(before.sometimes.iter().cloned());
        }
        let unstable = step.remove("unstable").unwrap_or_default();
        let unstable = unstable.as_array().into_iter().flatten();
        let unstable = unstable.map(|u| u["at"].as_str().unwrap().to_owned()).collect();
        let partial = step.remove("eventsPartial").is_some();
        // The test checks at its end that this operator still runs.
        step.remove("operatorUp");
        // The statuses and events of Jobs are for readers.
        step.remove("underneath");
        // The recordings contain the Go client's words, which are not compared.
        for done in step
            .get_mut("did")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            done.as_object_mut().unwrap().remove("do");
        }
        Self {
            name,
            held: Value::Object(step),
            events,
            sometimes,
            partial,
            unstable,
        }
    }

    /// Returns true if recordings of the Go operator differ at a path.
    pub(crate) fn is_unstable(&self, path: &str) -> bool {
        self.unstable.iter().any(|at| covers(at, path))
    }
}

/// Replaces `=` by the value of the step before: a whole section, an object in it, or a part of the object.
fn expand(step: &Map<String, Value>, before: &Map<String, Value>) -> Map<String, Value> {
    let before = Value::from(before.clone());
    let sections = step.iter().map(|(key, value)| {
        let before = &before[key];
        let section = match value {
            // A section is a list, the parts of the job, or objects with their parts.
            Value::Object(parts) if key == "job" => replace(parts, before, |part, _| part.clone()),
            Value::Object(objects) => replace(objects, before, |object, before| match object {
                Value::Object(parts) => replace(parts, before, |part, _| part.clone()),
                other => other.clone(),
            }),
            value if value == "=" => before.clone(),
            value => value.clone(),
        };
        (key.clone(), section)
    });
    sections.collect()
}

fn replace(map: &Map<String, Value>, before: &Value, inner: impl Fn(&Value, &Value) -> Value) -> Value {
    let values = map.iter().map(|(key, value)| {
        let before = &before[key];
        let value = if value == "=" {
            before.clone()
        } else {
            inner(value, before)
        };
        (key.clone(), value)
    });
    values.collect()
}
