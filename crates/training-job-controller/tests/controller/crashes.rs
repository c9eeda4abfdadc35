//! An operator dies at any of its calls, before or after the call takes effect. A new operator with empty caches
//! brings the job to the same end.

use serde_json::{Value, json};

use training_job_simulation::faults::CallFault;
use training_job_simulation::faults::PodFate::{self, Fails, Runs, Succeeds};
use training_job_simulation::simulation::{Simulation, with_spec};

use crate::toys::{toy_job, without_operator};

const SMALL: [(&str, i32); 2] = [("Scheduler", 1), ("Worker", 2)];

/// The seconds from the users' last step until the job has ended.
const SETTLED: u64 = 180;

/// A step of a user.
enum Step {
    /// Merges a patch into the job.
    Edit(Value),
    /// Deletes the job, and creates another job of the same name.
    Recreate,
}

/// The life of a job: its spec, the fates of its pods, and the users' steps. Each step has its delay after the
/// previous step, in seconds.
struct Life<'a> {
    script: fn(&str, u32) -> PodFate,
    spec: Value,
    steps: &'a [(u64, Step)],
}

impl Life<'_> {
    /// Plays the life with an operator that dies at the call with number `at` (from 0). Returns the number of calls
    /// and the final state.
    async fn live(&self, death: Option<(usize, CallFault)>) -> (usize, Value) {
        let mut sim = without_operator(self.script);
        if let Some((at, fault)) = death {
            let mut number = 0;
            sim.network.add_rule(move |_| {
                number += 1;
                (number == at + 1).then(|| fault.clone())
            });
        }
        sim.start();
        let job = with_spec(toy_job("job", &SMALL), self.spec.clone());
        sim.create(job.clone()).await;
        for (seconds, step) in self.steps {
            sim.advance_replacing_dead(*seconds).await;
            match step {
                Step::Edit(patch) => sim.edit("job", patch.clone()).await,
                Step::Recreate => {
                    sim.delete("job").await;
                    sim.create(job.clone()).await;
                }
            }
        }
        sim.advance_replacing_dead(SETTLED).await;
        sim.assert_no_violations();
        let calls = sim.network.take_calls().len();
        (calls, remains(&sim))
    }

    async fn survives_death_at_every_call(&self) {
        let (calls, expected) = self.live(None).await;
        assert!(calls > 10, "{calls}");
        for at in 0..calls {
            for fault in [CallFault::DiesBefore, CallFault::DiesAfter] {
                let (_, left) = self.live(Some((at, fault.clone()))).await;
                assert_eq!(left, expected, "{fault:?} at call {at} of {calls}");
            }
        }
    }
}

/// The pod succeeds. The scheduler ends last, as in a real training.
fn ends_well(name: &str, seconds: u64) -> PodFate {
    let later = u64::from(name.contains("scheduler"));
    Succeeds(seconds + 3 * later)
}

/// Returns the jobs, pods and services, without times and UIDs.
fn remains(sim: &Simulation) -> Value {
    let mut jobs: Vec<Value> = sim
        .cluster
        .list("toyjobs", None)
        .iter()
        .map(|job| json!({"name": job.value()["metadata"]["name"], "status": job.value()["status"]}))
        .collect();
    jobs.iter_mut().for_each(without_times);
    json!({"jobs": jobs, "pods": sim.pods_now(), "services": sim.services_now()})
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

#[tokio::test(start_paused = true)]
async fn creation_to_success() {
    let life = Life {
        script: |name, _| ends_well(name, 10),
        spec: json!({}),
        steps: &[],
    };
    life.survives_death_at_every_call().await;
}

#[tokio::test(start_paused = true)]
async fn failure_and_restart() {
    let life = Life {
        script: |name, attempt| match attempt {
            0 if name.ends_with("worker-1") => Fails(137, 5),
            0 => Runs,
            _ => ends_well(name, 10),
        },
        spec: json!({"runPolicy": {"backoffLimit": 1}}),
        steps: &[],
    };
    life.survives_death_at_every_call().await;
}

#[tokio::test(start_paused = true)]
async fn restart_of_one_replica() {
    let life = Life {
        script: |name, attempt| match attempt {
            0 if name.ends_with("worker-1") => Fails(137, 5),
            _ => ends_well(name, 20),
        },
        spec: json!({"runPolicy": {"restartScope": "Replica", "cleanPodPolicy": "All"}}),
        steps: &[],
    };
    life.survives_death_at_every_call().await;
}

#[tokio::test(start_paused = true)]
async fn final_failure() {
    let life = Life {
        script: |name, _| {
            if name.ends_with("worker-1") {
                Fails(1, 5)
            } else {
                Runs
            }
        },
        spec: json!({}),
        steps: &[],
    };
    life.survives_death_at_every_call().await;
}

#[tokio::test(start_paused = true)]
async fn suspension_and_resumption() {
    let suspend = |yes: bool| Step::Edit(json!({"spec": {"runPolicy": {"suspend": yes}}}));
    let life = Life {
        script: |name, _| ends_well(name, 30),
        spec: json!({}),
        steps: &[(10, suspend(true)), (10, suspend(false))],
    };
    life.survives_death_at_every_call().await;
}

#[tokio::test(start_paused = true)]
async fn deletion_and_a_namesake() {
    let life = Life {
        script: |name, _| ends_well(name, 10),
        spec: json!({}),
        steps: &[(5, Step::Recreate)],
    };
    life.survives_death_at_every_call().await;
}

#[tokio::test(start_paused = true)]
async fn more_workers_and_fewer() {
    let workers = |n: i32| Step::Edit(json!({"spec": {"replicaSpecs": {"Worker": {"replicas": n}}}}));
    let life = Life {
        script: |name, _| {
            if name.ends_with("scheduler-0") {
                Succeeds(60)
            } else {
                Runs
            }
        },
        spec: json!({}),
        steps: &[(10, workers(3)), (10, workers(1))],
    };
    life.survives_death_at_every_call().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_time_to_live() {
    let life = Life {
        script: |name, _| ends_well(name, 5),
        spec: json!({"runPolicy": {"ttlSecondsAfterFinished": 20}}),
        steps: &[],
    };
    life.survives_death_at_every_call().await;
}
