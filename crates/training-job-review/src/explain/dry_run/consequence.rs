//! The consequences of incidents in a simulated job.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use training_job::api::{ConditionType, MAX_RESTARTS_IN_WINDOW};
use training_job::plan::observed::{Disruption, Phase, PodRecord};
use training_job::{FieldErrors, Replica, Role, ValidJob};
use training_job_program::listed;

use super::{DryRun, ERROR, KILLED};
use crate::explain::timeline::{Consequence, Incident, Limit, SECONDS_IN_AN_HOUR};

impl DryRun<'_> {
    /// Returns the consequence of an incident in the first pod of a role: whether it ends the job, and after how many
    /// restarts.
    pub(super) fn consequence(
        &self,
        incident: Incident,
        role: &Role<'_>,
        job: &ValidJob<'_>,
    ) -> Result<Consequence, FieldErrors> {
        let (pod, policy) = (role.pod_name(0), &job.policy);
        let mut run = self.clone();
        run.apply_incident(incident, &pod);
        let before = run.status.clone();
        run.step()?;
        let after = &run.status;
        if after.is(ConditionType::Failed) {
            return Ok(Consequence::Fails);
        }
        let (old, new) = (&before.recovery, &after.recovery);
        let is_own = new.retries != old.retries;
        let is_uncounted = new.uncounted != old.uncounted;
        let has_restarted = |role: &&Role<'_>| new.roles.get(role.name()) != old.roles.get(role.name());
        let restarted = job.topology.roles.iter().filter(has_restarted);
        let restarted: Vec<_> = restarted.map(|role| &*role.slug).collect();
        let scope = if new.job > old.job {
            "the whole job".to_owned()
        } else if restarted.len() > 1 {
            format!("the group of {}", listed(&restarted))
        } else if new.roles != old.roles {
            "the whole role".to_owned()
        } else if new.replicas != old.replicas {
            "only the replica".to_owned()
        } else if is_own || after.restart_count > before.restart_count {
            "only the container".to_owned()
        } else if run.created.len() > self.created.len() {
            return Ok(Consequence::Replaced);
        } else {
            return Ok(Consequence::RunsOn);
        };
        let limits = match is_own {
            true => {
                let own = job.job.retries(role);
                [own.and_then(|limit| i32::try_from(limit).ok()), None]
            }
            false if is_uncounted => [Some(MAX_RESTARTS_IN_WINDOW), None],
            false => [policy.backoff_limit, policy.failure.max_restarts],
        };
        let mut limits: Vec<i32> = limits.into_iter().flatten().collect();
        limits.sort_unstable();
        let mut limit = None;
        for most in limits {
            let Some(mut then) = self.end_of_restarts(incident, role, most)? else {
                continue;
            };
            // More restarts never turn an end into a restart. Therefore the first end is found by bisection.
            let (mut good, mut bad) = (0, most);
            while bad - good > 1 {
                let middle = good + (bad - good) / 2;
                match self.end_of_restarts(incident, role, middle)? {
                    Some(end) => (bad, then) = (middle, end),
                    None => good = middle,
                }
            }
            let within = match is_uncounted {
                true => Some(SECONDS_IN_AN_HOUR),
                false => policy
                    .failure
                    .window_seconds
                    .filter(|_| !is_own && Some(most) != policy.backoff_limit),
            };
            limit = Some(Limit {
                times: bad,
                within,
                then,
            });
            break;
        }
        let pauses = new.backoff.values().filter_map(|backoff| backoff.until.as_ref());
        let pause = pauses
            .map(|until| until.0.duration_since(run.now).as_secs())
            .max();
        Ok(Consequence::Restarts { scope, pause, limit })
    }

    /// Returns the consequence of an incident in the first pod of a role after `used` restarts, unless it is another
    /// restart.
    fn end_of_restarts(
        &self,
        incident: Incident,
        role: &Role<'_>,
        used: i32,
    ) -> Result<Option<&'static str>, FieldErrors> {
        let (mut run, pod) = (self.clone(), role.pod_name(0));
        let recovery = &mut run.status.recovery;
        recovery.retries.insert(role.name().to_owned(), used);
        recovery.replicas.insert(Replica { role, index: 0 }.key(), used);
        // Limits of restarts within a time are at most this. Longer lists only make the status slow to read.
        let recent = usize::try_from(used.min(MAX_RESTARTS_IN_WINDOW)).unwrap_or_default();
        recovery.restarted = vec![Time(run.now); recent];
        let times = recovery.restarted.clone();
        recovery.uncounted.insert(role.name().to_owned(), times);
        run.status.restart_count = used;
        run.change_pod(&pod, |pod| pod.attempt = used.unsigned_abs());
        run.apply_incident(incident, &pod);
        let before = run.status.recovery.clone();
        run.step()?;
        let has_failed = |pod: &Arc<PodRecord>| pod.phase == Phase::Failed;
        let stays = run.observed.pods.get(&pod).is_some_and(has_failed);
        let (old, new) = (before, &run.status.recovery);
        let restarts = new.job != old.job || new.roles != old.roles || new.replicas != old.replicas;
        Ok(match run.status.is(ConditionType::Failed) {
            true => Some("the job fails"),
            false => (stays && !restarts).then_some("the replica stays failed, and the job keeps running"),
        })
    }

    fn apply_incident(&mut self, incident: Incident, pod: &str) {
        match incident {
            Incident::Exit(0) => self.end_container(pod, 0, "Completed"),
            Incident::Exit(code) => self.end_container(pod, code, ERROR),
            Incident::OutOfMemory => self.end_container(pod, KILLED, "OOMKilled"),
            Incident::Evicted => self.change_pod(pod, |pod| {
                pod.phase = Phase::Failed;
                pod.disrupted = true;
                pod.disruption = Some(Box::new(Disruption {
                    reason: "TerminationByKubelet".to_owned(),
                    ..Disruption::default()
                }));
                pod.reason = Some("Evicted".to_owned());
            }),
            Incident::Deleted => drop(self.observed.pods.remove(pod)),
        }
    }
}
