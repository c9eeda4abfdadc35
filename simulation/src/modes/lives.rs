//! Runs jobs from creation to deletion without faults, to measure the speed of a simulation.

use http::Method;
use serde_json::json;

use crate::faults::PodFate;
use crate::simulation::{SMALL, Simulation, on_paused_clock, train};
use crate::world::direct::{path, send};

/// The number of jobs in one simulation.
pub const JOBS_IN_A_SIMULATION: u64 = 10;

/// Creates [`JOBS_IN_A_SIMULATION`] jobs of four pods in one simulation. They run, succeed and are deleted.
///
/// # Panics
/// Panics if a job does not succeed, or an invariant is violated.
pub fn live() {
    on_paused_clock(async {
        let sim =
            Simulation::new(|name, _| PodFate::Succeeds(if name.contains("scheduler") { 15 } else { 10 }));
        let names: Vec<String> = (0..JOBS_IN_A_SIMULATION).map(|n| format!("job-{n}")).collect();
        for name in &names {
            let (code, why) = send(
                &sim.cluster,
                Method::POST,
                &path("mxjobs", ""),
                &train(name, &SMALL),
            )
            .await;
            assert_eq!(code, 201, "{why}");
        }
        sim.advance(30).await;
        let background = json!({"propagationPolicy": "Background"});
        for name in &names {
            assert_eq!(sim.conditions(name), "Created Running=False Succeeded");
            let (code, why) = send(&sim.cluster, Method::DELETE, &path("mxjobs", name), &background).await;
            assert_eq!(code, 200, "{why}");
        }
        sim.advance(5).await;
        assert_eq!(sim.pods_now(), [""; 0]);
        sim.assert_no_violations();
    });
}
