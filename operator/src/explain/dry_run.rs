//! A job's life, found by running the operator's own plan on a made-up cluster.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use training_job::api::{ConditionStatus, ConditionType, JobCondition, JobStatus, labels};
use training_job::plan::observed::{ContainerRecord, Observed, Phase, PodRecord, Termination};
use training_job::plan::{ChildKind, plan};
use training_job::validate::Policy;
use training_job::{FieldErrors, Plan, Settings, TrainingJob, ValidJob, validate};

use super::life::{Consequence, End, Gang, Incident, Left, Life, RoleLife};
use crate::kinds::{decode, unreadable};

/// More steps than any job takes until the plan is idle.
const MAX_STEPS: usize = 20;

/// A job in a cluster in which every pod starts at once.
#[derive(Clone)]
struct DryRun<'a, J> {
    job: PhantomData<J>,
    object: Value,
    settings: &'a Settings,
    status: JobStatus,
    observed: Observed,
    now: Timestamp,
    /// The created objects, services and pods, in order.
    created: Vec<(ChildKind, String)>,
    /// Those among them that are no replica's.
    beside: BTreeSet<(ChildKind, String)>,
    /// The pods whose containers the kubelet restarts.
    kubelet_restarts: Vec<String>,
}

/// What the plan does in the life of a job that was written under `version`.
pub(crate) fn life<J: TrainingJob>(
    object: &Value,
    version: &str,
    settings: &Settings,
) -> Result<Life, FieldErrors> {
    let mut run = DryRun::<J> {
        job: PhantomData,
        object: object.clone(),
        settings,
        status: JobStatus::default(),
        observed: Observed::default(),
        now: Timestamp::UNIX_EPOCH,
        created: Vec::new(),
        beside: BTreeSet::new(),
        kubelet_restarts: Vec::new(),
    };
    run.run_until_idle()?;
    let job: J = decode(object)?;
    let valid = validate(&job, settings)?;
    let of_other_roles = valid.topology.roles.iter().filter_map(|role| {
        let first = job.starts_after(&valid.topology, role).iter();
        let first: Vec<_> = first
            .filter_map(|name| valid.topology.role(name).filter(|role| role.replicas > 0))
            .map(|role| role.slug.clone())
            .collect();
        (role.replicas > 0 && !first.is_empty()).then(|| (role.slug.clone(), first.join(" and ")))
    });
    let later = of_other_roles.collect();
    let mut roles = Vec::new();
    // A suspended job has no pods that could fail.
    for role in valid
        .topology
        .roles
        .iter()
        .filter(|r| r.replicas > 0 && !valid.policy.suspend)
    {
        let pods: Vec<String> = role.all().map(|r| r.host()).collect();
        let mut ended = run.clone();
        pods.iter().for_each(|pod| ended.end_container(pod, 0));
        ended.run_until_idle()?;
        let mut incidents = Vec::new();
        for incident in Incident::of(&valid.policy.failure, role) {
            incidents.push((incident, run.consequence(incident, &pods[0], &valid.policy)?));
        }
        roles.push(RoleLife {
            name: role.slug.clone(),
            replicas: role.replicas,
            decides: ended.status.is(ConditionType::Succeeded),
            incidents,
        });
    }
    let deadline = match valid.policy.active_deadline_seconds {
        None => None,
        Some(seconds) => {
            let mut late = run.clone();
            late.apply_incident(Incident::Deadline(seconds), "");
            late.step()?;
            late.status.is(ConditionType::Failed).then_some(seconds)
        }
    };
    if let Some(seconds) = deadline {
        for role in &mut roles {
            role.incidents
                .push((Incident::Deadline(seconds), Consequence::Fails));
        }
    }
    let end = run.end_of_life(valid.policy.ttl_seconds)?;
    Ok(Life {
        reading: job.reading(version),
        common_service: valid.topology.common_service.clone(),
        gang: run.gang(),
        queue: labels::queue(job.meta()).map(str::to_owned),
        later,
        created: run.created,
        roles,
        deadline,
        end,
    })
}

impl<J: TrainingJob> DryRun<'_, J> {
    /// What is left when the job ends.
    fn end_of_life(&self, time_to_live: Option<i64>) -> Result<End, FieldErrors> {
        let left = |phase| -> Result<Left, FieldErrors> {
            let mut run = self.clone();
            let names: Vec<String> = run.observed.pods.keys().cloned().collect();
            for name in &names {
                run.change_pod(name, |pod| pod.phase = phase);
            }
            run.status.completion_time = Some(Time(run.now));
            run.status.conditions.push(JobCondition {
                type_: ConditionType::Failed.as_str().to_owned(),
                status: ConditionStatus::True,
                reason: String::new(),
                message: String::new(),
                last_update_time: None,
                last_transition_time: None,
            });
            run.step()?;
            let is_left = |kind, name: &String| !self.beside.contains(&(kind, name.clone()));
            let (pods, services) = (&run.observed.pods, &run.observed.services);
            Ok(Left {
                pod: pods.keys().any(|name| is_left(ChildKind::Pod, name)),
                service: services.keys().any(|name| is_left(ChildKind::Service, name)),
            })
        };
        Ok(End {
            running: left(Phase::Running)?,
            finished: left(Phase::Succeeded)?,
            time_to_live,
        })
    }

    /// Makes one plan and applies it. Returns whether it did anything.
    fn step(&mut self) -> Result<bool, FieldErrors> {
        let mut object = self.object.clone();
        let job: J = decode(&object)?;
        object["status"] = job.encode_status(&self.status, None).map_err(unreadable)?;
        let job: J = decode(&object)?;
        let valid = validate(&job, self.settings)?;
        let plan = plan(&valid, &self.observed, self.now);
        let (idle, wake) = (plan.is_idle(), plan.requeue.clone());
        self.apply(plan, &valid);
        match wake {
            // A requeue within seconds is waited for; one at a deadline is not.
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

    /// The scheduler has room for each group as soon as it is there.
    fn let_in(&mut self) {
        let scheduler = self.settings.gang_scheduler.as_ref();
        let groups = scheduler.and_then(|scheduler| self.observed.objects.get_mut(&scheduler.pod_group()));
        for group in groups.into_iter().flat_map(|groups| groups.values_mut()) {
            Arc::make_mut(group).content["status"] = json!({"phase": "Running"});
        }
    }

    fn gang(&self) -> Option<Gang> {
        let scheduler = self.settings.gang_scheduler.clone()?;
        let group = self
            .observed
            .objects
            .get(&scheduler.pod_group())?
            .values()
            .next()?;
        let spec = &group.content["spec"];
        let resources = spec["minResources"].as_object().into_iter().flatten();
        let amount = |(name, amount): (&String, &Value)| Some(format!("{} {name}", amount.as_str()?));
        Some(Gang {
            scheduler,
            fewest: spec["minMember"].as_u64()?,
            resources: resources.filter_map(amount).collect(),
        })
    }

    fn run_until_idle(&mut self) -> Result<(), FieldErrors> {
        for _ in 0..MAX_STEPS {
            if !self.step()? {
                break;
            }
        }
        Ok(())
    }

    fn apply(&mut self, plan: Plan, job: &ValidJob<'_, J>) {
        self.observed.carry_out(&plan);
        self.let_in();
        if let Some(change) = plan.status {
            self.status = change.status;
        }
        let objects = plan.create_objects.iter();
        let objects = objects.map(|o| (ChildKind::from(o.kind), &o.metadata));
        let beside = objects
            .clone()
            .map(|(kind, meta)| (kind, meta.name.clone().unwrap_or_default()));
        self.beside.extend(beside);
        let created = objects;
        let services = plan.create_services.iter();
        let created = created.chain(services.map(|s| (ChildKind::Service, &s.metadata)));
        let created = created.map(|(kind, meta)| (kind, meta.name.clone().unwrap_or_default()));
        let pods = plan.create_pods.iter();
        self.created
            .extend(created.chain(pods.map(|pod| (ChildKind::Pod, pod.name.clone()))));
        for planned in &plan.create_pods {
            let name = planned.name.clone();
            let spec = planned.render(job).and_then(|pod| pod.spec).unwrap_or_default();
            if spec.restart_policy.as_deref() != Some("Never") {
                self.kubelet_restarts.push(name.clone());
            }
            let mut containers = spec.containers.into_iter();
            let main = containers.find(|c| ["", &c.name].contains(&J::FRAMEWORK.container));
            let containers = main.into_iter().map(|c| ContainerRecord {
                name: c.name,
                ..Default::default()
            });
            self.change_pod(&name, |pod| {
                pod.phase = Phase::Running;
                pod.containers = containers.collect();
            });
        }
    }

    /// What follows from an incident in a pod: whether it ends the job, and after how many restarts.
    fn consequence(
        &self,
        incident: Incident,
        pod: &str,
        policy: &Policy,
    ) -> Result<Consequence, FieldErrors> {
        let fails_at = |used: i32| -> Result<bool, FieldErrors> {
            let mut run = self.clone();
            run.status.restart_count = used;
            let recent = usize::try_from(used).unwrap_or_default();
            run.status.recovery.restarted = vec![Time(run.now); recent];
            run.apply_incident(incident, pod);
            run.step()?;
            Ok(run.status.is(ConditionType::Failed))
        };
        let mut run = self.clone();
        run.apply_incident(incident, pod);
        let before = run.status.clone();
        run.step()?;
        let after = &run.status;
        if after.is(ConditionType::Failed) {
            return Ok(Consequence::Fails);
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
        } else if run.created.len() > self.created.len() {
            return Ok(Consequence::Replaced);
        } else {
            return Ok(Consequence::RunsOn);
        };
        // More restarts never turn a failure into a restart, so bisect for the first that is final.
        let limits = [policy.backoff_limit, policy.failure.max_restarts];
        let limit = limits.into_iter().flatten().min();
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
        let within = policy
            .failure
            .window_seconds
            .filter(|_| limit != policy.backoff_limit);
        Ok(Consequence::Restarts { scope, times, within })
    }

    fn apply_incident(&mut self, incident: Incident, pod: &str) {
        match incident {
            Incident::Exit(code) => self.end_container(pod, code),
            Incident::Evicted => self.change_pod(pod, |pod| {
                pod.phase = Phase::Failed;
                pod.disrupted = true;
                pod.reason = Some("Evicted".to_owned());
            }),
            Incident::Deleted => drop(self.observed.pods.remove(pod)),
            Incident::Deadline(seconds) => {
                let late = self.now.saturating_add(SignedDuration::from_secs(seconds));
                self.now = late.unwrap_or(Timestamp::MAX);
            }
        }
    }

    /// A container ends. The kubelet restarts it, or the pod ends as well.
    fn end_container(&mut self, pod: &str, code: i32) {
        let restarts = code != 0 && self.kubelet_restarts.iter().any(|name| name == pod);
        self.change_pod(pod, |pod| {
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

    fn change_pod(&mut self, pod: &str, change: impl FnOnce(&mut PodRecord)) {
        if let Some(record) = self.observed.pods.get_mut(pod) {
            change(Arc::make_mut(record));
        }
    }
}
