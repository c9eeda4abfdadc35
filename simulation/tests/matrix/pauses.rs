//! The operator is paused, and continues with its old caches.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use training_job_controller::Operator;
use training_job_mxnet::MXJob;
use training_job_simulation::faults::PodFate::{self, Fails, Runs};
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{edit, settle_and_check, stale, worker};

/// Pauses an operator, and resumes it.
#[derive(Default)]
struct Switch {
    off: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Switch {
    fn off(&self) {
        self.off.store(true, Ordering::Relaxed);
    }

    fn on(&self) {
        self.off.store(false, Ordering::Relaxed);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }
}

/// An operator that can be paused.
struct Switched {
    process: Pin<Box<dyn Future<Output = ()> + Send>>,
    switch: Arc<Switch>,
}

impl Future for Switched {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.switch.off.load(Ordering::Relaxed) {
            *self.switch.waker.lock() = Some(context.waker().clone());
            return Poll::Pending;
        }
        self.process.as_mut().poll(context)
    }
}

/// A simulation whose first operator can be paused.
fn sim(script: fn(&str, u32) -> PodFate) -> (Simulation, Arc<Switch>) {
    // It may act on its state from before the pause.
    let mut sim = stale(script, 2_400_000, 2_400_000);
    let switch = Arc::new(Switch::default());
    let its = switch.clone();
    sim.start_as(|client, options| Switched {
        process: Box::pin(Operator::new(client, options).manage::<MXJob>().run()),
        switch: its,
    });
    (sim, switch)
}

/// This test has no leader election: another operator works from the first moment of the pause on, and both work
/// after it. The calls of the old operator are guarded so that they do no harm. (Tests with processes cover the
/// lease, and the fence that stops all writes.)
#[tokio::test(start_paused = true)]
async fn the_operator_pauses_for_minutes_and_continues() {
    let restarts = |name: &str, attempt| match attempt {
        0 if name.ends_with("worker-1") => Fails(137, 30),
        _ => Runs,
    };
    for minutes in [1, 5, 30] {
        for at in [0, 1, 10, 30] {
            let (mut sim, switch) = sim(restarts);
            sim.create(train("job", &SMALL)).await;
            sim.create(train("other", &SMALL)).await;
            sim.advance(at).await;
            switch.off();
            sim.start();
            sim.advance(20).await;
            sim.delete("job").await;
            sim.create(train("job", &SMALL)).await;
            edit(
                &sim,
                "mxjobs",
                "other",
                worker(serde_json::json!({"replicas": 1})),
            )
            .await;
            sim.advance(minutes * 60 - 20).await;
            let pods = sim.cluster.list("pods", None);
            let before: Vec<_> = pods
                .iter()
                .map(|p| p.value()["metadata"]["uid"].clone())
                .collect();
            sim.network.take_calls();
            switch.on();
            sim.advance(60).await;
            let pods = sim.cluster.list("pods", None);
            let after: Vec<_> = pods
                .iter()
                .map(|p| p.value()["metadata"]["uid"].clone())
                .collect();
            // After a minute the other operator is still restarting a job.
            if minutes > 1 {
                assert_eq!(before, after, "{minutes} min, at {at} s: it harms no pod");
            }
            settle_and_check(&mut sim).await;
        }
    }
}
