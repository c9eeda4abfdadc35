//! An API server that is away while many jobs have work to do.

use std::collections::BTreeMap;

use training_job_simulation::faults::CallFault::{self, Lost, Refused, Reset, ResetAfter, Unanswered};
use training_job_simulation::faults::PodFate::Runs;
use training_job_simulation::simulation::{Simulation, train};

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

/// Creates many jobs while every call has this fault. Their watch, which was open before, still works.
async fn create_jobs(fault: Option<CallFault>) -> Simulation {
    let sim = Simulation::new(|_, _| Runs);
    sim.advance(10).await;
    sim.network.add_rule(move |_| fault.clone());
    for number in 0..JOBS {
        sim.create(train(&format!("job-{number}"), &[("Worker", 1)]))
            .await;
    }
    sim
}

/// Returns the number of stored events of each reason.
fn reasons(sim: &Simulation) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    for reason in sim.events() {
        *reasons.entry(reason).or_default() += 1;
    }
    reasons
}

/// The server gets few calls, no event is lost, and the jobs continue at once when it is back.
#[tokio::test(start_paused = true)]
async fn an_absent_server_gets_few_calls_and_costs_no_event_and_no_backoff() {
    let sim = create_jobs(None).await;
    sim.advance(60).await;
    let expected = reasons(&sim);
    for fault in AWAY {
        let sim = create_jobs(Some(fault.clone())).await;
        // A call that gets no response is given up after 30 s.
        sim.advance(40).await;
        sim.network.take_calls();
        sim.advance(100).await;
        let calls = sim.network.take_calls();
        let attempts = calls.iter().filter(|call| call.resource.is_empty()).count();
        assert!(calls.len() <= 300, "{fault:?}: {} calls in 100 s", calls.len());
        assert_eq!(attempts, calls.len(), "{fault:?}: other calls than attempts");

        sim.network.heal();
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let pods = sim.pods_now().len();
        assert_eq!(pods, JOBS, "{fault:?}: half a second after its return");
        sim.advance(60).await;
        // A write that took effect unnoticed, at most one for each call in flight, has no event.
        let unnoticed = if fault.takes_effect_unnoticed() { 16 } else { 0 };
        let stored = reasons(&sim);
        assert_eq!(stored.len(), expected.len(), "{fault:?}: {stored:?}");
        for (reason, count) in &expected {
            let range = count - unnoticed..=*count;
            assert!(range.contains(&stored[reason]), "{fault:?}: {stored:?}");
        }
        sim.assert_no_violations();
    }
}
