//! An API server that is away while many jobs have work to do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;
use training_job_simulation::faults::CallFault::{self, Lost, Refused, Reset, ResetAfter, Unanswered};
use training_job_simulation::faults::PodFate::Runs;
use training_job_simulation::simulation::Simulation;

use crate::toys::{simulate, toy_job};

const JOBS: usize = 50;

/// The faults of all calls of a server that is away.
const AWAY: [CallFault; 7] = [
    Reset,
    ResetAfter,
    Lost,
    Unanswered,
    Refused(502, "BadGateway"),
    Refused(503, "ServiceUnavailable"),
    Refused(504, "Timeout"),
];

/// Makes every call fail like this until the returned switch is set.
fn away(sim: &Simulation, fault: &CallFault) -> Arc<AtomicBool> {
    let back = Arc::new(AtomicBool::new(false));
    let (is_back, fault) = (back.clone(), fault.clone());
    sim.network
        .add_rule(move |_| (!is_back.load(Ordering::Relaxed)).then(|| fault.clone()));
    back
}

/// Creates many jobs. Their watch, which was open before, still works.
async fn create_jobs(sim: &Simulation) {
    for number in 0..JOBS {
        sim.create(toy_job(&format!("job-{number}"), &[("Worker", 1)]))
            .await;
    }
}

/// Returns the number of stored events of each reason.
fn reasons(sim: &Simulation) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    for event in sim.cluster.list("events", None) {
        let reason = event.value()["reason"].as_str().unwrap().to_owned();
        *reasons.entry(reason).or_default() += 1;
    }
    reasons
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_gets_few_calls_and_loses_no_event_and_no_job_pays_for_it() {
    let sim = simulate(|_, _| Runs);
    sim.advance(10).await;
    create_jobs(&sim).await;
    sim.advance(60).await;
    let expected = reasons(&sim);
    for fault in AWAY {
        let sim = simulate(|_, _| Runs);
        sim.advance(10).await;
        let back = away(&sim, &fault);
        create_jobs(&sim).await;
        // A call that gets no answer is given up after 30 s.
        sim.advance(40).await;
        sim.network.take_calls();
        sim.advance(100).await;
        let calls = sim.network.take_calls();
        let attempts = calls.iter().filter(|call| call.resource.is_empty()).count();
        assert!(calls.len() <= 300, "{fault:?}: {} calls in 100 s", calls.len());
        assert_eq!(attempts, calls.len(), "{fault:?}: other calls than attempts");

        back.store(true, Ordering::Relaxed);
        sleep(Duration::from_millis(500)).await;
        let pods = sim.cluster.list("pods", None).len();
        assert_eq!(
            pods, JOBS,
            "{fault:?}: jobs that start within half a second of its return"
        );
        sim.advance(60).await;
        // A write that took effect unnoticed, at most one for each call in flight, has no event.
        let unnoticed = if fault.takes_effect_unnoticed() { 16 } else { 0 };
        let stored = reasons(&sim);
        for (reason, count) in &expected {
            let stored = stored.get(reason).copied().unwrap_or_default();
            assert!(
                (count - unnoticed..=*count).contains(&stored),
                "{fault:?}: {stored} × {reason}"
            );
        }
        assert_eq!(stored.len(), expected.len(), "{fault:?}: {stored:?}");
        sim.assert_no_violations();
    }
}
