//! Simulates a job's timeline by running the operator's planner on a simulated cluster.

mod consequence;
mod stalls;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use training_job::api::{ConditionStatus, ConditionType, JobCondition, JobStatus, labels};
use training_job::plan::observed::{ContainerRecord, Observed, Phase, PodRecord, Termination};
use training_job::plan::{ChildKind, plan};
use training_job::render::decode;
use training_job::validate::{other_manager, validate_any};
use training_job::{
    Cause, FieldErrors, GangScheduler, Kind, Plan, ReplicaFailure, Role, Settings, StartCondition, ValidJob,
};
use training_job_program::listed;

use super::success::{Replicas, SuccessCondition};
use super::timeline::{FinalState, Gang, Incident, JobTimeline, Remaining, RoleTimeline};

/// An upper bound of the steps until the plan is idle.
const MAX_STEPS: usize = 20;

/// The exit code of a container that was killed.
const KILLED: i32 = 137;

/// The kubelet's reason for a failed container.
const ERROR: &str = "Error";

/// A job in a cluster in which every pod starts immediately.
#[derive(Clone)]
struct DryRun<'a> {
    kind: &'a Kind,
    object: Value,
    settings: &'a Settings,
    status: JobStatus,
    observed: Observed,
    now: Timestamp,
    /// The created objects, services and pods, in order.
    created: Vec<(ChildKind, String)>,
    /// The created services and pods that belong to no replica.
    without_replica: BTreeSet<(ChildKind, String)>,
    /// The pods that the gang scheduler binds together.
    members: BTreeSet<String>,
    /// The pods whose containers the kubelet restarts after a failure.
    restart_on_failure: BTreeSet<String>,
    /// The pods whose containers the kubelet restarts after a success as well.
    restart_always: BTreeSet<String>,
}

/// Returns the timeline of a job that was written under `version`.
pub(crate) fn timeline(
    kind: &Kind,
    object: &Value,
    version: &str,
    settings: &Settings,
) -> Result<JobTimeline, FieldErrors> {
    let mut run = DryRun::new(kind, object, settings);
    run.run_until_idle()?;
    let job = decode(kind, object)?;
    let valid = validate_any(kind, &*job, settings)?;
    let job = &*valid.job;
    let start_order = start_order(&valid);
    let stages = run.stages(&valid)?;
    let before = std::iter::once(None).chain(stages.iter().map(Some));
    let gang = stages.iter().zip(before);
    let gang = gang.filter_map(|(stage, before)| stage.gang(&valid, before));
    let run = stages.last().unwrap_or(&run);
    let mut roles = Vec::new();
    let mut hosts = Vec::new();
    // A suspended job has no pods that could fail.
    for role in valid
        .topology
        .roles
        .iter()
        .filter(|r| r.replicas > 0 && !valid.policy.suspend)
    {
        let pods: Vec<String> = role.all().map(|r| r.pod_name()).collect();
        let rules = valid.policy.failure.rules.iter();
        let rules: Vec<_> = rules
            .filter(|rule| rule.applies_to(role.name()))
            .filter_map(|rule| rule.on_exit_codes.as_ref())
            .collect();
        // Only these facts of an exit code decide about its consequence.
        let facts = |code| {
            let is_named = rules.iter().map(|codes| codes.values.contains(&code));
            let mut facts: Vec<bool> = is_named.collect();
            facts.extend([job.is_retryable(role, code, ERROR), code == 0]);
            let failure = ReplicaFailure::new(role, 0, Cause::Exited(code), ERROR);
            let answers = job.framework().answers_failures;
            (facts, answers.then(|| job.on_failure(&valid.topology, &failure)))
        };
        let runs = |stage: &&DryRun<'_>| stage.observed.pods.contains_key(&pods[0]);
        let stage = stages.iter().find(runs).unwrap_or(run);
        let consequence = |incident| stage.consequence(incident, role, &valid);
        let mut by_facts = Vec::new();
        let mut incidents = Vec::new();
        // Exit code 0 is a failure of a role that is always replaced, and otherwise the success of the replica.
        let is_failure = |code: &i32| *code != 0 || role.definition.always_replaced;
        for code in Incident::EXIT_CODES.filter(is_failure) {
            let facts = facts(code);
            let known = by_facts.iter().position(|(known, _)| *known == facts);
            let known = match known {
                Some(known) => known,
                None => {
                    by_facts.push((facts, consequence(Incident::Exit(code))?));
                    by_facts.len() - 1
                }
            };
            incidents.push((Incident::Exit(code), by_facts[known].1.clone()));
        }
        let killed = facts(KILLED);
        let killed = by_facts.iter().find(|(known, _)| *known == killed);
        let killed = killed.map(|(_, follows)| follows);
        for incident in [Incident::OutOfMemory, Incident::Evicted, Incident::Deleted] {
            let follows = consequence(incident)?;
            if incident != Incident::OutOfMemory || killed != Some(&follows) {
                incidents.push((incident, follows));
            }
        }
        roles.push(RoleTimeline {
            name: role.slug.clone(),
            incidents,
        });
        hosts.push(pods);
    }
    let success = run.success(&hosts)?;
    let deadline = match valid.policy.active_deadline_seconds {
        None => None,
        Some(seconds) => {
            let mut late = run.clone();
            let end = late.now.saturating_add(SignedDuration::from_secs(seconds));
            late.now = end.unwrap_or(Timestamp::MAX);
            late.step()?;
            late.status.is(ConditionType::Failed).then_some(seconds)
        }
    };
    let policy = &valid.policy;
    let limits_restarts = policy.backoff_limit.is_some() || policy.failure.max_restarts.is_some();
    let end = FinalState {
        has_limit: deadline.is_some() || limits_restarts,
        fails_while_running: limits_restarts && !run.restart_on_failure.is_empty(),
        ..run.final_state(policy.ttl_seconds)?
    };
    Ok(JobTimeline {
        other_manager: other_manager(job),
        compatibility: job.describe_compatibility(version),
        common_service: valid.topology.common_service.clone(),
        gang: gang.collect(),
        queue: labels::queue(job.meta()).map(str::to_owned),
        start_order,
        created: run.created.clone(),
        described_success: match policy.success {
            Some(_) => None,
            None => job.describe_success(),
        },
        success,
        roles,
        deadline,
        stalls: stalls::describe(&valid),
        end,
    })
}

/// Returns the rule of each role that waits for others.
fn start_order(job: &ValidJob<'_>) -> Vec<String> {
    let rule = |role: &Role<'_>| {
        let first = job
            .waits_for(role)
            .into_iter()
            .filter(|(first, _)| first.replicas > 0);
        let mut first: Vec<_> = first.collect();
        // Of its own class, a role in order waits for those before it, and the last of these waits for the others.
        let mut own = first
            .iter()
            .rev()
            .filter(|(first, _)| first.class() == role.class());
        let last = own.next().map(|(last, _)| last.slug.clone());
        first.retain(|(first, _)| first.class() != role.class() || last.as_ref() == Some(&first.slug));
        let of = |state| {
            let of_state = first.iter().filter(move |(_, wanted)| *wanted == state);
            let slugs: Vec<&str> = of_state.map(|(first, _)| &*first.slug).collect();
            (!slugs.is_empty()).then_some(slugs)
        };
        let pods = |slugs: Vec<&str>, state| format!("all pods of {} {state}", listed(&slugs));
        let succeeded = |slugs: Vec<&str>| {
            let have = if slugs.len() == 1 { "has" } else { "have" };
            format!("{} {have} succeeded", listed(&slugs))
        };
        let parts = [
            of(StartCondition::Running).map(|slugs| pods(slugs, "run")),
            of(StartCondition::Ready).map(|slugs| pods(slugs, "are ready")),
            of(StartCondition::Succeeded).map(succeeded),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let waits = role.replicas > 0 && !parts.is_empty();
        waits.then(|| format!("{} starts when {}", role.slug, parts.join(" and ")))
    };
    job.topology.roles.iter().filter_map(rule).collect()
}

impl<'a> DryRun<'a> {
    /// Returns the job at the start of each of its steps: before the next one starts, the roles that it waits for have
    /// ended with exit code 0. A job without steps has one.
    fn stages(&self, job: &ValidJob<'_>) -> Result<Vec<Self>, FieldErrors> {
        let mut stages = vec![self.clone()];
        let mut run = self.clone();
        for _ in &job.topology.roles {
            let is_missing =
                |role: &&Role<'_>| role.all().any(|r| !run.observed.pods.contains_key(&r.pod_name()));
            let later = job.topology.roles.iter().filter(is_missing);
            let first = later.flat_map(|role| job.waits_for(role));
            let first = first.filter(|(_, state)| *state == StartCondition::Succeeded);
            let first = first.flat_map(|(role, _)| role.all().map(|replica| replica.pod_name()));
            let first: BTreeSet<String> = first.filter(|pod| run.observed.pods.contains_key(pod)).collect();
            let created = run.created.len();
            for pod in &first {
                run.end_container(pod, 0, "Completed");
            }
            run.run_until_idle()?;
            if run.created.len() == created {
                break;
            }
            stages.push(run.clone());
        }
        Ok(stages)
    }

    fn new(kind: &'a Kind, object: &Value, settings: &'a Settings) -> Self {
        Self {
            kind,
            object: object.clone(),
            settings,
            status: JobStatus::default(),
            observed: Observed::default(),
            now: Timestamp::UNIX_EPOCH,
            created: Vec::new(),
            without_replica: BTreeSet::new(),
            members: BTreeSet::new(),
            restart_on_failure: BTreeSet::new(),
            restart_always: BTreeSet::new(),
        }
    }

    /// Returns the condition of success. `hosts` are the pods of each role.
    fn success(&self, hosts: &[Vec<String>]) -> Result<SuccessCondition, FieldErrors> {
        let sizes: Vec<_> = hosts.iter().map(Vec::len).collect();
        SuccessCondition::find(&sizes, |ended| self.succeeds(hosts, ended))
    }

    /// Returns true if the job succeeds when these replicas have ended with exit code 0 and the others run.
    fn succeeds(&self, hosts: &[Vec<String>], ended: &Replicas) -> Result<bool, FieldErrors> {
        let mut run = self.clone();
        for &(role, index) in ended {
            run.end_container(&hosts[role][index], 0, "Completed");
        }
        run.run_until_idle()?;
        Ok(run.status.is(ConditionType::Succeeded))
    }

    /// Returns the objects that remain when the job ends.
    fn final_state(&self, time_to_live: Option<i64>) -> Result<FinalState, FieldErrors> {
        let left = |phase| -> Result<Remaining, FieldErrors> {
            let mut run = self.clone();
            // The container of a pod of an earlier step has ended. As a running pod, it would be one whose sidecars run.
            run.observed.pods.retain(|_, pod| pod.phase == Phase::Running);
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
            let is_left = |kind, name: &String| !self.without_replica.contains(&(kind, name.clone()));
            let (pods, services) = (&run.observed.pods, &run.observed.services);
            Ok(Remaining {
                pod: pods.keys().any(|name| is_left(ChildKind::Pod, name)),
                service: services.keys().any(|name| is_left(ChildKind::Service, name)),
            })
        };
        Ok(FinalState {
            running: left(Phase::Running)?,
            finished: left(Phase::Succeeded)?,
            has_services: self.created.iter().any(|(kind, _)| *kind == ChildKind::Service),
            has_limit: false,
            fails_while_running: false,
            time_to_live,
        })
    }

    /// Makes one plan and applies it. Returns true if it changed anything.
    fn step(&mut self) -> Result<bool, FieldErrors> {
        let mut object = self.object.clone();
        let job = decode(self.kind, &object)?;
        object["status"] = job.encode_status(&self.status, None)?;
        let job = decode(self.kind, &object)?;
        let mut valid = validate_any(self.kind, &*job, self.settings)?;
        valid.read_contents(&self.observed);
        let plan = plan(&valid, &self.observed, self.now);
        let (idle, wake) = (plan.is_idle(), plan.requeue.clone());
        self.apply(plan, &valid);
        match wake {
            // A requeue within seconds is waited for. A requeue at a deadline is not.
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

    /// Sets each pod group to running, as a scheduler with free capacity does.
    fn admit_pod_groups(&mut self) {
        let scheduler = self.settings.gang_scheduler.as_ref();
        let groups = scheduler.and_then(|scheduler| self.observed.objects.get_mut(&scheduler.pod_group()));
        for group in groups.into_iter().flat_map(|groups| groups.values_mut()) {
            Arc::make_mut(&mut Arc::make_mut(group).content)["status"] = json!({"phase": "Running"});
        }
    }

    /// Returns the demand of the roles of the gang that start in this stage, if there are any.
    fn gang(&self, job: &ValidJob<'_>, before: Option<&Self>) -> Option<Gang> {
        let scheduler = self.settings.gang_scheduler.clone()?;
        let groups = self.observed.objects.get(&scheduler.pod_group())?;
        let spec = &groups.values().next()?.content["spec"];
        let resources = spec["minResources"].as_object().into_iter().flatten();
        let amount = |(name, amount): (&String, &Value)| Some(format!("{} {name}", amount.as_str()?));
        let all = job.topology.roles.iter().filter(|role| role.replicas > 0);
        let has = |stage: &Self, role: &Role<'_>| stage.members.contains(&role.pod_name(0));
        let is_new = |role: &&Role<'_>| has(self, role) && before.is_none_or(|before| !has(before, role));
        let roles = all.clone().filter(is_new).map(|role| role.slug.clone());
        let roles = Some(roles.collect::<Vec<_>>()).filter(|roles| !roles.is_empty())?;
        let first = self.created.iter().find(|(kind, _)| *kind == ChildKind::Pod);
        Some(Gang {
            scheduler,
            min_pods: usize::try_from(spec["minMember"].as_u64()?).ok()?,
            resources: resources.filter_map(amount).collect(),
            starts_the_job: before.is_none() && first.is_some_and(|(_, pod)| self.members.contains(pod)),
            roles: Some(roles).filter(|roles| roles.len() < all.count()),
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

    fn apply(&mut self, plan: Plan, job: &ValidJob<'_>) {
        self.observed.carry_out(&plan);
        self.admit_pod_groups();
        if let Some(change) = plan.status {
            self.status = change.status;
        }
        let objects = plan.create_objects.iter();
        let objects = objects.map(|o| (ChildKind::from(o.kind), &o.metadata));
        let without_replica = objects
            .clone()
            .map(|(kind, meta)| (kind, meta.name.clone().unwrap_or_default()));
        self.without_replica.extend(without_replica);
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
            let policy = spec.restart_policy.as_deref().unwrap_or("Always");
            if policy != "Never" {
                self.restart_on_failure.insert(name.clone());
            }
            if policy == "Always" {
                self.restart_always.insert(name.clone());
            }
            let replica = job.topology.all().find(|replica| replica.pod_name() == name);
            let is_member = replica.is_some_and(|replica| replica.role.definition.in_gang);
            let scheduler = self.settings.gang_scheduler.as_ref().map(GangScheduler::name);
            if is_member && scheduler.is_some() && scheduler == spec.scheduler_name.as_deref() {
                self.members.insert(name.clone());
            }
            let main = replica.and_then(|replica| replica.role.container);
            let main = main.and_then(|n| spec.containers.into_iter().nth(n));
            let containers = main.into_iter().map(|c| ContainerRecord {
                name: c.name,
                ..Default::default()
            });
            self.change_pod(&name, |pod| {
                pod.phase = Phase::Running;
                pod.ready = true;
                pod.containers = containers.collect();
            });
        }
    }

    /// Ends a container for this reason. The kubelet restarts it, or its pod ends as well.
    fn end_container(&mut self, pod: &str, code: i32, reason: &str) {
        let restarted = match code {
            0 => &self.restart_always,
            _ => &self.restart_on_failure,
        };
        let restarts = restarted.contains(pod);
        self.change_pod(pod, |pod| {
            let end = Termination {
                exit_code: code,
                reason: Some(reason.to_owned()),
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

#[cfg(test)]
mod tests;
