//! Compares the current state with the recorded one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};
use training_job_testbed::cluster::WAIT_TIMEOUT;

use super::compare::{Places, differences};
use super::corpus::{Golden, Scenario, Step};
use super::here::Here;
use super::mirror::Held;
use super::normal;
use super::play::Play;

/// The time that a matching state must hold. The operator delays writes by at most 1 s.
const QUIET: Duration = Duration::from_millis(1_500);

/// The same for a recording, where the expected state is unknown: longer than the operator ever delays a first status or
/// an update of counts.
const RECORDING_QUIET: Duration = Duration::from_secs(12);

/// The same for a job with a deadline, which would pass in [`RECORDING_QUIET`].
const DEADLINE_QUIET: Duration = Duration::from_secs(5);

/// The state at the last look. The next look compares with it.
#[derive(Default)]
pub(crate) struct Memory {
    uids: BTreeMap<String, String>,
    status: Value,
    /// The differing paths of each step.
    pub(crate) places: Vec<Places>,
    pub(crate) events: Vec<BTreeSet<String>>,
}

impl Memory {
    /// Waits until the state is as expected, if a recording has it, and stays so.
    pub(crate) async fn look(
        &mut self,
        play: &mut Play,
        golden: &Golden,
        expected: Option<&Here>,
    ) -> Result<(), String> {
        let n = self.places.len();
        let step = golden
            .steps
            .get(n)
            .ok_or("there are more steps than were recorded")?;
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let mut held = play.held();
        let did = std::mem::take(&mut play.did);
        let (found, events, now) = loop {
            let now = held.borrow_and_update().clone();
            let found = places(step, &self.state(play, &now, &did));
            let events: BTreeSet<_> = now.events.values().flat_map(normal::event).collect();
            let events: BTreeSet<_> = events.iter().map(|line| hide(play, line)).collect();
            let wrong = expected.map(|here| wrong(&play.scenario, golden, n, here, &found, &events));
            let job = now.jobs.get(&play.name);
            let rest = match &wrong {
                None if job.is_some_and(has_deadline) => DEADLINE_QUIET,
                None => RECORDING_QUIET,
                Some(wrong) if wrong.is_empty() => QUIET,
                Some(_) => WAIT_TIMEOUT,
            };
            let until = (Instant::now() + rest).min(deadline);
            match timeout_at(until, held.changed()).await {
                Ok(Ok(())) if Instant::now() < deadline => {}
                Ok(Err(_)) => return Err("nobody watches".to_owned()),
                _ => match wrong.filter(|wrong| !wrong.is_empty()) {
                    None if until == deadline => {
                        return Err(format!("[{}] it does not come to rest", step.name));
                    }
                    None => break (found, events, now),
                    Some(wrong) => return Err(format!("[{}]\n{}", step.name, wrong.join("\n"))),
                },
            }
        };
        for (name, pod) in &now.pods {
            self.uids.insert(name.clone(), text(&pod["metadata"]["uid"]));
        }
        if let Some(job) = now.jobs.get(&play.name) {
            self.status = job["status"].clone();
        }
        self.places.push(found);
        self.events.push(events);
        Ok(())
    }

    /// Returns the held objects in the form of the recordings.
    fn state(&self, play: &Play, held: &Held, did: &[Value]) -> Value {
        let mut state = Map::new();
        if !did.is_empty() {
            state.insert("did".to_owned(), did.into());
        }
        let job = held.jobs.get(&play.name).map(|job| {
            let mut out = normal::meta(job, "");
            let none = json!({});
            let (status, true_) = normal::status(job.get("status").unwrap_or(&none), &self.status);
            out.insert("state".to_owned(), true_);
            out.insert("status".to_owned(), status);
            let spec = match job["spec"] == with_replicas(&play.submitted) {
                true => "<as submitted>".into(),
                false => job["spec"].clone(),
            };
            out.insert("spec".to_owned(), spec);
            Value::from(out)
        });
        state.insert("job".to_owned(), job.unwrap_or_default());
        let pods = held.pods.iter().map(|(name, pod)| {
            let uid = text(&pod["metadata"]["uid"]);
            let recreated = self.uids.get(name).is_some_and(|before| *before != uid);
            (name.clone(), normal::pod(pod, &play.uid, recreated))
        });
        state.insert("pods".to_owned(), pods.collect());
        let services = held.services.iter();
        let services = services.map(|(name, service)| (name.clone(), normal::service(service, &play.uid)));
        state.insert("services".to_owned(), services.collect());
        for (section, objects) in &held.others {
            let made = objects.iter().filter(|(name, _)| !play.is_given(section, name));
            let made: Map<_, _> = made
                .map(|(name, it)| (name.clone(), normal::other(it, &play.uid)))
                .collect();
            if !made.is_empty() {
                state.insert((*section).to_owned(), made.into());
            }
        }
        let text = hide(play, &Value::from(state).to_string());
        serde_json::from_str(&text).unwrap()
    }
}

fn has_deadline(job: &Value) -> bool {
    let policy = &job["spec"]["runPolicy"];
    ["activeDeadlineSeconds", "ttlSecondsAfterFinished"]
        .iter()
        .any(|field| policy[field].is_u64())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Removes the names that differ in each run.
fn hide(play: &Play, text: &str) -> String {
    let text = text.replace(&play.namespace, "<ns>");
    if play.uid.is_empty() {
        text
    } else {
        text.replace(&play.uid, "<uid>")
    }
}

/// Returns the paths that differ from the recording.
fn places(step: &Step, state: &Value) -> Places {
    let mut places = differences(&step.held, state);
    places.retain(|path, _| !step.is_unstable(path));
    places
}

/// Returns a description of the unexpected differences.
fn wrong(
    scenario: &Scenario,
    golden: &Golden,
    n: usize,
    here: &Here,
    found: &Places,
    events: &BTreeSet<String>,
) -> Vec<String> {
    let expected = &here.steps[n];
    let paths: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let differ = paths
        .into_iter()
        .filter(|path| expected.get(*path) != found.get(*path));
    let as_recorded = "as recorded";
    let say = |value: Option<&Value>| value.map_or_else(|| as_recorded.to_owned(), Value::to_string);
    let mut wrong: Vec<_> = differ
        .map(|path| {
            format!(
                "  {path}: expected {}, is {}",
                say(expected.get(path)),
                say(found.get(path))
            )
        })
        .collect();
    // The next step ends the cause of an event, so an operator on a busy machine would never observe it.
    let is_last = n + 1 == golden.steps.len();
    let (mut missing, more) = super::here::events(golden, events);
    missing.retain(|line| golden.steps[n].events.contains(line) && !here.missing.contains(line));
    // An event that the Go operator sent without a reason may come later from ours.
    let is_defect = |line: &String| {
        let path = format!("events {line}");
        scenario.differs.iter().any(|defect| defect.at.cover(&path))
    };
    missing.retain(|line| is_last || !is_defect(line));
    wrong.extend(missing.iter().map(|line| format!("  missing event: {line}")));
    wrong.extend(
        more.difference(&here.more)
            .map(|line| format!("  one event more: {line}")),
    );
    if is_last {
        wrong.extend(
            here.more
                .difference(&more)
                .map(|line| format!("  missing event of ours: {line}")),
        );
        let found = here.missing.intersection(events);
        wrong.extend(found.map(|line| format!("  an event that we do not send: {line}")));
    }
    wrong
}

/// Returns a submitted spec with the default `replicas: 1` of our definitions, which the recordings lack. In MPIJobs the
/// default differs between roles.
fn with_replicas(submitted: &Value) -> Value {
    let mut spec = submitted.clone();
    let fields = spec.as_object_mut().into_iter().flatten();
    let specs = fields.filter(|(field, _)| field.ends_with("ReplicaSpecs") && *field != "mpiReplicaSpecs");
    for roles in specs.filter_map(|(_, roles)| roles.as_object_mut()) {
        for role in roles.values_mut().filter_map(Value::as_object_mut) {
            role.entry("replicas").or_insert(json!(1));
        }
    }
    spec
}
