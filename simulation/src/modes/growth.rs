//! Measures how the CPU time of a change grows with the number of jobs in the cluster.
//!
//! The jobs in the cluster are calm: all their pods run. The measurement edits a few of them, and creates and deletes
//! a few more. It counts the CPU time of this thread within the operator, without the network and the API server,
//! which run within the operator's calls. Each measurement starts with cold processor caches. Otherwise a small
//! cluster would be read from the caches and a large one from memory, and the result would reflect the cache sizes.

use std::future::poll_fn;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Request;
use kube::Client;
use kube::client::Body;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tower::Service;
use training_job_controller::Operator;
use training_job_mxnet::MXJob;

use crate::faults::PodFate;
use crate::simulation::{SMALL, Simulation, on_paused_clock, train};

/// The number of measurements. The minimum is used, because other load on the machine only adds time.
const MEASUREMENTS: u64 = 15;

/// The number of jobs that are edited, or created and deleted, in a round.
const JOBS_IN_A_BATCH: u64 = 20;

/// A number of bytes larger than a processor's caches.
const CACHE_BYTES: usize = 128 << 20;

/// The number of seconds for the operator to process a batch, or the first jobs.
const SETTLE_SECONDS: u64 = 60;

/// The CPU cost of changes in a cluster with this many jobs.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The number of calm jobs of four pods.
    pub jobs: u64,
    /// The operator's CPU time for an edit of a job that needs no action, in nanoseconds.
    pub change: f64,
    /// The operator's CPU time for an additional job that runs and is deleted, in nanoseconds.
    pub one_more: f64,
}

/// Measures the CPU cost of changes in a cluster with this many jobs.
///
/// # Panics
/// Panics if a job does not run, or the cluster rejects a user's call.
pub fn measure(jobs: u64) -> Cost {
    on_paused_clock(async {
        let (sim, operator) = start(jobs).await;
        let mut cost = Cost {
            jobs,
            change: f64::INFINITY,
            one_more: f64::INFINITY,
        };
        let mut elsewhere = vec![0_u8; CACHE_BYTES];
        for round in 0..MEASUREMENTS {
            cool(&mut elsewhere);
            let before = operator.spent();
            for n in 0..JOBS_IN_A_BATCH {
                // Not neighbors, because neighbors are adjacent in memory.
                let name = format!("job-{}", (round * JOBS_IN_A_BATCH + n) * 7_919 % jobs);
                let note = json!({"metadata": {"annotations": {"round": round.to_string()}}});
                sim.edit(&name, note).await;
            }
            sim.advance(SETTLE_SECONDS).await;
            cost.change = cost.change.min(each(operator.spent() - before));

            let names: Vec<String> = (0..JOBS_IN_A_BATCH)
                .map(|n| format!("more-{round}-{n}"))
                .collect();
            cool(&mut elsewhere);
            let before = operator.spent();
            create(&sim, &names).await;
            for name in &names {
                sim.delete(name).await;
            }
            sim.advance(SETTLE_SECONDS).await;
            cost.one_more = cost.one_more.min(each(operator.spent() - before));
        }
        cost
    })
}

/// Fills the processor's caches with unrelated data.
fn cool(elsewhere: &mut [u8]) {
    for line in elsewhere.iter_mut().step_by(64) {
        *line = line.wrapping_add(1);
    }
    black_box(elsewhere);
}

fn each(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / JOBS_IN_A_BATCH as f64
}

/// Returns the exponent by which the costs grow with the number of jobs: the slope of the least-squares line through
/// the logarithms. `of` selects the cost.
pub fn slope(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> f64 {
    let points: Vec<(f64, f64)> = costs.iter().map(|c| ((c.jobs as f64).ln(), of(c).ln())).collect();
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let along: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let across: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    along / across
}

/// Starts a cluster with this many calm jobs. Returns it with the meter of its operator.
async fn start(jobs: u64) -> (Simulation, OperatorMeter) {
    let mut sim = Simulation::without_operator(|_, _| PodFate::Runs);
    sim.network.allow_calls(40 * jobs);
    let meter = OperatorMeter::default();
    let within = meter.clone();
    sim.start_as(|client, options| {
        let client = Client::new(within.server.measure_calls(client), "default");
        let operator = Operator::new(client, options).manage::<MXJob>();
        within.operator.measure(operator.run())
    });
    let names: Vec<String> = (0..jobs).map(|n| format!("job-{n}")).collect();
    create(&sim, &names).await;
    (sim, meter)
}

/// Creates these jobs, and waits until they run.
async fn create(sim: &Simulation, names: &[String]) {
    for name in names {
        sim.create(train(name, &SMALL)).await;
    }
    sim.advance(SETTLE_SECONDS).await;
    for name in names {
        assert_eq!(sim.conditions(name), "Created Running", "{name}");
    }
}

/// The CPU time of an operator and of the server that it calls.
#[derive(Clone, Default)]
struct OperatorMeter {
    operator: Meter,
    /// Included in the operator's time.
    server: Meter,
}

impl OperatorMeter {
    fn spent(&self) -> u64 {
        self.operator.spent() - self.server.spent()
    }
}

/// CPU time of futures, in nanoseconds. Clones share the same counter.
#[derive(Clone, Default)]
struct Meter(Arc<AtomicU64>);

impl Meter {
    fn spent(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    async fn measure<F: Future>(self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            let before = thread_time();
            let poll = future.as_mut().poll(context);
            self.0.fetch_add(thread_time() - before, Ordering::Relaxed);
            poll
        })
        .await
    }

    /// Returns a service that wraps `client` and measures its calls.
    fn measure_calls(
        &self,
        client: Client,
    ) -> impl Service<Request<Body>, Response = http::Response<Body>, Error = kube::Error, Future: Send>
    + Send
    + 'static {
        let meter = self.clone();
        tower::service_fn(move |request| {
            let (meter, client) = (meter.clone(), client.clone());
            meter.measure(async move { client.send(request).await })
        })
    }
}

/// Returns this thread's CPU time in nanoseconds.
fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u64::try_from(nanoseconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_the_power_by_which_costs_grow() {
        let cost = |jobs: u64, power: f64| Cost {
            jobs,
            change: 7.0 * (jobs as f64).powf(power),
            one_more: 9.0,
        };
        for power in [0.0, 0.1, 1.0, 2.0] {
            let costs = [100, 300, 10_000].map(|jobs| cost(jobs, power));
            assert!((slope(&costs, |c| c.change) - power).abs() < 1e-9, "{power}");
            assert!(slope(&costs, |c| c.one_more).abs() < 1e-9);
        }
    }
}
