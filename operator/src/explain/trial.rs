//! A job's life tried out: the operator's own plan, on a cluster that is made up.

use std::marker::PhantomData;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;
use training_job::api::{ConditionStatus, ConditionType, JobCondition, JobStatus};
use training_job::plan::observed::{ContainerRecord, Observed, Phase, PodRecord, Termination};
use training_job::plan::{ChildKind, plan};
use training_job::{Plan, Settings, TrainingJob, validate};

use super::{End, Event, Left, Life, Outcome, RoleLife};
use crate::kinds::{Refusal, read};

/// More steps than any job takes to come to rest.
const MAX_STEPS: usize = 20;

/// A job in a cluster in which every pod starts at once.
#[derive(Clone)]
struct Trial<J> {
    job: PhantomData<J>,
    object: Value,
    status: JobStatus,
    observed: Observed,
    now: Timestamp,
    /// Pods and services in the order in which they were made.
    made: Vec<(ChildKind, String)>,
    /// The pods whose containers the kubelet restarts.
    kubelet_restarts: Vec<String>,
}

/// What the plan does in a job's life.
pub(crate) fn life<J: TrainingJob>(object: &Value) -> Result<Life, Refusal> {
    let mut trial = Trial::<J> {
        job: PhantomData,
        object: object.clone(),
        status: JobStatus::default(),
        observed: Observed::default(),
        now: Timestamp::UNIX_EPOCH,
        made: Vec::new(),
        kubelet_restarts: Vec::new(),
    };
    trial.settle()?;
    let job: J = read(object)?;
    let valid = validate(&job, &Settings::default()).map_err(Refusal::Invalid)?;
    let mut roles = Vec::new();
    // Of a suspended job there is nothing that could fail.
    for role in valid
        .topology
        .roles
        .iter()
        .filter(|r| r.replicas > 0 && !valid.policy.suspend)
    {
        let pods: Vec<String> = role.all().map(|r| r.host()).collect();
        let mut ended = trial.clone();
        pods.iter().for_each(|pod| ended.end(pod, 0));
        ended.settle()?;
        let mut events = Vec::new();
        for event in Event::ALL {
            events.push((event, trial.after(event, &pods[0], valid.policy.backoff_limit)?));
        }
        roles.push(RoleLife {
            name: role.slug.clone(),
            replicas: role.replicas,
            decides: ended.status.is(ConditionType::Succeeded),
            events,
        });
    }
    let deadline = match valid.policy.active_deadline_seconds {
        None => None,
        Some(seconds) => {
            let mut late = trial.clone();
            late.happen(Event::Deadline(seconds), "");
            late.step()?;
            late.status.is(ConditionType::Failed).then_some(seconds)
        }
    };
    if let Some(seconds) = deadline {
        for role in &mut roles {
            role.events.push((Event::Deadline(seconds), Outcome::Fails));
        }
    }
    let end = trial.end_of_life(valid.policy.ttl_seconds)?;
    Ok(Life {
        made: trial.made,
        roles,
        deadline,
        end,
    })
}

impl<J: TrainingJob> Trial<J> {
    /// What is left when the job ends.
    fn end_of_life(&self, time_to_live: Option<i64>) -> Result<End, Refusal> {
        let left = |phase| -> Result<Left, Refusal> {
            let mut trial = self.clone();
            let names: Vec<String> = trial.observed.pods.keys().cloned().collect();
            for name in &names {
                trial.change(name, |pod| pod.phase = phase);
            }
            trial.status.completion_time = Some(Time(trial.now));
            trial.status.conditions.push(JobCondition {
                type_: ConditionType::Failed.as_str().to_owned(),
                status: ConditionStatus::True,
                reason: String::new(),
                message: String::new(),
                last_update_time: None,
                last_transition_time: None,
            });
            trial.step()?;
            Ok(Left {
                pod: !trial.observed.pods.is_empty(),
                service: !trial.observed.services.is_empty(),
            })
        };
        Ok(End {
            running: left(Phase::Running)?,
            finished: left(Phase::Succeeded)?,
            time_to_live,
        })
    }

    /// Carries out one plan. Returns whether it did anything.
    fn step(&mut self) -> Result<bool, Refusal> {
        let mut object = self.object.clone();
        object["status"] =
            serde_json::to_value(&self.status).map_err(|e| Refusal::Unreadable(e.to_string()))?;
        let job: J = read(&object)?;
        let valid = validate(&job, &Settings::default()).map_err(Refusal::Invalid)?;
        let plan = plan(&valid, &self.observed, self.now);
        let (idle, wake) = (plan.is_idle(), plan.requeue.clone());
        self.carry_out(plan);
        match wake {
            // The plan wants to look again in a moment; a limit is not waited for.
            Some(wake)
                if idle
                    && wake.at > self.now
                    && wake.at.duration_since(self.now) <= SignedDuration::from_secs(5) =>
            {
                self.now = wake.at;
                Ok(true)
            }
            _ => Ok(!idle),
        }
    }

    fn settle(&mut self) -> Result<(), Refusal> {
        for _ in 0..MAX_STEPS {
            if !self.step()? {
                break;
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, plan: Plan) {
        if let Some(change) = plan.status {
            self.status = change.status;
        }
        for service in &plan.create_services {
            let record = training_job::plan::observed::ServiceRecord::from(service);
            self.made.push((ChildKind::Service, record.name.clone()));
            self.observed
                .services
                .insert(record.name.clone(), Arc::new(record));
        }
        for pod in &plan.create_pods {
            let mut record = PodRecord::from(pod);
            record.phase = Phase::Running;
            let spec = pod.spec.clone().unwrap_or_default();
            if spec.restart_policy.as_deref() != Some("Never") {
                self.kubelet_restarts.push(record.name.clone());
            }
            let containers = spec
                .containers
                .into_iter()
                .filter(|c| c.name == J::FRAMEWORK.container);
            record.containers = containers
                .map(|c| ContainerRecord {
                    name: c.name,
                    ..Default::default()
                })
                .collect();
            self.made.push((ChildKind::Pod, record.name.clone()));
            self.observed.pods.insert(record.name.clone(), Arc::new(record));
        }
        for deletion in plan.delete {
            match deletion.kind {
                ChildKind::Pod => drop(self.observed.pods.remove(&deletion.name)),
                ChildKind::Service => drop(self.observed.services.remove(&deletion.name)),
            }
        }
    }

    /// What follows from an event in a pod: whether it ends the job, and at which restart.
    fn after(&self, event: Event, pod: &str, limit: Option<i32>) -> Result<Outcome, Refusal> {
        let fails_at = |used: i32| -> Result<bool, Refusal> {
            let mut trial = self.clone();
            trial.status.restart_count = used;
            trial.happen(event, pod);
            trial.step()?;
            Ok(trial.status.is(ConditionType::Failed))
        };
        let mut trial = self.clone();
        trial.happen(event, pod);
        let before = trial.status.clone();
        trial.step()?;
        let after = &trial.status;
        if after.is(ConditionType::Failed) {
            return Ok(Outcome::Fails);
        }
        let (old, new) = (&before.recovery, &after.recovery);
        let scope = if new.job > old.job {
            "the whole job"
        } else if new.roles != old.roles {
            "its role"
        } else if new.replicas != old.replicas {
            "it alone"
        } else if after.restart_count > before.restart_count {
            "its container, in place"
        } else if trial.made.len() > self.made.len() {
            return Ok(Outcome::Replaced);
        } else {
            return Ok(Outcome::RunsOn);
        };
        // More restarts never turn a failure into a restart, so the first that is final can be halved for.
        let times = match limit {
            Some(limit) if fails_at(limit)? => {
                let (mut good, mut bad) = (0, limit);
                while bad - good > 1 {
                    let middle = good + (bad - good) / 2;
                    if fails_at(middle)? {
                        bad = middle
                    } else {
                        good = middle
                    }
                }
                Some(bad)
            }
            _ => None,
        };
        Ok(Outcome::Restarts { scope, times })
    }

    fn happen(&mut self, event: Event, pod: &str) {
        match event {
            Event::Exit(code) => self.end(pod, code),
            Event::Evicted => self.change(pod, |pod| {
                pod.phase = Phase::Failed;
                pod.disrupted = true;
                pod.reason = Some("Evicted".to_owned());
            }),
            Event::Deleted => drop(self.observed.pods.remove(pod)),
            Event::Deadline(seconds) => {
                let late = self.now.saturating_add(SignedDuration::from_secs(seconds));
                self.now = late.unwrap_or(Timestamp::MAX);
            }
        }
    }

    /// A container ends; what becomes of its pod is the kubelet's to say.
    fn end(&mut self, pod: &str, code: i32) {
        let restarts = code != 0 && self.kubelet_restarts.iter().any(|name| name == pod);
        self.change(pod, |pod| {
            let end = Termination {
                exit_code: code,
                ..Termination::default()
            };
            for container in &mut pod.containers {
                if restarts {
                    container.restarts += 1;
                    container.last = Some(end.clone());
                } else {
                    container.ended = Some(end.clone());
                }
            }
            if !restarts {
                pod.phase = if code == 0 {
                    Phase::Succeeded
                } else {
                    Phase::Failed
                };
            }
        });
    }

    fn change(&mut self, pod: &str, change: impl FnOnce(&mut PodRecord)) {
        if let Some(record) = self.observed.pods.get_mut(pod) {
            change(Arc::make_mut(record));
        }
    }
}
