//! Compares this operator with recordings of the Go operator v1.8.1.
//!
//! `tests/compat` has the recordings of the objects that the Go operator created on a real API server. The comparison
//! covers the pods and services of each scenario at the time when the operator first came to rest. The recordings
//! omit values that the API server fills in. They also omit the order of service ports, which is random there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use training_job::{GangScheduler, Settings, TrainingJob, render, validate};

use crate::repository;

/// The intended differences in the pods and services of every kind.
const IN_ALL_KINDS: &str = "\
* | pods.*.spec.enableServiceLinks | replicas find each other by name
* | pods.*.terminationMessagePolicy | the framework's container leaves the end of its log where it says nothing else
";

/// The intended differences of the kinds with services.
const IN_SERVICES: &str = "\
* | services.*.spec.publishNotReadyAddresses | a replica may not be ready before it has found the others
";

#[derive(serde::Deserialize)]
struct Scenario {
    name: String,
    /// The operator's flags: `gang-` or `mpi2-` and the gang scheduler's name, or flags without an effect on pods.
    #[serde(default)]
    profile: String,
    job: Value,
}

#[derive(serde::Deserialize)]
struct Recording {
    steps: Vec<Step>,
}

/// The contents of the API server after a step.
#[derive(serde::Deserialize)]
struct Step {
    #[serde(default)]
    job: Value,
    pods: Value,
    services: Value,
    #[serde(default)]
    configmaps: Value,
}

impl Step {
    /// Returns the pods or services of the step. Placeholders for values that differ between runs are replaced.
    fn objects(objects: &Value) -> Objects {
        let text = objects.to_string();
        let text = text.replace("<the job>", UID).replace("<ns>", "default");
        let objects: Option<Objects> = serde_json::from_str(&text).unwrap();
        let mut objects = objects.unwrap_or_default();
        for object in objects.values_mut().filter_map(Value::as_object_mut) {
            object.remove("phase");
        }
        objects
    }
}

/// The UID of every job in the comparison.
const UID: &str = "job-uid";

type Objects = BTreeMap<String, Value>;

/// Renders a job's pods, services and ConfigMaps in the form of a recording. Returns `None` if the job is refused.
fn ours<J: TrainingJob>(job: &Value, settings: &Settings) -> Option<[Objects; 3]> {
    let mut job: J = serde_json::from_value(job.clone()).ok()?;
    job.meta_mut().uid = Some(UID.to_owned());
    let valid = validate(&job, settings).ok()?;
    let render::Rendered {
        objects,
        services,
        pods,
        ..
    } = render::all(&valid);
    let of_kind = |kind: &'static str| {
        let of_kind = objects.iter().filter(move |object| object.kind.kind == kind);
        of_kind.map(|object| entry(serde_json::to_value(object).unwrap()))
    };
    let pods = pods.iter().map(|p| entry(serde_json::to_value(p).unwrap()));
    let services = services.iter().map(|s| {
        let (name, mut service) = entry(serde_json::to_value(s).unwrap());
        if let Some(ports) = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut) {
            ports.sort_by_key(|port| port["name"].to_string());
        }
        (name, service)
    });
    let services = services.chain(of_kind("Service"));
    Some([pods.collect(), services.collect(), of_kind("ConfigMap").collect()])
}

/// Returns the name of an object and the parts of it that are recorded.
fn entry(object: Value) -> (String, Value) {
    let meta = &object["metadata"];
    let mut parts = json!({});
    for key in ["spec", "data"] {
        if !object[key].is_null() {
            parts[key] = object[key].clone();
        }
    }
    for key in ["labels", "annotations", "finalizers", "ownerReferences"] {
        if !meta[key].is_null() {
            parts[key] = meta[key].clone();
        }
    }
    (meta["name"].as_str().unwrap().to_owned(), parts)
}

/// Adds the places where two values differ to `found`.
fn compare(at: String, recorded: &Value, ours: &Value, found: &mut Vec<String>) {
    match (recorded, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|k| !a.contains_key(*k)));
            for key in keys {
                let [a, b] = [a, b].map(|map| map.get(key).unwrap_or(&Value::Null));
                compare(format!("{at}.{key}"), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                compare(format!("{at}[{n}]"), a, b, found);
            }
        }
        _ if recorded == ours => {}
        _ => found.push(format!("{at}: recorded {recorded}, ours {ours}")),
    }
}

/// Compares the rendered objects of every recorded job of the kind with the recordings, byte for byte except for
/// `differences`. Returns the number of compared objects.
///
/// A line of `differences` is the scenario, the place and the reason of a difference, with ` | ` between them. A scenario
/// that this operator refuses has the place `refused`. A scenario that ends in `*` stands for all that begin so, and `*`
/// within a place matches any text.
///
/// # Panics
/// Panics if there is another difference, or if one of `differences` no longer exists.
pub fn compare_renders<J: TrainingJob>(differences: &str) -> usize {
    compare_renders_with::<J>(&Settings::default(), differences)
}

/// Does the same comparison for an operator with these settings.
///
/// # Panics
/// Panics if there is another difference, or if one of `differences` no longer exists.
pub fn compare_renders_with<J: TrainingJob>(settings: &Settings, differences: &str) -> usize {
    let corpus = repository().join("tests/compat");
    let mut scenarios: Vec<Scenario> = fs::read_dir(corpus.join("scenarios"))
        .unwrap()
        .map(|file| read(&file.unwrap().path()))
        .collect();
    scenarios.retain(|scenario| scenario.job["kind"] == *J::kind(&()));
    scenarios.sort_by(|a, b| a.name.cmp(&b.name));
    let has_services = J::FRAMEWORK.roles.iter().any(|role| role.has_service);
    let rows = [
        differences,
        IN_ALL_KINDS,
        if has_services { IN_SERVICES } else { "" },
    ]
    .concat();
    let differences: Vec<[&str; 3]> = rows
        .lines()
        .map(|row| {
            row.split(" | ")
                .collect::<Vec<_>>()
                .try_into()
                .expect("three cells")
        })
        .collect();
    let (mut found, mut used, mut compared) = (Vec::new(), vec![false; differences.len()], 0);
    for Scenario {
        name: scenario,
        profile,
        job,
    } in &scenarios
    {
        let scheduler = ["gang-", "mpi2-"]
            .iter()
            .find_map(|prefix| profile.strip_prefix(prefix));
        let gang_scheduler = GangScheduler::named(scheduler.unwrap_or_default());
        let mut settings = settings.clone();
        settings.gang_scheduler = gang_scheduler;
        let settings = &settings;
        let recording: Recording = read(&corpus.join(format!("golden/{scenario}.yaml")));
        // A job that is created suspended has no pods at first.
        let has_pods = |step: &&Step| step.pods.as_object().is_some_and(|pods| !pods.is_empty());
        let place = recording.steps.iter().position(|step| has_pods(&step));
        let steps = &recording.steps[..=place.unwrap_or(0)];
        // `=` stands for the objects of the step before.
        let section = |of: fn(&Step) -> &Value| {
            let mut sections = steps.iter().rev().map(of);
            Step::objects(sections.find(|objects| *objects != "=").unwrap_or(&Value::Null))
        };
        let mut job = job.clone();
        // The stored job has the defaults of its definition.
        let stored = steps[0].job["spec"].as_object().into_iter().flatten();
        if let Some(spec) = job["spec"].as_object_mut() {
            for (field, value) in stored {
                spec.entry(field).or_insert_with(|| value.clone());
            }
        }
        let sections: [fn(&Step) -> &Value; 3] =
            [|step| &step.pods, |step| &step.services, |step| &step.configmaps];
        let recorded = sections.map(section);
        let mut here = Vec::new();
        match ours::<J>(&job, settings) {
            None if recorded[0].is_empty() => compared += 1,
            None => here.push("refused: recorded pods, ours none".to_owned()),
            Some(ours) => {
                let sections = ["pods", "services", "configmaps"]
                    .into_iter()
                    .zip(recorded.iter().zip(&ours));
                for (section, (recorded, ours)) in sections {
                    compared += ours.len();
                    compare(section.to_owned(), &json!(recorded), &json!(ours), &mut here);
                }
            }
        }
        for difference in here {
            let meant = differences
                .iter()
                .position(|[s, at, _]| is_named(s, scenario) && is_at(at, &difference));
            match meant {
                Some(n) => used[n] = true,
                None => found.push(format!("{scenario}: {difference}")),
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    for ([scenario, at, why], used) in differences.iter().zip(used) {
        assert!(used, "{scenario} does not differ at {at} any more ({why})");
    }
    compared
}

/// Returns true if the pattern stands for this scenario.
fn is_named(pattern: &str, scenario: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => scenario.starts_with(prefix),
        None => pattern == scenario,
    }
}

/// Returns true if the difference is at this place.
fn is_at(place: &str, difference: &str) -> bool {
    let mut parts = place.split('*');
    let first = parts.next().unwrap_or_default();
    let rest = difference.strip_prefix(first);
    let rest = parts.try_fold(rest, |rest, part| {
        let rest = rest?;
        Some(rest.find(part).map(|at| &rest[at + part.len()..]))
    });
    rest.flatten().is_some()
}

fn read<T: DeserializeOwned>(file: &Path) -> T {
    let text = fs::read_to_string(file).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
