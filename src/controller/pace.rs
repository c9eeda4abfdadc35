//! How often a job's children may be created and patched, and its status written.
//!
//! Children that are gone as soon as they are created (somebody deletes them, or the garbage collector does since
//! the job is being deleted and its watch has not said so yet) would be created again and again, each time with
//! success, so that no backoff after errors slows it down.
//!
//! Children that are refused for their name or content wait for a backoff. Without it, every event of the job would
//! try them once more, at two calls for each name that somebody else's object has.
//!
//! Statuses are written as soon as something is decided. Two operators that see different things (no election
//! keeps them apart, and the watch of one is dead) would overwrite each other as fast as the server answers. So would an
//! operator and somebody else who want an object of the job to be different things.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::job::JobObject;
use crate::plan::{ChildKind, Plan};
use kube_follow::backoff;

use super::steps::{Action, ApplyFailure};

/// Reconciles in a row that may create without a pause: a job's first, and a few in which it loses some children.
const BURST: u32 = 5;

/// Reconciles that are further apart than this are not in a row.
const ROW: Duration = Duration::from_secs(60);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(10);

/// How often reconciles of one job have created something.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CreateRate {
    in_row: u32,
    last: Option<Instant>,
}

impl CreateRate {
    /// Takes the creates out of `plan` if it is too early for them, and says when it is not.
    pub(super) fn defer_creates(&self, plan: &mut Plan) -> Option<Instant> {
        let nothing = plan.creates() == 0;
        let over = self.in_row.checked_sub(BURST).filter(|_| !nothing)?;
        let due = self.last? + backoff(over + 1, "").min(LONGEST);
        if Instant::now() >= due {
            return None;
        }
        plan.create_objects.clear();
        plan.create_services.clear();
        plan.create_pods.clear();
        Some(due)
    }

    /// Records that something was created.
    pub(super) fn record(&mut self) {
        let continues = self.last.is_some_and(|last| last.elapsed() < ROW);
        self.in_row = if continues {
            self.in_row.saturating_add(1)
        } else {
            1
        };
        self.last = Some(Instant::now());
    }
}

/// Children that the server refused for their name or content.
#[derive(Clone, Debug, Default)]
pub(super) struct RefusedChildren {
    names: BTreeSet<(ChildKind, String)>,
    /// The job's generation then: an edit of the spec may mend it.
    generation: Option<i64>,
    /// When they may be tried again.
    until: Option<Instant>,
}

impl RefusedChildren {
    /// Takes the creates out of `plan` for which it is too early, and says when it is not.
    pub(super) fn defer_creates(&mut self, generation: Option<i64>, plan: &mut Plan) -> Option<Instant> {
        let until = self.until.filter(|until| *until > Instant::now());
        if until.is_none() || self.generation != generation {
            *self = Self {
                generation,
                ..Self::default()
            };
            return None;
        }
        let wanted = plan.creates() + plan.patch_objects.len();
        let is_held = |kind, name: &str| self.names.contains(&(kind, name.to_owned()));
        let is_held_object = |object: &JobObject| is_held(object.kind.into(), object.name());
        if plan.create_objects.iter().any(is_held_object) {
            // Services and pods may need it.
            plan.create_services.clear();
            plan.create_pods.clear();
        }
        plan.create_objects.retain(|object| !is_held_object(object));
        plan.patch_objects.retain(|patch| !is_held_object(&patch.object));
        plan.create_pods.retain(|pod| !is_held(ChildKind::Pod, &pod.name));
        plan.create_services.retain(|service| {
            !is_held(
                ChildKind::Service,
                service.metadata.name.as_deref().unwrap_or_default(),
            )
        });
        let left = plan.creates() + plan.patch_objects.len();
        until.filter(|_| left < wanted)
    }

    /// Records those among `failures` that were refused. What fails for all children costs one call in each reconcile, and
    /// may be over at any time; the watch says when a predecessor's child is gone.
    pub(super) fn add(&mut self, failures: &[ApplyFailure]) {
        let refused = failures
            .iter()
            .filter(|f| f.action != Action::Delete && f.problem.refuses_child());
        self.names.extend(refused.map(|f| (f.kind, f.name.clone())));
    }

    /// Sets when they may be tried again.
    pub(super) fn until(&mut self, again: Instant) {
        self.until = Some(again);
    }

    /// Whether any child waits for its next try.
    pub(super) fn is_waiting(&self) -> bool {
        !self.names.is_empty()
    }
}

/// Writes of a job's status, and patches of its objects, that need not wait in one [`WINDOW`]. A job in trouble has a few each second.
const WRITES: u32 = 20;

/// The time in which they are counted.
const WINDOW: Duration = Duration::from_secs(10);

/// The writes of one job's status, or the patches of its objects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WriteRate {
    count: u32,
    since: Option<Instant>,
}

impl WriteRate {
    /// When the next write may be made, if it is too early now.
    pub(super) fn due(&self) -> Option<Instant> {
        let end = self.since? + WINDOW;
        (self.count >= WRITES && Instant::now() < end).then_some(end)
    }

    /// Records a write.
    pub(super) fn record(&mut self) {
        if self.since.is_none_or(|since| since.elapsed() >= WINDOW) {
            *self = Self {
                count: 0,
                since: Some(Instant::now()),
            };
        }
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::super::steps::ApplyError;
    use super::*;
    use crate::plan::PlannedPod;

    #[tokio::test(start_paused = true)]
    async fn what_is_made_again_and_again_is_made_less_often() {
        let mut pace = CreateRate::default();
        let mut made = 0;
        let end = Instant::now() + Duration::from_secs(300);
        while Instant::now() < end {
            let mut plan = Plan {
                create_services: vec![Service::default()],
                ..Plan::default()
            };
            match pace.defer_creates(&mut plan) {
                Some(due) => tokio::time::sleep_until(due).await,
                None => {
                    pace.record();
                    made += 1;
                }
            }
        }
        assert!((30..=45).contains(&made), "{made}");
        tokio::time::sleep(ROW).await;
        pace.record();
        assert_eq!(pace.in_row, 1, "calm makes it forget");
    }

    #[tokio::test(start_paused = true)]
    async fn statuses_are_written_at_once_but_not_without_end() {
        let mut writes = WriteRate::default();
        let end = Instant::now() + Duration::from_secs(60);
        let mut made = 0;
        while Instant::now() < end {
            match writes.due() {
                Some(due) => tokio::time::sleep_until(due).await,
                None => {
                    writes.record();
                    made += 1;
                }
            }
        }
        assert_eq!(made, 6 * WRITES);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_refused_waits_for_its_time_or_another_spec() {
        let named = |name: &str| ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        let service = |name| Service {
            metadata: named(name),
            ..Service::default()
        };
        let pod = PlannedPod {
            name: "a".to_owned(),
            attempt: 0,
        };
        let held = |refused: &mut RefusedChildren, generation| {
            let mut plan = Plan {
                create_services: vec![service("a"), service("b"), service("c")],
                create_pods: vec![pod.clone()],
                ..Plan::default()
            };
            let due = refused.defer_creates(Some(generation), &mut plan);
            let left = plan.create_services.into_iter().filter_map(|s| s.metadata.name);
            (
                due,
                left.chain(plan.create_pods.into_iter().map(|p| p.name))
                    .collect::<String>(),
            )
        };
        let failure = |name: &str, problem| ApplyFailure {
            kind: ChildKind::Service,
            action: Action::Create,
            name: name.to_owned(),
            problem,
        };
        let all = || (None, "abca".to_owned());
        let mut refused = RefusedChildren::default();
        assert_eq!(held(&mut refused, 1), all());
        refused.add(&[
            failure("a", ApplyError::NameTaken),
            failure("b", ApplyError::StillThere),
            failure("c", ApplyError::NotTried),
        ]);
        let due = Instant::now() + Duration::from_secs(8);
        refused.until(due);
        assert_eq!(held(&mut refused, 1), (Some(due), "bca".to_owned()));
        let mut others = Plan {
            create_services: vec![service("c")],
            ..Plan::default()
        };
        assert_eq!(refused.defer_creates(Some(1), &mut others), None);
        assert!(refused.is_waiting());
        refused.add(&[ApplyFailure {
            kind: ChildKind::Pod,
            ..failure("a", ApplyError::NameTaken)
        }]);
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(held(&mut refused, 1), (Some(due), "bc".to_owned()));
        let mut edited = refused.clone();
        assert_eq!(held(&mut edited, 2), all());
        assert!(!edited.is_waiting());
        tokio::time::sleep_until(due).await;
        assert_eq!(held(&mut refused, 1), all());
        assert!(!refused.is_waiting());
    }

    #[test]
    fn deletions_wait_for_nothing() {
        let mut pace = CreateRate::default();
        assert!(pace.defer_creates(&mut Plan::default()).is_none());
        pace.in_row = 100;
        pace.last = None;
        assert!(pace.defer_creates(&mut Plan::default()).is_none());
    }
}
