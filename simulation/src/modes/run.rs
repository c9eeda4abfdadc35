//! Runs a scenario, and summarizes the result.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Once};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::faults::calls::CallCounter;
use crate::faults::{CallFault, CallSite, PodFate};
use crate::invariants::Violation;
use crate::modes::settle::{Blockers, check_idle, wait_until_settled};
use crate::scenario::Scenario;
use crate::scenario::interventions::Intervention;
use crate::scenario::users;
use crate::simulation::{Setup, Simulation, on_paused_clock};
use crate::world::job;
use crate::world::kubelet::PodFates;

/// The limit of calls in ten seconds. More calls are a storm (I9).
const MAX_CALLS_IN_TEN_SECONDS: u64 = 400;

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct RunSummary {
    /// The violations of invariants, in the order of their occurrence.
    pub violations: Vec<Violation>,
    /// The faults that were injected into calls, by call site.
    pub call_faults: BTreeMap<CallSite, CallFault>,
    /// The sites of all calls, in order.
    pub sites: Vec<CallSite>,
    /// The number of faults that were injected into calls, by label.
    pub fault_counts: BTreeMap<String, u64>,
    /// The number of calls of operators.
    pub calls: u64,
    /// The number of calls except lists and watches.
    pub object_calls: u64,
    /// The number of created children.
    pub children: u64,
    /// The number of created jobs.
    pub jobs: u64,
    /// The number of jobs that finished or were deleted.
    pub finished_jobs: u64,
    /// The log of the run.
    pub history: String,
    /// The hash of the log.
    pub history_hash: u64,
    /// The simulated time in seconds.
    pub seconds: u64,
    /// The stored objects at the end, without times and UIDs, and the number of creations and deletions of each
    /// child.
    pub final_state: String,
}

thread_local! {
    static PANICS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the panics of this thread, and still prints them. The operator survives a panic in a reconcile.
fn count_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.set(PANICS.get() + 1);
            before(info);
        }));
    });
}

/// Runs a scenario.
///
/// # Panics
/// Panics if Tokio cannot create a runtime.
pub fn run(scenario: &Scenario) -> RunSummary {
    count_panics();
    let panics = PANICS.get();
    let mut summary = on_paused_clock(play(scenario));
    if PANICS.get() > panics {
        summary.violations.push(Violation {
            id: "I12",
            at: 0,
            what: "a panic".to_owned(),
        });
    }
    summary
}

/// The calls of a run so far.
#[derive(Default)]
struct CallLog {
    faults: BTreeMap<CallSite, CallFault>,
    sites: Vec<CallSite>,
}

async fn play(scenario: &Scenario) -> RunSummary {
    let config = &scenario.config;
    let mut sim = Simulation::with_setup(Setup {
        pod_fates: pod_fates(scenario),
        job_types: config.job_types,
        concurrency: config.concurrency,
        node_clocks_differ: config.node_clocks_differ,
        staleness: config.staleness(),
        gang_scheduler: config.gang_scheduler.clone(),
    });
    let log = inject_call_faults(&sim, scenario);
    sim.network.delay_watches(config.watch_delay.clone());
    sim.start();
    if config.two_operators {
        sim.start();
    }
    let start = sim.history.start();
    for scheduled in &scenario.interventions {
        sim.advance_until(start + Duration::from_millis(scheduled.at))
            .await;
        intervene(&mut sim, scenario, &scheduled.intervention).await;
    }
    sim.advance_until(start + Duration::from_secs(config.seconds))
        .await;
    sim.history.note("all is well again");
    sim.network.heal();
    sim.set_clock(0);
    sim.set_capacity(None);
    sim.cluster.cut_watches(None);
    // Operators that died earlier are replaced first.
    sim.advance_until(Instant::now() + Duration::from_secs(1)).await;
    users::delete_blockers(&sim.cluster).await;
    let mut violations = wait_until_settled(&mut sim, Blockers::Delete).await;
    if violations.is_empty() {
        let blocked = sim.settled().is_blocked();
        let for_an_hour = config.seed > 0 && config.seed.is_multiple_of(64);
        violations = check_idle(&mut sim, if for_an_hour { 3_600 } else { 130 }).await;
        if blocked {
            // An object without a controller has the name of a child: the operator retries forever.
            violations.clear();
        }
    }
    let log = std::mem::take(&mut *log.lock());
    summarize(&sim, config.two_operators, log, violations)
}

/// Returns the fates of the scenario, or draws the fate of each pod.
fn pod_fates(scenario: &Scenario) -> PodFates {
    if let Some(fates) = scenario.pod_fates {
        return Box::new(fates);
    }
    let (seed, rate) = (scenario.config.seed, scenario.config.pod_fault_rate);
    let version = scenario.config.seed_version;
    let counts = Mutex::new(BTreeMap::<String, u64>::new());
    Box::new(move |name, _| {
        let mut counts = counts.lock();
        let count = counts.entry(name.to_owned()).or_default();
        *count += 1;
        PodFate::draw(seed, version, name, *count - 1, rate)
    })
}

/// Injects the faults of the scenario, or draws them. Logs the sites of calls.
fn inject_call_faults(sim: &Simulation, scenario: &Scenario) -> Arc<Mutex<CallLog>> {
    let log = Arc::new(Mutex::new(CallLog::default()));
    let mut calls = CallCounter::default();
    let (seed, rates) = (scenario.config.seed, scenario.config.calls.clone());
    let given = scenario.call_faults.clone();
    let sink = log.clone();
    sim.network.add_rule(move |call| {
        let site = calls.next_site(call);
        let fault = match &given {
            Some(given) => given.get(&site).cloned(),
            None => rates.draw(seed, &site),
        };
        let mut log = sink.lock();
        log.sites.push(site.clone());
        log.faults.extend(fault.clone().map(|fault| (site, fault)));
        fault
    });
    log
}

async fn intervene(sim: &mut Simulation, scenario: &Scenario, intervention: &Intervention) {
    sim.history.note(intervention);
    match intervention {
        Intervention::User(action) => {
            users::perform(&sim.cluster, &scenario.jobs, action).await;
        }
        Intervention::Fault(fault) => sim.inject(fault).await,
    }
}

fn summarize(sim: &Simulation, two_operators: bool, log: CallLog, at_the_end: Vec<Violation>) -> RunSummary {
    let mut violations = sim.monitor.violations();
    let at = sim.history.now();
    let mut violated = |id: &'static str, what: String| violations.push(Violation { id, at, what });
    for what in sim.network.deletes_without_uid() {
        violated("I6", format!("a delete without a UID: {what}"));
    }
    let has_unnoticed_writes = log.faults.values().any(CallFault::takes_effect_unnoticed);
    for what in sim.network.writes_without_change() {
        // Two operators may repair the same child. One operator may repair an object again if a restore has repaired
        // it before the next list, or if the call that repaired it got no response.
        let is_of = |plurals: &[&str]| plurals.iter().any(|plural| what.contains(plural));
        let may_repeat = sim.was_restored() || has_unnoticed_writes;
        let is_repair = is_of(&job::CHILDREN[2..]) || what.contains("patch pods");
        if two_operators && is_of(&job::CHILDREN) || may_repeat && is_repair {
            continue;
        }
        // Operators that send the same event at the same time write the same count of repetitions, and an event whose
        // response was lost is sent again.
        if (two_operators || has_unnoticed_writes) && what.contains("patch events") {
            continue;
        }
        violated("I8", format!("a write that changed nothing: {what}"));
    }
    let calls = sim.network.most_in_ten_seconds();
    // Each new operator lists everything.
    let allowed = MAX_CALLS_IN_TEN_SECONDS + 60 * sim.network.operators();
    if calls > allowed {
        violated("I9", format!("{calls} calls in ten seconds"));
    }
    if sim.has_operator_ended() {
        violated("I12", "an operator ended".to_owned());
    }
    violations.extend(at_the_end);
    let (jobs, finished_jobs) = sim.monitor.job_counts();
    RunSummary {
        violations,
        call_faults: log.faults,
        sites: log.sites,
        fault_counts: sim.network.faults(),
        calls: sim.network.all_calls(),
        object_calls: sim.network.object_calls(),
        children: sim
            .monitor
            .child_counts()
            .values()
            .map(|(created, _)| created)
            .sum(),
        jobs,
        finished_jobs,
        history: sim.history.text(),
        history_hash: sim.history.hash(),
        seconds: at / 1_000,
        final_state: final_state(sim),
    }
}

/// Returns the jobs, pods and services, without times and UIDs, and the number of creations and deletions of each
/// child.
fn final_state(sim: &Simulation) -> String {
    let mut text = String::new();
    for plural in job::PLURALS {
        for job in sim.cluster.list(plural, None) {
            let mut status = job.value()["status"].clone();
            remove_fleeting(&mut status);
            text += &format!("{plural} {}: {status}\n", job.value()["metadata"]["name"]);
        }
    }
    text += &format!("{:?}\n{:?}\n", sim.pods_now(), sim.services_now());
    for (child, (created, deleted)) in sim.monitor.child_counts() {
        text += &format!("{child}: created {created}, deleted {deleted}\n");
    }
    text
}

/// Removes times, and the node of a pod that was deleted: an operator that sees the pod only after it is gone does not
/// know the node.
fn remove_fleeting(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let is_deletion = map.get("reason").is_some_and(|reason| reason == "PodDeleted");
            map.retain(|key, _| !key.ends_with("Time") && key != "time" && !(is_deletion && key == "node"));
            map.values_mut().for_each(remove_fleeting);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_fleeting),
        _ => {}
    }
}
