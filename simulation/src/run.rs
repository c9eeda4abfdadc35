//! One run: a scenario is lived through, and what became of it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use kube_memory::Versions;
use serde_json::Value;
use tokio::time::Instant;

use crate::calm::{Help, settle, stay};
use crate::fault::{Fault, Site};
use crate::invariants::{Violation, rest::Rest};
use crate::job;
use crate::kubelet::Fate;
use crate::settings::{Drawn, Settings, next_site};
use crate::users::{self, Act, Deed, JobPlan};
use crate::world::{Setup, World, on_paused_clock};

/// So many calls in ten seconds are a storm.
const MOST_CALLS: u64 = 400;

/// All that a run is made from.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What may go wrong; what pods do.
    pub settings: Settings,
    /// The jobs.
    pub jobs: Vec<JobPlan>,
    /// What is done, in order of time.
    pub acts: Vec<Act>,
    /// The faults, if they are not to be drawn from the seed.
    pub faults: Option<BTreeMap<Site, Fault>>,
    /// What pods do, by name and attempt, if that is not to be drawn from the seed.
    pub fates: Option<fn(&str, u32) -> Fate>,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn of(seed: u64) -> Self {
        Self::with(Settings::of(seed))
    }

    /// The scenario of these settings.
    pub fn with(settings: Settings) -> Self {
        let jobs = users::jobs(&settings);
        let acts = users::acts(&settings, &jobs);
        Self {
            settings,
            jobs,
            acts,
            faults: None,
            fates: None,
        }
    }
}

/// What became of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What did not hold, the first first.
    pub violations: Vec<Violation>,
    /// The faults that were met, and where.
    pub met: BTreeMap<Site, Fault>,
    /// All places where a fault could have been met, in order.
    pub sites: Vec<Site>,
    /// How often each kind of fault was met.
    pub faults: BTreeMap<String, u64>,
    /// Calls of operators.
    pub calls: u64,
    /// Those of them that neither list nor watch.
    pub work: u64,
    /// Pods and services that were made.
    pub children: u64,
    /// Jobs that were made, and those that ended or were deleted.
    pub lives: (u64, u64),
    /// The log, and its hash.
    pub history: String,
    /// The hash of the log.
    pub hash: u64,
    /// Virtual seconds.
    pub seconds: u64,
    /// What is left at the end, times and identities aside, and how often each child was made and went.
    pub remains: String,
}

thread_local! {
    static PANICS: Cell<u64> = const { Cell::new(0) };
}

/// Counts panics of this thread: the operator survives those of its passes. They are told on stderr.
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

/// Lives through a scenario.
///
/// # Panics
/// If Tokio cannot make a runtime.
pub fn run(scenario: &Scenario) -> Outcome {
    count_panics();
    let panics = PANICS.get();
    let mut outcome = on_paused_clock(live(scenario));
    if PANICS.get() > panics {
        outcome.violations.push(Violation {
            id: "I12",
            at: 0,
            what: "a panic".to_owned(),
        });
    }
    outcome
}

type Met = Arc<Mutex<(BTreeMap<Site, Fault>, Vec<Site>)>>;

async fn live(scenario: &Scenario) -> Outcome {
    let settings = &scenario.settings;
    let mut world = World::with(Setup {
        script: match scenario.fates {
            Some(fates) => Box::new(fates),
            None => settings.script(),
        },
        all_kinds: settings.all_kinds,
        concurrency: settings.concurrency,
        patience: settings.patience(),
    });
    let met = Met::default();
    put_faults(&world, scenario, &met);
    world.network.lag(settings.lag.clone());
    world.start();
    if settings.two_leaders {
        world.start();
    }
    let start = world.history.start();
    for act in &scenario.acts {
        world.until(start + Duration::from_millis(act.at)).await;
        perform(&mut world, scenario, &act.deed).await;
    }
    world.until(start + Duration::from_secs(settings.span)).await;
    world.history.note("all is well again");
    world.network.heal();
    world.set_clock(0);
    world.cluster.cut_watches(None);
    // What was dead before it was healed.
    world.until(Instant::now() + Duration::from_secs(1)).await;
    users::clear_away(&world.cluster).await;
    let mut violations = settle(&mut world, Help::ClearAway).await;
    if violations.is_empty() {
        let blocked = Rest::of(&world.cluster).is_blocked();
        let hour = settings.seed > 0 && settings.seed.is_multiple_of(64);
        violations = stay(&mut world, if hour { 3_600 } else { 130 }).await;
        if blocked {
            // Somebody's object stands in the way: it is tried again and again.
            violations.clear();
        }
    }
    finish(world, &met, violations)
}

fn put_faults(world: &World, scenario: &Scenario, met: &Met) {
    let mut counts = BTreeMap::new();
    let mut drawn = scenario.faults.is_none().then(|| Drawn::new(&scenario.settings));
    let given = scenario.faults.clone().unwrap_or_default();
    let met = met.clone();
    world.network.rule(move |call| {
        let (site, fault) = match &mut drawn {
            Some(drawn) => drawn.next(call),
            None => {
                let site = next_site(&mut counts, call);
                let fault = given.get(&site).cloned();
                (site, fault)
            }
        };
        let mut met = met.lock().unwrap_or_else(PoisonError::into_inner);
        met.1.push(site.clone());
        met.0.extend(fault.clone().map(|fault| (site, fault)));
        fault
    });
}

async fn perform(world: &mut World, scenario: &Scenario, deed: &Deed) {
    world.history.note(format_args!("{deed:?}"));
    match deed {
        Deed::Cut(which) => {
            world.cluster.cut_watches(*which);
        }
        Deed::Compact => {
            world.cluster.compact();
            world.cluster.cut_watches(None);
        }
        Deed::Freeze(which) => {
            world.cluster.freeze_watches(Some(which));
        }
        Deed::SetClock(seconds) => world.set_clock(*seconds),
        Deed::Backup => world.back_up(),
        Deed::Restore => world.restore(Versions::GoOn),
        Deed::Kill => {
            let operators = world.operators();
            world.kill().await;
            for _ in 0..operators {
                world.start();
            }
        }
        deed => {
            users::perform(&world.cluster, &scenario.jobs, deed).await;
        }
    }
}

fn finish(world: World, met: &Met, end: Vec<Violation>) -> Outcome {
    let mut violations = world.monitor.found();
    let at = world.history.now();
    let mut broken = |id: &'static str, what: String| violations.push(Violation { id, at, what });
    for what in world.network.blind() {
        broken("I6", format!("a delete without a UID: {what}"));
    }
    for what in world.network.vain() {
        broken("I8", format!("a write that changed nothing: {what}"));
    }
    let busiest = world.network.busiest();
    // Each new operator lists everything.
    let allowed = MOST_CALLS + 60 * world.network.operators();
    if busiest > allowed {
        broken("I9", format!("{busiest} calls in ten seconds"));
    }
    if world.has_panicked() {
        broken("I12", "an operator ended".to_owned());
    }
    violations.extend(end);
    let met = std::mem::take(&mut *met.lock().unwrap_or_else(PoisonError::into_inner));
    Outcome {
        violations,
        met: met.0,
        sites: met.1,
        faults: world.network.faults(),
        calls: world.network.total(),
        work: world.network.work(),
        children: world.monitor.counts().values().map(|(made, _)| made).sum(),
        lives: world.monitor.lives(),
        history: world.history.text(),
        hash: world.history.hash(),
        seconds: at / 1_000,
        remains: remains(&world),
    }
}

/// Jobs, pods and services as they are, times and identities aside.
fn remains(world: &World) -> String {
    let mut text = String::new();
    for plural in job::PLURALS {
        for job in world.cluster.list(plural, None) {
            let mut status = job.value()["status"].clone();
            without_times(&mut status);
            text += &format!("{plural} {}: {status}\n", job.value()["metadata"]["name"]);
        }
    }
    text += &format!("{:?}\n{:?}\n", world.pods_now(), world.services_now());
    for (child, (made, gone)) in world.monitor.counts() {
        text += &format!("{child}: made {made}, gone {gone}\n");
    }
    text
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !key.ends_with("Time") && key != "time");
            map.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}
