//! Limits how often a job's children are created and patched, and how often its status is written.
//!
//! Children may be deleted as soon as they are created: by a user, or by the garbage collector because the job is
//! being deleted and its watch is late. They would be created again and again. Each create succeeds, so no backoff
//! after errors would slow this down.
//!
//! Children that are refused for their name or content wait for a backoff. Without it, every event of the job would
//! cause another try, at two calls for each name that a foreign object has.
//!
//! Statuses are written as soon as they are decided, up to a limit. Without the limit, two operators with different
//! views of the cluster (without leader election, and one with a dead watch) would overwrite each other as fast as
//! the server responds.
//!
//! An object is patched immediately, and again after a second at the earliest. Replicas that come up one by one
//! change the ConfigMap that lists them; changes within a second then cost one patch and one event. The limit also
//! bounds the conflict between an operator and another client that want different values in an object.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use tokio::time::Instant;

use kube_follow::backoff;
use training_job::job::JobObject;
use training_job::plan::{ChildKind, Plan};

use super::steps::{Action, ApplyError, ApplyFailure, ChildAction};

/// Consecutive reconciles that may create without a pause: the first of a job, and a few that replace lost children.
const MAX_BURST_CREATES: u32 = 5;

/// Reconciles that are further apart than this are not consecutive.
const MAX_CONSECUTIVE_GAP: Duration = Duration::from_secs(60);

const MAX_CREATE_PAUSE: Duration = Duration::from_secs(10);

/// The rate at which reconciles of one job create children.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CreateRate {
    consecutive: u32,
    last: Option<Instant>,
}

impl CreateRate {
    /// Removes the creates from `plan` if it is too early for them, and returns when they are due.
    pub(super) fn defer_creates(&self, plan: &mut Plan) -> Option<Instant> {
        let nothing = plan.creates() == 0;
        let over = self
            .consecutive
            .checked_sub(MAX_BURST_CREATES)
            .filter(|_| !nothing)?;
        let due = self.last? + backoff(over + 1, "").min(MAX_CREATE_PAUSE);
        if Instant::now() >= due {
            return None;
        }
        plan.create_objects.clear();
        plan.create_services.clear();
        plan.create_pods.clear();
        Some(due)
    }

    pub(super) fn record(&mut self) {
        let continues = self.last.is_some_and(|last| last.elapsed() < MAX_CONSECUTIVE_GAP);
        self.consecutive = if continues {
            self.consecutive.saturating_add(1)
        } else {
            1
        };
        self.last = Some(Instant::now());
    }
}

/// Children that the server refused because of their name or content.
#[derive(Clone, Debug, Default)]
pub(super) struct RefusedChildren {
    names: BTreeSet<(ChildKind, String)>,
    /// The generation of the job at the refusal, because an edit of the spec may fix the cause.
    generation: Option<i64>,
    /// The time of the next try.
    retry_at: Option<Instant>,
    /// True if a quota is exhausted, so that the job's own backoff applies.
    lacks_capacity: bool,
    /// Number of consecutive refusals.
    times: u32,
}

impl RefusedChildren {
    /// Removes the creates and patches of refused children from `plan` while it is too early for them, and returns
    /// when they are due.
    pub(super) fn defer_creates(&mut self, generation: Option<i64>, plan: &mut Plan) -> Option<Instant> {
        let retry_at = self.retry_at.filter(|at| *at > Instant::now());
        if retry_at.is_none() || self.generation != generation {
            let goes_on = self.is_waiting() && self.generation == generation;
            *self = Self {
                generation,
                times: if goes_on { self.times } else { 0 },
                ..Self::default()
            };
            return None;
        }
        let wanted = plan.creates() + plan.patch_objects.len();
        let is_held = |kind, name: &str| self.names.contains(&(kind, name.to_owned()));
        let is_held_object = |object: &JobObject| is_held(object.kind.into(), object.name());
        if plan.create_objects.iter().any(is_held_object) {
            // Services and pods may depend on the object.
            plan.create_services.clear();
            plan.create_pods.clear();
        }
        let is_held_service = |service: &Service| {
            let name = service.metadata.name.as_deref().unwrap_or_default();
            is_held(ChildKind::Service, name)
        };
        if plan.create_services.iter().any(is_held_service) {
            // Pods cannot find each other without it.
            plan.create_pods.clear();
        }
        plan.create_objects.retain(|object| !is_held_object(object));
        plan.patch_objects.retain(|patch| !is_held_object(&patch.object));
        plan.create_pods.retain(|pod| !is_held(ChildKind::Pod, &pod.name));
        plan.create_services.retain(|service| !is_held_service(service));
        let left = plan.creates() + plan.patch_objects.len();
        retry_at.filter(|_| left < wanted)
    }

    /// Records the failures that are refusals of one child, and those of a quota, which concern all. Another failure of all
    /// children is not recorded, because it costs one call in each reconcile and may end at any time. Nor is a
    /// predecessor's child, because the watch reports its deletion.
    pub(super) fn add(&mut self, failures: &[ApplyFailure]) {
        self.lacks_capacity = failures.iter().any(ApplyFailure::lacks_capacity);
        let is_left = |f: &ApplyFailure| self.lacks_capacity && matches!(f.problem, ApplyError::NotTried);
        let is_refused = |f: &&ApplyFailure| f.problem.refuses_child() || f.lacks_capacity() || is_left(f);
        let refused = failures.iter().filter(|f| f.action != Action::Delete);
        let refused = refused.filter(is_refused);
        let before = self.names.len();
        self.names.extend(refused.map(|f| (f.kind, f.name.clone())));
        self.times = self.times.saturating_add(u32::from(self.names.len() > before));
    }

    /// Treats these children of a job of this generation as refused.
    pub(super) fn hold(
        &mut self,
        generation: Option<i64>,
        kind: ChildKind,
        names: impl Iterator<Item = String>,
        retry_at: Instant,
    ) {
        self.names.extend(names.map(|name| (kind, name)));
        (self.generation, self.retry_at) = (generation, Some(retry_at));
    }

    /// Sets the time of the next try: the retry of the job, or the end of the children's own backoff if that is
    /// earlier. The failures of the job may have other causes.
    pub(super) fn set_retry_at(&mut self, again: Instant) {
        let own = Instant::now() + backoff(self.times, "");
        self.retry_at = Some(if self.lacks_capacity {
            again
        } else {
            again.min(own)
        });
    }

    /// Returns true if any child waits for its next try.
    pub(super) fn is_waiting(&self) -> bool {
        !self.names.is_empty()
    }
}

/// Writes of a job's status that are allowed without delay in one [`WRITE_WINDOW`]. A job in trouble has a few each second.
const MAX_WRITES_PER_WINDOW: u32 = 20;

/// The window in which status writes are counted.
const WRITE_WINDOW: Duration = Duration::from_secs(10);

/// The rate of status writes of one job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WriteRate {
    count: u32,
    since: Option<Instant>,
}

impl WriteRate {
    /// Returns when the next write is allowed, if it is too early now.
    pub(super) fn due(&self) -> Option<Instant> {
        let end = self.since? + WRITE_WINDOW;
        (self.count >= MAX_WRITES_PER_WINDOW && Instant::now() < end).then_some(end)
    }

    pub(super) fn record(&mut self) {
        if self.since.is_none_or(|since| since.elapsed() >= WRITE_WINDOW) {
            *self = Self {
                count: 0,
                since: Some(Instant::now()),
            };
        }
        self.count += 1;
    }
}

/// The minimum interval between two patches of an object.
const MIN_PATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The times of the last patches of one job's objects, and of its pods' labels. A pod needs a patch only after another client
/// changed it, so the interval of its patches grows: two clients that want different labels must not keep the server busy.
#[derive(Clone, Debug, Default)]
pub(super) struct PatchRate {
    last: BTreeMap<(ChildKind, String), (Instant, u32)>,
}

impl PatchRate {
    fn interval(kind: ChildKind, times: u32) -> Duration {
        match kind {
            ChildKind::Pod => backoff(times, "").max(MIN_PATCH_INTERVAL),
            ChildKind::Service | ChildKind::Object(_) => MIN_PATCH_INTERVAL,
        }
    }

    /// Returns when the object may be patched again, if it is too early now.
    fn due(&self, kind: ChildKind, name: &str) -> Option<Instant> {
        let (last, times) = self.last.get(&(kind, name.to_owned()))?;
        Some(*last + Self::interval(kind, *times)).filter(|due| *due > Instant::now())
    }

    /// Removes the patches from `plan` for which it is too early, and creates that would adopt a pod again. Returns when the
    /// first of them is due.
    pub(super) fn defer_patches(&self, plan: &mut Plan) -> Option<Instant> {
        if self.last.is_empty() {
            return None;
        }
        let of_object = |object: &JobObject| self.due(object.kind.into(), object.name());
        let patches = plan.patch_objects.iter().map(|patch| of_object(&patch.object));
        let pods = plan.create_pods.iter();
        let pods = pods.map(|pod| self.due(ChildKind::Pod, &pod.name));
        let first = patches.chain(pods).flatten().min();
        plan.patch_objects
            .retain(|patch| of_object(&patch.object).is_none());
        plan.create_pods
            .retain(|pod| self.due(ChildKind::Pod, &pod.name).is_none());
        first
    }

    /// Records the patches and adoptions among the completed actions.
    pub(super) fn record(&mut self, done: &[ChildAction]) {
        let now = Instant::now();
        // The interval grows only while patches follow each other.
        self.last
            .retain(|(kind, _), (last, times)| *last + 2 * Self::interval(*kind, *times) > now);
        let patched = done.iter().filter(|done| {
            done.action == Action::Patch || (done.action, done.kind) == (Action::Adopt, ChildKind::Pod)
        });
        for (kind, name) in patched.flat_map(|done| done.names.iter().map(|name| (done.kind, name.clone()))) {
            let (last, times) = self.last.entry((kind, name)).or_insert((now, 0));
            (*last, *times) = (now, *times + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;
    use training_job::job::ObjectKind;
    use training_job::plan::{ObjectPatch, PlannedPod};

    #[tokio::test(start_paused = true)]
    async fn repeated_creates_slow_down() {
        let mut rate = CreateRate::default();
        let mut made = 0;
        let end = Instant::now() + Duration::from_secs(300);
        while Instant::now() < end {
            let mut plan = Plan {
                create_services: vec![Service::default()],
                ..Plan::default()
            };
            match rate.defer_creates(&mut plan) {
                Some(due) => tokio::time::sleep_until(due).await,
                None => {
                    rate.record();
                    made += 1;
                }
            }
        }
        assert!((30..=45).contains(&made), "{made}");
        tokio::time::sleep(MAX_CONSECUTIVE_GAP).await;
        rate.record();
        assert_eq!(rate.consecutive, 1, "calm makes it forget");
    }

    #[tokio::test(start_paused = true)]
    async fn status_writes_are_immediate_up_to_a_limit() {
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
        assert_eq!(made, 6 * MAX_WRITES_PER_WINDOW);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_is_patched_once_a_second_and_others_do_not_wait_for_it() {
        let config = ObjectKind::of::<k8s_openapi::api::core::v1::ConfigMap>();
        let plan = |names: &[&str]| Plan {
            patch_objects: names
                .iter()
                .map(|name| ObjectPatch {
                    object: config.object(*name, serde_json::json!({})),
                    uid: String::new(),
                })
                .collect(),
            ..Plan::default()
        };
        let mut patches = PatchRate::default();
        let mut made = 0;
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            let mut plan = plan(&["a"]);
            if patches.defer_patches(&mut plan).is_none() {
                made += 1;
                let names = vec!["a".to_owned()];
                let (action, kind) = (Action::Patch, config.into());
                patches.record(&[ChildAction { action, kind, names }]);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(made, 60);
        let (action, kind, names) = (Action::Patch, config.into(), vec!["a".to_owned()]);
        patches.record(&[ChildAction { action, kind, names }]);
        let mut both = plan(&["a", "b"]);
        assert!(patches.defer_patches(&mut both).is_some());
        assert_eq!(both.patch_objects, plan(&["b"]).patch_objects);
    }

    #[tokio::test(start_paused = true)]
    async fn refused_children_wait_for_their_retry_or_another_spec() {
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
            failure("a", ApplyError::NameTaken(None)),
            failure("b", ApplyError::StillThere),
            failure("c", ApplyError::NotTried),
        ]);
        refused.set_retry_at(Instant::now() + Duration::from_secs(300));
        let (due, _) = held(&mut refused, 1);
        assert_eq!(
            due,
            Some(Instant::now() + backoff(1, "")),
            "its own, not the job's"
        );
        let due = Instant::now() + Duration::from_millis(400);
        refused.set_retry_at(due);
        // The pod waits as well, because it may need the service.
        assert_eq!(held(&mut refused, 1), (Some(due), "bc".to_owned()));
        let mut others = Plan {
            create_services: vec![service("c")],
            ..Plan::default()
        };
        assert_eq!(refused.defer_creates(Some(1), &mut others), None);
        assert!(refused.is_waiting());
        let mut edited = refused.clone();
        assert_eq!(held(&mut edited, 2), all());
        assert!(!edited.is_waiting());
        tokio::time::sleep_until(due).await;
        assert_eq!(held(&mut refused, 1), all());
        assert!(!refused.is_waiting());
    }

    #[test]
    fn deletions_are_never_deferred() {
        let mut rate = CreateRate::default();
        assert!(rate.defer_creates(&mut Plan::default()).is_none());
        rate.consecutive = 100;
        rate.last = None;
        assert!(rate.defer_creates(&mut Plan::default()).is_none());
    }
}
