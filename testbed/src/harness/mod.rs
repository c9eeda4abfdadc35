//! A cluster with one job, and a controller that validates and plans without an API server.
//!
//! The harness holds real `Pod` and `Service` objects, so every test also covers rendering and the reading of pod
//! statuses. A reconcile follows the controller and its order. It creates services and pods, deletes, plans again,
//! and stores the status of that plan. Every plan is checked.

mod api;
mod check;
mod pods;
mod state;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::{Value, json};
use training_job::api::{CleanPodPolicy, RestartScope};
use training_job::output::{OutputRecord, Pattern};
use training_job::plan::observed::{ObjectRecord, Observed, PodRecord};
use training_job::plan::{self, Plan, PlannedEvent};
use training_job::validate::validate_any;
use training_job::{GangScheduler, Kind, ObjectKind, Settings, TrainingJob, plan as plan_for};

pub use pods::PodHandle;
pub use steps::{Step, steps};

/// The requeue reason of a plan for a job that keeps failing.
const BACKOFF_REASON: &str = "a pause between restarts";

/// The maximum number of reconciles until nothing is left to do.
const MAX_RECONCILES: usize = 20;

/// A cluster with one job, `job` in namespace `team`, and its controller.
#[derive(Clone)]
pub struct PlanHarness<J> {
    /// The kind of the job.
    pub kind: Kind,
    /// The job.
    pub job: J,
    /// The current time.
    pub now: Timestamp,
    /// The pods by name.
    pub pods: BTreeMap<String, Pod>,
    /// The services by name.
    pub services: BTreeMap<String, Service>,
    /// The job's objects beside pods and services, by kind and name.
    pub objects: BTreeMap<ObjectKind, BTreeMap<String, Arc<ObjectRecord>>>,
    /// The attempts of pods that succeeded and were deleted by others, as in the controller's cache.
    pub removed: BTreeMap<String, Arc<PodRecord>>,
    /// The events, in order.
    pub events: Vec<PlannedEvent>,
    /// The names of created pods, in order.
    pub created: Vec<String>,
    /// The last time at which a pod of another job freed capacity.
    pub capacity_freed_at: Option<Timestamp>,
    /// The output of pods that was read, by pod.
    pub output: BTreeMap<String, OutputRecord>,
    /// True if the controller deleted the job.
    pub job_deleted: bool,
    /// The time at which the controller observed the end of each of these pods.
    seen_to_end: BTreeMap<String, Timestamp>,
    settings: Settings,
    /// The UIDs of pods that the controller itself deletes.
    deleted_here: BTreeSet<String>,
    last_uid: u32,
}

impl<J: TrainingJob> PlanHarness<J> {
    /// Creates a harness with the job of this YAML.
    pub fn from_yaml(yaml: &str) -> Self {
        let mut job: J = serde_saphyr::from_str(yaml).expect("the story's job is YAML of its kind");
        job.meta_mut().uid = Some("job-uid".to_owned());
        Self {
            kind: Kind::of::<J>(),
            job,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            pods: BTreeMap::new(),
            services: BTreeMap::new(),
            objects: BTreeMap::new(),
            removed: BTreeMap::new(),
            events: Vec::new(),
            created: Vec::new(),
            capacity_freed_at: None,
            output: BTreeMap::new(),
            job_deleted: false,
            seen_to_end: BTreeMap::new(),
            settings: Settings::default(),
            deleted_here: BTreeSet::new(),
            last_uid: 0,
        }
    }

    /// Creates a harness with a job of these roles, such as `Master=1 Worker=2:OnFailure`, and these lines of its spec.
    pub fn with(roles: &str, fields: &str) -> Self {
        Self::from_yaml(&yaml::<J>(roles, fields))
    }

    /// Sets the operator's restart scope.
    pub fn with_scope(mut self, scope: RestartScope) -> Self {
        self.settings.restart_scope = Some(scope);
        self
    }

    /// Sets the operator's default cleanPodPolicy.
    pub fn with_clean_up(mut self, pods: CleanPodPolicy) -> Self {
        self.settings.clean_pods = pods;
        self
    }

    /// Sets the number of seconds beyond the grace period after which the operator deletes pods by force.
    pub fn with_force_delete_after(mut self, seconds: u64) -> Self {
        self.settings.force_delete_after = Some(std::time::Duration::from_secs(seconds));
        self
    }

    /// Sets the gang scheduler that binds the pods.
    pub fn with_gangs(mut self, scheduler: &str) -> Self {
        self.settings.gang_scheduler = GangScheduler::named(scheduler);
        self
    }

    /// Returns the content of the job's PodGroup, which is everything but its metadata.
    pub fn group(&mut self) -> Option<&mut Value> {
        let scheduler = self.settings.gang_scheduler.as_ref()?;
        let groups = self.objects.get_mut(&scheduler.pod_group())?;
        Some(Arc::make_mut(&mut Arc::make_mut(groups.get_mut("job")?).content))
    }

    /// Reads this log of a replica, such as `worker-0`, which has made no progress for these seconds then.
    pub fn reads(&mut self, replica: &str, log: &str, silent_for: u64) -> &mut Self {
        let name = format!("job-{replica}");
        let uid = self.pods[&name].metadata.uid.clone().unwrap_or_default();
        let record = self.output.entry(name).or_default();
        if record.uid != uid {
            *record = OutputRecord::of(&uid, 0);
        }
        let pattern = self
            .job
            .run_policy()
            .progress
            .and_then(|progress| progress.pattern);
        let pattern = pattern.map(|pattern| Pattern::new(&pattern).expect("the pattern of a story is valid"));
        record.add(log, pattern.as_ref());
        record.silent_for = std::time::Duration::from_secs(silent_for);
        record.silent_since =
            self.now.duration_since(Timestamp::UNIX_EPOCH).unsigned_abs() - record.silent_for;
        self.reconcile()
    }

    /// Sets the phase of the group, as the gang scheduler does, and reconciles.
    pub fn phase(&mut self, phase: &str) -> &mut Self {
        self.group().expect("there is a PodGroup")["status"] = json!({ "phase": phase });
        self.reconcile()
    }

    /// Starts the job, and sets all its pods running.
    pub fn started(mut self) -> Self {
        self.reconcile();
        self.all_running();
        self
    }

    /// Advances the time by this many seconds.
    pub fn after(&mut self, seconds: i64) -> &mut Self {
        self.now += SignedDuration::from_secs(seconds);
        self
    }

    /// Records that the controller observes the end of this pod now.
    pub fn observe_end(&mut self, replica: &str) -> &mut Self {
        self.seen_to_end.insert(format!("job-{replica}"), self.now);
        self
    }

    /// Edits the job as a user.
    pub fn edit(&mut self, change: impl FnOnce(&mut J)) -> &mut Self {
        change(&mut self.job);
        self
    }

    /// Sets the number of replicas of a role, as a user.
    pub fn scale(&mut self, role: &str, replicas: i32) -> &mut Self {
        self.set_spec(&[J::FRAMEWORK.roles_field, role, "replicas"], replicas.into())
    }

    /// Suspends or resumes the job, as a user.
    pub fn suspend(&mut self, suspend: bool) -> &mut Self {
        self.set_spec(&["runPolicy", "suspend"], suspend.into())
    }

    fn set_spec(&mut self, path: &[&str], value: Value) -> &mut Self {
        let mut job = serde_json::to_value(&self.job).unwrap();
        let mut at = &mut job["spec"];
        for key in path {
            at = &mut at[*key];
        }
        *at = value;
        self.job = serde_json::from_value(job).unwrap();
        self
    }

    /// Restarts the operator, which loses its in-memory state.
    pub fn restart_operator(&mut self) -> &mut Self {
        self.removed.clear();
        self.deleted_here.clear();
        self
    }

    /// Removes all pods that are being deleted.
    pub fn finish_deletions(&mut self) -> &mut Self {
        let leaving: Vec<String> = self.pods.values().filter(|p| is_leaving(p)).map(name).collect();
        for name in leaving {
            self.remove_pod(&name);
        }
        self
    }

    /// Returns the controller's plan at the current time.
    pub fn plan(&self) -> Plan {
        match validate_any(&self.kind, &self.job, &self.settings) {
            Ok(mut valid) => {
                valid.read_contents(&self.observed());
                plan_for(&valid, &self.observed(), self.now)
            }
            Err(errors) => plan::invalid(
                &J::kind(&()),
                "job",
                &self.status(),
                self.job.run_policy().ttl_seconds_after_finished.map(i64::from),
                &errors.to_string(),
                &self.observed(),
                self.now,
            ),
        }
    }

    /// Reconciles once.
    pub fn reconcile_once(&mut self) -> &mut Self {
        let plan = self.plan();
        self.check_plan(&plan);
        for step in steps(&plan) {
            self.carry_out(&step);
        }
        let plan = self.plan();
        self.check_plan(&plan);
        self.store(&plan);
        self.events.extend(plan.events);
        self
    }

    /// Reconciles until there is nothing left to do. Skips the pauses between restarts.
    pub fn reconcile(&mut self) -> &mut Self {
        for _ in 0..MAX_RECONCILES {
            let plan = self.plan();
            match plan
                .requeue
                .as_ref()
                .filter(|requeue| requeue.why == BACKOFF_REASON)
            {
                _ if self.job_deleted => return self,
                Some(pause) if plan.is_idle() => self.now = pause.at,
                None if plan.is_idle() => return self,
                _ => drop(self.reconcile_once()),
            }
        }
        panic!(
            "still something to do after {MAX_RECONCILES} reconciles: {:#?}",
            self.plan()
        );
    }

    /// Returns the contents of the controller's caches.
    pub fn observed(&self) -> Observed {
        Observed {
            pods: self
                .pods
                .iter()
                .map(|(n, p)| {
                    let seen_to_end = self.seen_to_end.get(n).copied();
                    let record = PodRecord {
                        seen_to_end,
                        ..p.into()
                    };
                    (n.clone(), Arc::new(record))
                })
                .collect(),
            services: self
                .services
                .iter()
                .map(|(n, s)| (n.clone(), Arc::new(s.into())))
                .collect(),
            objects: self.objects.clone(),
            removed: self.removed.clone(),
            capacity_freed_at: self.capacity_freed_at,
            output: {
                let output = self.output.iter();
                output
                    .map(|(pod, record)| (pod.clone(), Arc::new(record.clone())))
                    .collect()
            },
            ..Observed::default()
        }
    }
}

fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap()
}

fn is_leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Returns a job's YAML. `roles` is such as `Master=1 Worker=2:OnFailure`, and `fields` are lines of the spec.
fn yaml<J: TrainingJob>(roles: &str, fields: &str) -> String {
    let (version, kind) = (J::api_version(&()), J::kind(&()));
    let (field, container) = (J::FRAMEWORK.roles_field, main_container::<J>());
    let mut text =
        format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: job, namespace: team}}\nspec:\n");
    for line in fields.lines() {
        text += &format!("  {line}\n");
    }
    text += &format!("  {field}:\n");
    for role in roles.split_whitespace() {
        let (name, rest) = role
            .split_once('=')
            .expect("a role is Name=replicas or Name=replicas:Policy");
        let (replicas, policy) = rest.split_once(':').unwrap_or((rest, "Never"));
        text += &format!(
            "    {name}: {{replicas: {replicas}, restartPolicy: {policy}, \
             template: {{spec: {{containers: [{{name: {container}, image: 'example.com/job:1'}}]}}}}}}\n"
        );
    }
    text
}

/// Returns the name of the framework's container, or `main` if the framework has no such name.
fn main_container<J: TrainingJob>() -> &'static str {
    match J::FRAMEWORK.main_container {
        "" => "main",
        name => name,
    }
}
