//! Properties of every job in every cluster.
//!
//! The cases are the same every time, so that only a change can break a test. For other or more cases:
//! `PROPTEST_RNG_SEED=7 PROPTEST_CASES=20000 cargo test -p training-job --test plan properties`.

mod clusters;
mod jobs;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::RngSeed;
use serde_json::Value;
use training_job::api::JobStatus;
use training_job::plan::observed::{ContainerKind, Observed, Phase, PodRecord};
use training_job::plan::{self, ChildKind, Plan};
use training_job::validate::validate_any;
use training_job::{FieldErrors, Kind, Settings, TrainingJob, ValidJob, plan as plan_for, render};
use training_job_testbed::ToyJob;

/// The maximum number of passes that a job needs to come to rest.
const MANY: usize = 15;

pub(crate) fn config(cases: u32) -> ProptestConfig {
    let given = ProptestConfig::default();
    ProptestConfig {
        cases: if std::env::var_os("PROPTEST_CASES").is_some() {
            given.cases
        } else {
            cases
        },
        rng_seed: match given.rng_seed {
            RngSeed::Random => RngSeed::Fixed(1),
            chosen => chosen,
        },
        failure_persistence: None,
        ..given
    }
}

fn read(job: &Value, status: &JobStatus) -> Option<ToyJob> {
    let mut job: ToyJob = serde_json::from_value(job.clone()).ok()?;
    job.metadata.uid = Some("job-uid".to_owned());
    job.status = Some(status.clone());
    Some(job)
}

pub(crate) fn validate<'a>(job: &'a ToyJob, settings: &Settings) -> Result<ValidJob<'a>, FieldErrors> {
    static KIND: LazyLock<Kind> = LazyLock::new(Kind::of::<ToyJob>);
    validate_any(&KIND, job, settings)
}

fn plan_of(job: &ToyJob, observed: &Observed, now: Timestamp) -> Plan {
    match validate(job, &Settings::default()) {
        Ok(valid) => plan_for(&valid, observed, now),
        Err(errors) => {
            let status = job.status.clone().unwrap_or_default();
            let ttl = job.run_policy().ttl_seconds_after_finished.map(i64::from);
            plan::invalid("ToyJob", "job", &status, ttl, &errors.to_string(), observed, now)
        }
    }
}

/// Carries out a plan except for the status. Running pods take their time to terminate.
fn carry_out(plan: &Plan, observed: &mut Observed, uids: &mut u32) {
    let deleted = plan.delete.iter().filter(|d| d.kind == ChildKind::Pod);
    let deleted = deleted.map(|d| observed.pods[&d.name].clone());
    let running: Vec<_> = deleted.filter(|pod| pod.phase == Phase::Running).collect();
    observed.carry_out(plan);
    for mut pod in running {
        Arc::make_mut(&mut pod).deleting = true;
        observed.pods.insert(pod.name.clone(), pod);
    }
    let mut uid = || {
        *uids += 1;
        format!("made-{uids}")
    };
    for service in observed.services.values_mut().filter(|s| s.uid.is_empty()) {
        Arc::make_mut(service).uid = uid();
    }
    for pod in observed.pods.values_mut().filter(|pod| pod.uid.is_empty()) {
        Arc::make_mut(pod).uid = uid();
    }
}

/// Returns the pods of the replicas that a status records as completed, such as `{"Worker": "0-1"}`.
fn replicas_of(completed: &BTreeMap<String, String>) -> Vec<String> {
    let indexes = |text: &str| -> Vec<u32> {
        let ranges = text.split(',').filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse::<u32>().ok()?)
        });
        ranges.flatten().collect()
    };
    let of_role = |(role, text): (&String, &String)| {
        let slug = role.to_lowercase();
        let indexes = indexes(text).into_iter();
        indexes
            .map(|index| format!("job-{slug}-{index}"))
            .collect::<Vec<_>>()
    };
    completed.iter().flat_map(of_role).collect()
}

/// Checks the bounds of every plan.
fn check(job: &ToyJob, observed: &Observed, plan: &Plan) -> Result<(), TestCaseError> {
    for d in &plan.delete {
        let uid = match d.kind {
            ChildKind::Pod => observed.pods.get(&d.name).map(|p| (&p.uid, p.deleting)),
            ChildKind::Service => observed.services.get(&d.name).map(|s| (&s.uid, s.deleting)),
            ChildKind::Object(_) => None,
        };
        prop_assert_eq!(
            uid,
            Some((&d.uid, false)),
            "a deletion means an object that was seen"
        );
        prop_assert!(!d.uid.is_empty());
    }
    let status = job.status.clone().unwrap_or_default();
    let creates: Vec<_> = plan
        .create_pods
        .iter()
        .map(|p| (p.name.clone(), observed.pods.contains_key(&p.name)))
        .chain(plan.create_services.iter().map(|s| {
            let name = s.metadata.name.clone().unwrap();
            let there = observed.services.contains_key(&name);
            (name, there)
        }))
        .collect();
    if !creates.is_empty() {
        let valid = validate(job, &Settings::default()).expect("only a valid job creates");
        let mended = status
            .conditions
            .iter()
            .any(|c| c.reason == "ToyJobFailedValidation");
        prop_assert!(!status.is_finished() || mended, "a finished job creates nothing");
        prop_assert!(!valid.policy.suspend, "a suspended job creates nothing");
        prop_assert!(
            job.metadata.deletion_timestamp.is_none(),
            "a dying job creates nothing"
        );
        let names: Vec<String> = valid.topology.all().map(|r| r.host()).collect();
        for (name, there) in creates {
            prop_assert!(names.contains(&name), "{name} is no replica's");
            prop_assert!(!there, "{name} is there");
        }
    }
    if let Some(change) = &plan.status {
        let wire = serde_json::to_string(&change.status).unwrap();
        prop_assert_eq!(&serde_json::from_str::<JobStatus>(&wire).unwrap(), &change.status);
        prop_assert_ne!(&change.status, &status, "a status is written only if it differs");
        prop_assert!(
            change.status.restart_count >= status.restart_count,
            "the counter never falls"
        );
    }
    Ok(())
}

#[test]
fn the_jobs_are_a_good_mixture() {
    // Properties of valid jobs are useless without valid jobs.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut valid, mut refused, mut unreadable) = (0, 0, 0);
    for _ in 0..300 {
        let job = jobs::conceivable().new_tree(&mut runner).unwrap().current();
        match read(&job, &JobStatus::default()) {
            None => unreadable += 1,
            Some(job) if validate(&job, &Settings::default()).is_ok() => valid += 1,
            Some(_) => refused += 1,
        }
    }
    assert!(
        valid > 100 && refused > 50 && unreadable > 5,
        "{valid} {refused} {unreadable}"
    );
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn any_job_that_parses_is_refused_or_rendered(job in jobs::conceivable(), status in clusters::status()) {
        let Some(job) = read(&job, &status) else { return Ok(()) };
        match validate(&job, &Settings::default()) {
            Err(errors) => {
                prop_assert!(!errors.is_empty());
                for error in errors.iter() {
                    prop_assert!(error.path.starts_with("spec") || error.path.starts_with("metadata"), "{error}");
                    prop_assert!(!error.problem.is_empty(), "{error}");
                }
            }
            Ok(valid) => {
                let render::Rendered { services, pods, .. } = render::all(&valid);
                let total = usize::try_from(valid.topology.total()).unwrap();
                prop_assert_eq!((services.len(), pods.len()), (total, total));
                for (service, pod) in services.iter().zip(&pods) {
                    prop_assert_eq!(&service.metadata.name, &pod.metadata.name);
                    let ports = service.spec.clone().unwrap().ports.unwrap_or_default();
                    let names: std::collections::BTreeSet<_> = ports.iter().map(|p| &p.name).collect();
                    prop_assert!(ports.len() < 2 || names.len() == ports.len() && !names.contains(&None), "{ports:?}");
                    for container in &pod.spec.clone().unwrap().containers {
                        let names: Vec<_> = container.env.iter().flatten().map(|v| &v.name).collect();
                        let ours = names.iter().filter(|n| n.as_str() == "TOY_ROLE").count();
                        prop_assert_eq!(ours, 1, "{:?}", names);
                    }
                }
            }
        }
    }

    #[test]
    fn plans_keep_their_bounds_and_come_to_rest(
        job in jobs::conceivable(), status in clusters::status(), observed in clusters::observed(), now in clusters::now(),
        dying in prop::bool::weighted(0.05),
    ) {
        let Some(mut job) = read(&job, &status) else { return Ok(()) };
        if dying {
            job.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
        }
        let (mut observed, mut uids) = (observed, 0);
        let is_valid = validate(&job, &Settings::default()).is_ok();
        for pass in 0.. {
            prop_assert!(pass < MANY, "not at rest: {:#?}", plan_of(&job, &observed, now));
            let plan = plan_of(&job, &observed, now);
            check(&job, &observed, &plan)?;
            let again = plan_of(&job, &observed, now);
            prop_assert_eq!(format!("{plan:?}"), format!("{again:?}"), "same input, same plan");
            let only_tells = !is_valid && plan.status.is_none() && plan.delete.is_empty();
            if plan.is_idle() || plan.delete_job || only_tells {
                let finished = job.status.as_ref().filter(|status| status.is_finished() && !dying && !plan.delete_job);
                let active = finished.is_some_and(|status| status.replica_statuses.values().any(|role| role.active > 0));
                let runs = |pod: &Arc<PodRecord>| pod.phase == Phase::Running && !pod.deleting;
                prop_assert!(!active || observed.pods.values().any(runs), "a finished job without pods is active");
                break;
            }
            carry_out(&plan, &mut observed, &mut uids);
            // The controller stores the status of the state after its own writes.
            let plan = plan_of(&job, &observed, now);
            check(&job, &observed, &plan)?;
            if let Some(change) = plan.status {
                job.status = Some(change.status);
            }
        }
    }

    #[test]
    fn nothing_succeeds_by_a_pod_that_was_taken_away(
        job in jobs::valid(), observed in clusters::observed(), now in clusters::now(),
    ) {
        let job = read(&job, &JobStatus::default()).expect("it parses");
        let plan = plan_of(&job, &observed, now);
        let completed = plan.status.iter().flat_map(|change| replicas_of(&change.status.recovery.completed));
        for name in completed {
            let pod = observed.pods.get(&name).filter(|_| !observed.removed.contains_key(&name));
            let Some(pod) = pod else { continue };
            let main = pod.containers.iter().find(|c| c.kind == ContainerKind::Regular && c.name == "toy");
            let ends = pod.containers.iter().filter(|c| c.kind == ContainerKind::Regular);
            let last = ends.filter_map(|c| c.ended.as_ref()?.finished_at).max();
            let end = main.and_then(|c| c.ended.as_ref()).map_or(last, |end| end.finished_at);
            let had_ended = pod.is_terminal() && pod.deletion.is_some_and(|times| times.requested == times.due);
            let began = [pod.deletion.map(|d| d.requested), pod.disruption.as_ref().and_then(|d| d.time)];
            let skew = SignedDuration::from_mins(5);
            let is_later = |began| end.is_none_or(|end: Timestamp| end.duration_since(began) >= -skew);
            let is_after = !had_ended && began.into_iter().flatten().any(is_later);
            prop_assert!(!is_after, "{pod:?}");
        }
    }

    #[test]
    fn a_crash_anywhere_changes_no_end(
        job in jobs::valid(), observed in clusters::observed(), calls in 0_usize..12, stored: bool,
    ) {
        let job = read(&job, &JobStatus::default()).expect("it parses");
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let rest = |crash: Option<(usize, bool)>| {
            let (mut job, mut observed, mut uids) = (job.clone(), observed.clone(), 0);
            for pass in 0..MANY {
                let mut plan = plan_of(&job, &observed, now);
                if plan.is_idle() || plan.delete_job {
                    break;
                }
                let crash = crash.filter(|_| pass == 0);
                let change = plan.status.clone();
                if let Some((calls, _)) = crash {
                    let (services, rest) = (calls, calls.saturating_sub(plan.create_services.len()));
                    let deletions = rest.saturating_sub(plan.create_pods.len());
                    plan.create_services.truncate(services);
                    plan.create_pods.truncate(rest);
                    plan.delete.truncate(deletions);
                }
                carry_out(&plan, &mut observed, &mut uids);
                let change = match crash {
                    Some((_, true)) => change,
                    Some((_, false)) => None,
                    None => plan_of(&job, &observed, now).status,
                };
                if let Some(change) = change {
                    job.status = Some(change.status);
                }
            }
            let pods: Vec<_> = observed.pods.values().map(|p| (p.name.clone(), p.attempt, p.deleting)).collect();
            (pods, job.status)
        };
        prop_assert_eq!(rest(Some((calls, stored))), rest(None));
    }
}
