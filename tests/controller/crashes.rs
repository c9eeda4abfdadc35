//! An operator that dies at any of its calls, before or after the call takes effect, is replaced by
//! one with an empty memory that brings the job to the same end.

use std::pin::Pin;

use serde_json::{Value, json};

use training_job_simulation::faults::CallFault;
use training_job_simulation::faults::PodFate::{self, Fails, Runs, Succeeds};
use training_job_simulation::simulation::{Simulation, with_spec};

use crate::toys::{toy_job, without_operator};

const SMALL: [(&str, i32); 2] = [("Scheduler", 1), ("Worker", 2)];

/// Seconds after the last thing that happens by itself.
const SETTLED: u64 = 120;

type Users = for<'a> fn(&'a mut Simulation) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A life: what pods do, and what users do.
struct Life {
    script: fn(&str, u32) -> PodFate,
    users: Users,
}

impl Life {
    /// Lives it with an operator that dies at call number `at` (from 0), and returns how many calls
    /// there were and what is left.
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
        (self.users)(&mut sim).await;
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

/// Ends well, the scheduler last, as it does in reality.
fn ends_well(name: &str, seconds: u64) -> PodFate {
    let later = u64::from(name.contains("scheduler"));
    Succeeds(seconds + 3 * later)
}

/// Jobs, pods and services as they are, times and identities aside.
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
            if let Some(Value::Object(recovery)) = map.get_mut("recovery") {
                recovery.remove("succeeded");
            }
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
        users: |sim| {
            Box::pin(async {
                sim.create(toy_job("job", &SMALL)).await;
                sim.advance_replacing_dead(30).await;
            })
        },
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
        users: |sim| {
            Box::pin(async {
                let job = with_spec(toy_job("job", &SMALL), json!({"runPolicy": {"backoffLimit": 1}}));
                sim.create(job).await;
                sim.advance_replacing_dead(60).await;
            })
        },
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
        users: |sim| {
            Box::pin(async {
                let policy = json!({"runPolicy": {"restartScope": "Replica", "cleanPodPolicy": "All"}});
                sim.create(with_spec(toy_job("job", &SMALL), policy)).await;
                sim.advance_replacing_dead(60).await;
            })
        },
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
        users: |sim| {
            Box::pin(async {
                sim.create(toy_job("job", &SMALL)).await;
                sim.advance_replacing_dead(30).await;
            })
        },
    };
    life.survives_death_at_every_call().await;
}

#[tokio::test(start_paused = true)]
async fn suspension_and_resumption() {
    let life = Life {
        script: |name, _| ends_well(name, 30),
        users: |sim| {
            Box::pin(async {
                let suspend = |yes: bool| json!({"spec": {"runPolicy": {"suspend": yes}}});
                sim.create(toy_job("job", &SMALL)).await;
                sim.advance_replacing_dead(10).await;
                sim.edit("job", suspend(true)).await;
                sim.advance_replacing_dead(10).await;
                sim.edit("job", suspend(false)).await;
                sim.advance_replacing_dead(60).await;
            })
        },
    };
    life.survives_death_at_every_call().await;
}

#[tokio::test(start_paused = true)]
async fn deletion_and_a_namesake() {
    let life = Life {
        script: |name, _| ends_well(name, 10),
        users: |sim| {
            Box::pin(async {
                sim.create(toy_job("job", &SMALL)).await;
                sim.advance_replacing_dead(5).await;
                sim.delete("job").await;
                sim.create(toy_job("job", &SMALL)).await;
                sim.advance_replacing_dead(60).await;
            })
        },
    };
    life.survives_death_at_every_call().await;
}

#[tokio::test(start_paused = true)]
async fn more_workers_and_fewer() {
    let life = Life {
        script: |name, _| {
            if name.ends_with("scheduler-0") {
                Succeeds(60)
            } else {
                Runs
            }
        },
        users: |sim| {
            Box::pin(async {
                let workers = |n: i32| json!({"spec": {"replicaSpecs": {"Worker": {"replicas": n}}}});
                sim.create(toy_job("job", &SMALL)).await;
                sim.advance_replacing_dead(10).await;
                sim.edit("job", workers(3)).await;
                sim.advance_replacing_dead(10).await;
                sim.edit("job", workers(1)).await;
                sim.advance_replacing_dead(60).await;
            })
        },
    };
    life.survives_death_at_every_call().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_time_to_live() {
    let life = Life {
        script: |name, _| ends_well(name, 5),
        users: |sim| {
            Box::pin(async {
                let policy = json!({"runPolicy": {"ttlSecondsAfterFinished": 20}});
                sim.create(with_spec(toy_job("job", &SMALL), policy)).await;
                sim.advance_replacing_dead(60).await;
            })
        },
    };
    life.survives_death_at_every_call().await;
}
