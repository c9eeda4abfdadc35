//! The PodGroup of a job, and the fields that make pods its members. As in the Go operator v1.8.1
//! (`control/podgroup_control.go`), except for the numbers, which are counted as schedulers count them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;
use serde_json::{Map, Value, json};

use super::requests::{self, Amounts};
use crate::api::labels;
use crate::job::{GangScheduler, JobObject, Replica, Role, StartCondition};
use crate::validate::ValidJob;

/// The annotation in which `kubectl apply` stores the applied manifest. With it, a PodGroup would look like the
/// user's own.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The numbers of a role's replicas that a group counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members<'a> {
    pub(crate) role: &'a Role<'a>,
    /// The replicas that have not ended, and that exist or are to be created.
    pub(crate) present: u32,
    /// The replicas among these for which capacity is requested.
    pub(crate) asking: u32,
    /// The replicas that are created once others run. A group that counted them as members would never be complete,
    /// but it requests capacity for them.
    pub(crate) later: u32,
}

impl<'a> Members<'a> {
    /// Returns all replicas of each role whose pods the scheduler binds, at the start of the first of them. Roles outside
    /// of the gang that they wait for have started before.
    pub(crate) fn all(job: &'a ValidJob<'_>, scheduler: &GangScheduler) -> Vec<Self> {
        let roles = job.topology.roles.iter();
        let bound_by_it = roles.filter(|role| scheduler.binds(role));
        bound_by_it
            .map(|role| {
                let mut first = job.waits_for(role).into_iter();
                let starts_later = first.any(|(first, _)| first.replicas > 0 && scheduler.binds(first));
                let present = if starts_later { 0 } else { role.replicas };
                let counts = starts_later && runs_with_others(job, role);
                Self {
                    role,
                    present,
                    asking: present,
                    later: if counts { role.replicas } else { 0 },
                }
            })
            .collect()
    }
}

/// Returns true if a role that starts later runs together with those that it waits for. If they must have succeeded, it
/// needs no capacity before their end.
pub(crate) fn runs_with_others(job: &ValidJob<'_>, role: &Role<'_>) -> bool {
    let mut first = job.waits_for(role).into_iter();
    first.all(|(_, state)| state != StartCondition::Succeeded)
}

/// Makes a pod a member of the group: sets its scheduler, if the template names none, and a label or annotations that
/// name the group.
pub(super) fn join(
    scheduler: &GangScheduler,
    job: &str,
    role: &Role<'_>,
    spec: &mut PodSpec,
    [labels, annotations]: [&mut BTreeMap<String, String>; 2],
) {
    if !scheduler.binds(role) {
        return;
    }
    spec.scheduler_name = Some(scheduler.name().to_owned());
    let mark = |on: &mut BTreeMap<String, String>, key: &str, value: &str| {
        on.insert(key.to_owned(), value.to_owned());
    };
    match scheduler {
        GangScheduler::Volcano => {
            mark(annotations, "scheduling.k8s.io/group-name", job);
            mark(annotations, "volcano.sh/task-spec", &role.slug);
        }
        GangScheduler::Coscheduling(_) => labels.extend(label_of(scheduler, job)),
    }
}

/// Returns the label that makes a pod a member of the job's group, if the scheduler reads one.
fn label_of(scheduler: &GangScheduler, job: &str) -> Option<(String, String)> {
    match scheduler {
        GangScheduler::Coscheduling(_) => Some((labels::POD_GROUP.to_owned(), job.to_owned())),
        GangScheduler::Volcano => None,
    }
}

/// Returns the label that makes the pods of a role members of the group, if there is one.
pub(crate) fn gang_label(job: &ValidJob<'_>, role: &Role<'_>) -> Option<(String, String)> {
    let scheduler = job.topology.settings.gang_scheduler.as_ref();
    let scheduler = scheduler.filter(|scheduler| scheduler.binds(role))?;
    label_of(scheduler, job.topology.job)
}

/// Returns the PodGroup of a job with these members: a new one, or the wanted state of the existing one with the
/// content `there`.
pub(crate) fn pod_group(
    job: &ValidJob<'_>,
    scheduler: &GangScheduler,
    members: &[Members<'_>],
    attempt: u32,
    there: Option<&Value>,
) -> JobObject {
    let policy = job.job.run_policy().scheduling_policy.unwrap_or_default();
    let present: u32 = members.iter().map(|m| m.present).sum();
    let asking: u32 = members.iter().map(|m| m.asking).sum();
    let wanted = policy.min_available.and_then(|n| u32::try_from(n).ok());
    // A group that requires more members than there are would wait forever.
    let fewest = wanted.unwrap_or(present).min(present);
    let resources = match policy.min_resources {
        Some(resources) if asking == present => json!(resources),
        _ => json!(texts(sum(job, members, fewest.saturating_sub(present - asking)))),
    };

    let mut spec = Map::new();
    match scheduler {
        GangScheduler::Volcano => {
            spec.insert("minMember".to_owned(), fewest.into());
            spec.insert("minResources".to_owned(), resources);
            let queue = there.and_then(|there| there["spec"]["queue"].as_str());
            let queue = queue
                .filter(|queue| !queue.is_empty())
                .or(policy.queue.as_deref().filter(|queue| !queue.is_empty()))
                .unwrap_or("default");
            spec.insert("queue".to_owned(), queue.into());
            if let Some(class) = policy.priority_class.filter(|class| !class.is_empty()) {
                spec.insert("priorityClassName".to_owned(), class.into());
            }
        }
        GangScheduler::Coscheduling(_) => {
            // The definition of this PodGroup requires at least 1.
            spec.insert("minMember".to_owned(), fewest.max(1).into());
            if resources.as_object().is_some_and(|all| !all.is_empty()) {
                spec.insert("minResources".to_owned(), resources);
            }
            if let Some(seconds) = policy.schedule_timeout_seconds {
                spec.insert("scheduleTimeoutSeconds".to_owned(), seconds.into());
            }
        }
    }
    if let Some(there) = there {
        drop_resources(&mut spec, &there["spec"]["minResources"]);
    }

    let mut group = scheduler
        .pod_group()
        .object(job.topology.job, json!({ "spec": spec }));
    if there.is_none() {
        let mut annotations = job.job.meta().annotations.clone().unwrap_or_default();
        annotations.remove(LAST_APPLIED);
        annotations.remove(labels::RESTART_ATTEMPT);
        if attempt > 0 {
            annotations.insert(labels::RESTART_ATTEMPT.to_owned(), attempt.to_string());
        }
        group.metadata.annotations = Some(annotations).filter(|all| !all.is_empty());
    }
    super::set_owner_and_labels(job, &mut group);
    group
}

/// Returns the sum of the requests of the first `count` members, in the order of the roles, and of the members that
/// come later.
fn sum(job: &ValidJob<'_>, members: &[Members<'_>], count: u32) -> Amounts {
    let mut left = count;
    let mut all = Amounts::new();
    for member in members {
        let of_role = member.asking.min(left);
        left -= of_role;
        let of_role = of_role + member.later;
        let mut spec = member.role.template().spec.clone().unwrap_or_default();
        let replica = Replica {
            role: member.role,
            index: 0,
        };
        job.job.customize(&job.topology, &replica, &mut spec);
        let of_pod = requests::of_pod(&spec);
        (0..of_role).for_each(|_| requests::add(&mut all, &of_pod));
    }
    all
}

fn texts(amounts: Amounts) -> BTreeMap<String, String> {
    let all = amounts.into_iter();
    all.map(|(name, amount)| (name, amount.to_string())).collect()
}

/// Removes resources from a group that are no longer requested. In a merge patch, null removes a field.
fn drop_resources(spec: &mut Map<String, Value>, there: &Value) {
    let names = there.as_object().into_iter().flat_map(Map::keys);
    let names: Vec<&String> = names.collect();
    if names.is_empty() {
        return;
    }
    let wanted = spec
        .entry("minResources")
        .or_insert_with(|| Value::Object(Map::new()));
    for name in names {
        if let Some(wanted) = wanted.as_object_mut() {
            wanted.entry(name.clone()).or_insert(Value::Null);
        }
    }
}
