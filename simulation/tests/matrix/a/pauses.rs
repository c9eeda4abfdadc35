//! It stands still, and goes on with what it knew.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use training_job::Operator;
use training_job_mxnet::MXJob;
use training_job_simulation::invariants::Patience;
use training_job_simulation::kubelet::Fate::{Fails, Runs};
use training_job_simulation::world::{SMALL, Setup, World, train};

use crate::stage::{edit, rest, worker};

/// Stops a process, and lets it go on.
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
        if let Some(waker) = self.waker.lock().unwrap().take() {
            waker.wake();
        }
    }
}

/// A process with a switch.
struct Switched {
    process: Pin<Box<dyn Future<Output = ()> + Send>>,
    switch: Arc<Switch>,
}

impl Future for Switched {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.switch.off.load(Ordering::Relaxed) {
            *self.switch.waker.lock().unwrap() = Some(context.waker().clone());
            return Poll::Pending;
        }
        self.process.as_mut().poll(context)
    }
}

/// A world whose first operator has a switch.
fn world(script: fn(&str, u32) -> training_job_simulation::kubelet::Fate) -> (World, Arc<Switch>) {
    let mut world = World::with(Setup {
        // It may act on what it knew before the pause.
        patience: Patience {
            others: 2_400_000,
            own: 2_400_000,
        },
        ..Setup::of(script)
    });
    let switch = Arc::new(Switch::default());
    let its = switch.clone();
    world.start_as(|client, options| Switched {
        process: Box::pin(Operator::new(client, options).manage::<MXJob>().run()),
        switch: its,
    });
    (world, switch)
}

/// There is no election here: another operator works from the first moment of the pause on, and both do after
/// it. What keeps the old one from harm is in its calls. (The lease, and the fence that stops all its writes, are
/// tested with processes.)
#[tokio::test(start_paused = true)]
async fn a6_it_stands_still_for_minutes_and_goes_on() {
    let restarts = |name: &str, attempt| match attempt {
        0 if name.ends_with("worker-1") => Fails(137, 30),
        _ => Runs,
    };
    for minutes in [1, 5, 30] {
        for at in [0, 1, 10, 30] {
            let (mut world, switch) = world(restarts);
            world.create(train("job", &SMALL)).await;
            world.create(train("other", &SMALL)).await;
            world.pass(at).await;
            switch.off();
            world.start();
            world.pass(20).await;
            world.delete("job").await;
            world.create(train("job", &SMALL)).await;
            edit(
                &world,
                "mxjobs",
                "other",
                worker(serde_json::json!({"replicas": 1})),
            )
            .await;
            world.pass(minutes * 60 - 20).await;
            let pods = world.cluster.list("pods", None);
            let before: Vec<_> = pods
                .iter()
                .map(|p| p.value()["metadata"]["uid"].clone())
                .collect();
            world.network.take();
            switch.on();
            world.pass(60).await;
            let pods = world.cluster.list("pods", None);
            let after: Vec<_> = pods
                .iter()
                .map(|p| p.value()["metadata"]["uid"].clone())
                .collect();
            // After a minute the other operator is still restarting a job.
            if minutes > 1 {
                assert_eq!(before, after, "{minutes} min, at {at} s: it harms no pod");
            }
            rest(&mut world).await;
        }
    }
}
