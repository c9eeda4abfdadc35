//! Generates clusters with any children of a job, and any status, whoever wrote it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::collection::{btree_map, vec};
use proptest::option::{of, weighted};
use proptest::prelude::*;
use training_job::api::{
    Backoff, ConditionStatus, FailureRecord, JobCondition, JobStatus, Recovery, ReplicaStatus,
};
use training_job::plan::observed::{
    ContainerKind, ContainerRecord, DeletionTimes, Disruption, Observed, Phase, PodRecord, ServiceRecord,
    Termination,
};

const ROLES: [&str; 3] = ["Scheduler", "Server", "Worker"];

pub(crate) fn now() -> impl Strategy<Value = Timestamp> {
    prop_oneof![8 => time(), 1 => Just(Timestamp::UNIX_EPOCH), 1 => Just(Timestamp::MAX), 1 => time_with_fraction()]
}

/// Returns the last record of a pod that succeeded.
fn succeeded(name: String, attempt: u32) -> Arc<PodRecord> {
    let phase = Phase::Succeeded;
    Arc::new(PodRecord {
        name,
        attempt,
        phase,
        ..PodRecord::default()
    })
}

pub(crate) fn observed() -> impl Strategy<Value = Observed> {
    let pods = btree_map(child(), pod(), 0..8).prop_map(|pods| {
        let named = pods.into_iter().map(|(name, pod)| {
            (
                name.clone(),
                Arc::new(PodRecord {
                    uid: format!("pod-{name}"),
                    name,
                    ..pod
                }),
            )
        });
        named.collect()
    });
    let services = btree_map(child(), prop::bool::weighted(0.1), 0..8).prop_map(|services| {
        let named = services.into_iter().map(|(name, deleting)| {
            (
                name.clone(),
                Arc::new(ServiceRecord {
                    uid: format!("service-{name}"),
                    name,
                    deleting,
                    deletion: None,
                }),
            )
        });
        named.collect()
    });
    (pods, services, btree_map(child(), 0..3_u32, 0..2)).prop_map(|(pods, services, removed)| Observed {
        pods,
        services,
        removed: removed
            .into_iter()
            .map(|(name, attempt)| (name.clone(), succeeded(name, attempt)))
            .collect(),
        ..Observed::default()
    })
}

pub(crate) fn status() -> impl Strategy<Value = JobStatus> {
    let started = weighted(0.7, time().prop_map(Time));
    let parts = (
        vec(condition(), 0..4),
        replica_statuses(),
        started,
        weighted(0.2, time().prop_map(Time)),
        number(),
        of(failure()),
        recovery(),
    );
    let some = parts.prop_map(
        |(
            mut conditions,
            replica_statuses,
            start_time,
            completion_time,
            restart_count,
            failure,
            recovery,
        )| {
            // The API allows one condition of each type.
            let mut seen = Vec::new();
            conditions.retain(|c: &JobCondition| {
                !seen.contains(&c.type_) && {
                    seen.push(c.type_.clone());
                    true
                }
            });
            JobStatus {
                conditions,
                replica_statuses,
                start_time,
                completion_time,
                restart_count,
                failure,
                recovery,
                ..JobStatus::default()
            }
        },
    );
    prop_oneof![1 => Just(JobStatus::default()), 3 => some]
}

/// Generates counts of roles, including roles that no job has.
fn replica_statuses() -> impl Strategy<Value = BTreeMap<String, ReplicaStatus>> {
    let counts = (number(), number(), number(), of("[a-z]{1,3}"));
    let counts = counts.prop_map(|(active, succeeded, failed, selector)| ReplicaStatus {
        active,
        succeeded,
        failed,
        ready: None,
        selector,
    });
    btree_map(prop_oneof![6 => role(), 1 => "[A-Z][a-z]{1,4}"], counts, 0..3)
}

/// Generates the name of a replica's pod, or of another object that the job owns.
fn child() -> impl Strategy<Value = String> {
    let replica = (0..ROLES.len(), 0..5_u32)
        .prop_map(|(role, index)| format!("job-{}-{index}", ROLES[role].to_lowercase()));
    prop_oneof![12 => replica, 1 => "[a-z]{1,5}", 1 => Just("job-worker-x".to_owned())]
}

fn pod() -> impl Strategy<Value = PodRecord> {
    let phase = prop_oneof![
        2 => Just(Phase::Pending), 4 => Just(Phase::Running), 2 => Just(Phase::Succeeded),
        2 => Just(Phase::Failed), 1 => Just(Phase::Unknown),
    ];
    let attempt = prop_oneof![9 => 0..3_u32, 1 => Just(1_000_000_000)];
    let reason = of(prop_oneof![
        Just("Evicted"),
        Just("DeadlineExceeded"),
        Just("BackoffLimitExceeded"),
        Just("x")
    ]);
    (
        phase,
        attempt,
        going(),
        any::<bool>(),
        reason,
        of(".{0,9}"),
        vec(container(), 0..3),
    )
        .prop_map(
            |(phase, attempt, (deletion, disruption, deleting), disrupted, reason, message, containers)| {
                PodRecord {
                    phase,
                    attempt,
                    deleting: deleting || deletion.is_some(),
                    deletion,
                    disruption: disruption.map(Box::new),
                    disrupted: disrupted && phase == Phase::Failed,
                    reason: reason.map(str::to_owned),
                    message,
                    containers,
                    ..PodRecord::default()
                }
            },
        )
}

/// Generates a deletion with known times, a disruption, and a deletion by the operator itself, whose times are
/// unknown.
fn going() -> impl Strategy<Value = (Option<DeletionTimes>, Option<Disruption>, bool)> {
    let deletion = (time(), 0..60_i64).prop_map(|(requested, grace)| DeletionTimes {
        requested,
        due: requested + jiff::SignedDuration::from_secs(grace),
    });
    let disruption = of(time()).prop_map(|time| Disruption {
        time,
        ..Disruption::default()
    });
    (
        weighted(0.2, deletion),
        weighted(0.1, disruption),
        prop::bool::weighted(0.1),
    )
}

fn container() -> impl Strategy<Value = ContainerRecord> {
    let restarts = prop_oneof![6 => Just(0), 2 => 1..4, 1 => Just(i32::MAX)];
    (
        prop_oneof![3 => Just("toy"), 1 => Just("side")],
        prop_oneof![
            3 => Just(ContainerKind::Regular), 1 => Just(ContainerKind::Init), 1 => Just(ContainerKind::Sidecar)
        ],
        restarts,
        of(end()),
        of(end()),
    )
        .prop_map(|(name, kind, restarts, ended, last)| ContainerRecord {
            name: name.to_owned(),
            kind,
            restarts,
            ended,
            last,
            ..ContainerRecord::default()
        })
}

fn end() -> impl Strategy<Value = Termination> {
    let code = prop_oneof![Just(0), Just(1), Just(137), Just(139), any::<i32>()];
    (code, of(any::<i32>()), of(".{0,9}"), weighted(0.8, time())).prop_map(
        |(exit_code, signal, message, finished_at)| Termination {
            exit_code,
            signal,
            message,
            finished_at,
            ..Termination::default()
        },
    )
}

fn condition() -> impl Strategy<Value = JobCondition> {
    let type_ = prop_oneof![
        4 => Just("Created"), 3 => Just("Running"), 2 => Just("Restarting"), 1 => Just("Succeeded"),
        1 => Just("Failed"), 1 => Just("Suspended"), 1 => Just("Strange"),
    ];
    let status = prop_oneof![3 => Just(ConditionStatus::True), 1 => Just(ConditionStatus::False), 1 => Just(ConditionStatus::Unknown)];
    let reason = prop_oneof![3 => Just(""), 1 => Just("FailedValidation")];
    (type_, status, reason, of(time().prop_map(Time))).prop_map(|(type_, status, reason, at)| JobCondition {
        type_: type_.to_owned(),
        status,
        reason: format!("ToyJob{}", if reason.is_empty() { type_ } else { reason }),
        message: String::new(),
        last_update_time: at.clone(),
        last_transition_time: at,
    })
}

fn failure() -> impl Strategy<Value = FailureRecord> {
    let reason = prop_oneof![
        Just("Error"),
        Just("DeadlineExceeded"),
        Just("BackoffLimitExceeded")
    ];
    (reason, of("[a-z]{3}")).prop_map(|(reason, pod)| FailureRecord {
        reason: reason.to_owned(),
        pod,
        ..FailureRecord::default()
    })
}

fn recovery() -> impl Strategy<Value = Recovery> {
    let by_role = || by_name(role());
    let by_replica = || by_name(child().prop_map(|name| name.trim_start_matches("job-").to_owned()));
    let completed = btree_map(
        role(),
        prop_oneof!["[0-9,-]{0,9}", Just("0-2".to_owned()), ".{0,9}"],
        0..3,
    );
    (
        number(),
        by_role(),
        by_replica(),
        by_role(),
        by_role(),
        by_replica(),
        by_role(),
        completed,
        backoff(),
    )
        .prop_map(
            |(job, roles, replicas, retries, sizes, in_place, started, completed, backoff)| Recovery {
                job,
                uncounted: BTreeMap::new(),
                sizes,
                roles,
                replicas,
                retries,
                in_place,
                started,
                completed,
                restarted: Vec::new(),
                backoff: BTreeMap::from([("job".to_owned(), backoff)]),
            },
        )
}

fn backoff() -> impl Strategy<Value = Backoff> {
    (number(), of(time())).prop_map(|(failures, until)| Backoff {
        failures,
        until: until.map(Time),
    })
}

fn by_name(names: impl Strategy<Value = String>) -> impl Strategy<Value = BTreeMap<String, i32>> {
    btree_map(names, number(), 0..3)
}

fn role() -> impl Strategy<Value = String> {
    (0..ROLES.len()).prop_map(|n| ROLES[n].to_owned())
}

fn number() -> impl Strategy<Value = i32> {
    prop_oneof![8 => 0..3, 1 => any::<i32>(), 1 => Just(i32::MAX), 1 => Just(i32::MIN)]
}

/// Generates times within a few minutes of each other, so that limits fall before and after them.
fn time() -> impl Strategy<Value = Timestamp> {
    (0..300_i64).prop_map(|s| Timestamp::from_second(1_767_225_600 + s).unwrap())
}

fn time_with_fraction() -> impl Strategy<Value = Timestamp> {
    time().prop_map(|t| t + jiff::SignedDuration::from_millis(987))
}
