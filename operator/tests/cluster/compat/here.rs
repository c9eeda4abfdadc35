//! The state under our operator: its differences from the recordings, and their reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::compare::{ABSENT, Places, get, names, put};
use super::corpus::{Defect, Golden, Scenario, Words, folder, read};
use super::normal::MORE;

/// The replicas that restart together with a failed one, unless the job sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// `--default-restart-scope=Replica`: as under the Go operator.
    Replica,
    /// The default of the kind of job.
    Default,
    /// As [`Self::Replica`], with `--gang-scheduler-name=volcano`.
    Volcano,
    /// As [`Self::Replica`], with `--gang-scheduler-name=scheduler-plugins`.
    Coscheduling,
}

impl Scope {
    pub(crate) const ALL: [Self; 4] = [Self::Replica, Self::Default, Self::Volcano, Self::Coscheduling];

    fn folder(self) -> PathBuf {
        folder().join(match self {
            Self::Replica => "replica",
            Self::Default => "default",
            Self::Volcano => "volcano",
            Self::Coscheduling => "coscheduling",
        })
    }

    /// The additional flags of the operator.
    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Replica => &["--default-restart-scope=Replica"],
            Self::Default => &[],
            Self::Volcano => &["--default-restart-scope=Replica", "--gang-scheduler-name=volcano"],
            Self::Coscheduling => &[
                "--default-restart-scope=Replica",
                "--gang-scheduler-name=scheduler-plugins",
            ],
        }
    }

    /// The names of the scenarios that are played with it.
    pub(crate) fn scenarios(self) -> BTreeSet<String> {
        let files = fs::read_dir(self.folder()).unwrap();
        let names = files.map(|file| {
            file.unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        });
        names.collect()
    }
}

/// The differences in one scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Here {
    /// The values under our operator, for each step.
    pub(crate) steps: Vec<Places>,
    /// Events that the Go operator sends and ours does not.
    pub(crate) missing: BTreeSet<String>,
    /// Events that it does not send and ours does.
    pub(crate) more: BTreeSet<String>,
}

impl Here {
    fn file(scope: Scope, scenario: &str) -> PathBuf {
        scope.folder().join(format!("{scenario}.yaml"))
    }

    pub(crate) fn read(scope: Scope, scenario: &str, golden: &Golden) -> Self {
        let file: Value = read(Self::file(scope, scenario));
        let mut steps: Vec<Places> = Vec::new();
        for step in &golden.steps {
            let places = match file.get(&step.name) {
                Some(Value::Object(places)) => places.clone().into_iter().collect(),
                Some(_) => steps.last().cloned().unwrap_or_default(),
                None => Places::new(),
            };
            steps.push(places);
        }
        let events = |key: &str| -> BTreeSet<String> {
            let all = file.get(key).and_then(Value::as_array).into_iter().flatten();
            all.map(|line| line.as_str().unwrap().to_owned()).collect()
        };
        Self {
            steps,
            missing: events("events missing"),
            more: events("events more"),
        }
    }

    pub(crate) fn write(&self, scope: Scope, scenario: &str, golden: &Golden) {
        let mut text = String::new();
        let mut put = |key: &str, value: Value| {
            let mut map = Map::new();
            map.insert(key.to_owned(), value);
            text += &serde_saphyr::to_string(&map).unwrap();
        };
        let mut before = &Places::new();
        for (step, places) in golden.steps.iter().zip(&self.steps) {
            if !places.is_empty() {
                put(
                    &step.name,
                    if places == before {
                        "=".into()
                    } else {
                        json!(places)
                    },
                );
            }
            before = places;
        }
        for (key, events) in [("events missing", &self.missing), ("events more", &self.more)] {
            if !events.is_empty() {
                put(key, json!(events));
            }
        }
        if text.is_empty() {
            text = "{}\n".to_owned();
        }
        fs::create_dir_all(scope.folder()).unwrap();
        fs::write(Self::file(scope, scenario), text).unwrap();
    }

    /// Returns the state under our operator after a step.
    fn held(&self, golden: &Golden, step: usize) -> Value {
        let mut held = golden.steps[step].held.clone();
        for (path, here) in &self.steps[step] {
            put(&mut held, path, here);
        }
        held
    }
}

/// Returns the events that only one operator sends: (missing, additional).
pub(crate) fn events(golden: &Golden, told: &BTreeSet<String>) -> (BTreeSet<String>, BTreeSet<String>) {
    let Some(last) = golden.steps.last() else {
        return Default::default();
    };
    // An event that does not name all its objects stands for all objects of the kind.
    let unnamed: Vec<_> = told.iter().filter_map(|line| line.strip_suffix(MORE)).collect();
    let is_named = |line: &&String| !unnamed.iter().any(|head| line.starts_with(head));
    let missing = last.events.difference(told).filter(is_named).cloned().collect();
    let more = told
        .iter()
        .filter(|line| !line.ends_with(MORE) && !last.events.contains(*line));
    let more = more
        .filter(|line| !last.sometimes.contains(*line))
        .cloned()
        .collect();
    let partial = golden.steps.iter().any(|step| step.partial);
    (missing, if partial { BTreeSet::new() } else { more })
}

/// The content of `tests/compat/differences.yaml`.
#[derive(Deserialize)]
pub(crate) struct Reasons {
    /// The defects of the Go operator that the scenarios name, by their numbers.
    pub(crate) defects: BTreeMap<String, String>,
    pub(crate) differences: Vec<Reason>,
}

/// The reason of some differences.
#[derive(Deserialize)]
pub(crate) struct Reason {
    /// The first words of a line of docs/users/differences.md.
    pub(crate) docs: Option<String>,
    /// The reason for which no such line is needed.
    pub(crate) why: Option<String>,
    pub(crate) scope: Option<Scope>,
    #[serde(default = "all")]
    pub(crate) scenarios: Words,
    #[serde(default = "all")]
    pub(crate) step: Words,
    pub(crate) at: Words,
}

fn all() -> Words {
    Words::One("*".to_owned())
}

impl Reasons {
    pub(crate) fn read() -> Self {
        read(folder().join("differences.yaml"))
    }

    /// Adds the reasons of a scenario's differences to `used`. Returns the differences without a reason.
    pub(crate) fn explain(
        &self,
        scope: Scope,
        scenario: &Scenario,
        golden: &Golden,
        here: &Here,
        used: &mut Used,
    ) -> Vec<String> {
        let mut left = Vec::new();
        let all = golden.names();
        let ours = |step: Option<&str>, path: &str| -> Option<usize> {
            self.differences.iter().position(|reason| {
                reason.scope.is_none_or(|s| s == scope)
                    && reason.scenarios.all().iter().any(|p| names(p, &scenario.name))
                    && step.is_none_or(|step| reason.step.have(step, &all))
                    && reason.at.cover(path)
            })
        };
        let mut places: Vec<(Option<&str>, String)> = Vec::new();
        for (step, of_step) in golden.steps.iter().zip(&here.steps) {
            places.extend(
                of_step
                    .keys()
                    .map(|path| (Some(step.name.as_str()), path.clone())),
            );
        }
        let events = here.missing.iter().chain(&here.more);
        places.extend(events.map(|line| (None, format!("events {line}"))));
        for (step, path) in places {
            let of_go = |d: &&Defect| step.is_none_or(|step| d.step.have(step, &all)) && d.at.cover(&path);
            if let Some(reason) = ours(step, &path) {
                used.reasons.insert(reason);
            } else if let Some(defect) = scenario.differs.iter().find(of_go) {
                used.defects.insert(defect.name());
            } else {
                left.push(format!("{} [{}] {path}", scenario.name, step.unwrap_or("*")));
            }
        }
        // A known right value must be present, or a reason must explain the difference.
        for defect in &scenario.differs {
            let steps = golden.steps.iter().enumerate();
            for (n, step) in steps.filter(|(_, step)| defect.step.have(&step.name, &all)) {
                let held = here.held(golden, n);
                for (path, want) in &defect.want {
                    // The test checks at its end that this operator still runs.
                    let have = get(&held, path);
                    if have == Some(want) || (have.is_none() && want == ABSENT) || path == "operatorUp" {
                        continue;
                    }
                    match ours(Some(&step.name), path) {
                        Some(reason) => drop(used.reasons.insert(reason)),
                        None => left.push(format!("{} [{}] {path} is not {want}", scenario.name, step.name)),
                    }
                }
            }
        }
        left
    }
}

/// The reasons that explain some difference.
#[derive(Default)]
pub(crate) struct Used {
    /// The numbers of reasons.
    pub(crate) reasons: BTreeSet<usize>,
    pub(crate) defects: BTreeSet<String>,
}
