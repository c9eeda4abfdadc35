//! Starts and kills operators.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Client;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use training_job_controller::{Operator, Options};

use super::Simulation;
use super::setup::of_different_kinds;

pub(super) struct RunningOperator {
    task: JoinHandle<()>,
    dead: Arc<AtomicBool>,
}

impl Simulation {
    /// Starts an operator with empty caches, and returns its number.
    pub fn start(&mut self) -> usize {
        let job_types = self.job_types;
        self.start_as(move |client, options| {
            let operator = Operator::new(client, options);
            let kinds = of_different_kinds(job_types);
            kinds
                .fold(operator, |operator, kind| kind.managed_by(operator))
                .run()
        })
    }

    /// Starts an operator with the future that `run` returns. The future must not end.
    pub fn start_as<F>(&mut self, run: impl FnOnce(Client, Options) -> F) -> usize
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (client, number, dead) = self.network.connect();
        let mut options = Options::default();
        options.clock = Arc::new(self.clock.clone());
        options.concurrency = self.concurrency;
        options.settings.gang_scheduler = self.gang_scheduler().cloned();
        let client = options.gate.client(client);
        let task = tokio::spawn(run(client, options));
        self.history.note(format_args!("op{number} starts"));
        self.running.insert(number, RunningOperator { task, dead });
        number
    }

    /// Kills all operators.
    pub async fn kill(&mut self) {
        for number in self.running.keys().copied().collect::<Vec<_>>() {
            self.kill_one(number).await;
        }
    }

    /// Kills an operator. Returns true if it was running.
    pub async fn kill_one(&mut self, number: usize) -> bool {
        let Some(RunningOperator { task, dead }) = self.running.remove(&number) else {
            return false;
        };
        dead.store(true, Ordering::Relaxed);
        task.abort();
        self.history.note(format_args!("op{number} is killed"));
        // An operator ends only if it panics or is canceled.
        self.operator_ended |= !task.await.is_err_and(|error| error.is_cancelled());
        true
    }

    /// Returns the number of running operators.
    pub fn operators(&self) -> usize {
        self.running.len()
    }

    /// Returns true if an operator ended without being killed, for example after a panic.
    pub fn has_operator_ended(&self) -> bool {
        self.operator_ended || self.running.values().any(|r| r.task.is_finished())
    }

    /// Lets this many seconds pass, and replaces operators that die in the meantime.
    pub async fn advance_replacing_dead(&mut self, seconds: u64) {
        self.advance_until(Instant::now() + Duration::from_secs(seconds))
            .await;
    }

    /// Lets time pass until `end`, and replaces operators that die in the meantime.
    pub async fn advance_until(&mut self, end: Instant) {
        loop {
            let dead = tokio::select! {
                biased;
                dead = self.network.next_deaths() => dead,
                () = tokio::time::sleep_until(end) => return,
            };
            for number in dead {
                if self.kill_one(number).await {
                    self.start();
                }
            }
        }
    }
}
