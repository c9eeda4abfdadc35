//! A cluster with one job, and a controller that validates and plans without an API server.
//!
//! The world holds real `Pod` and `Service` objects, so every story also covers rendering and the reading of pod
//! statuses. A reconcile does what the controller does, in its order: it creates services and pods, deletes, plans
//! again and stores the status of that plan. Every plan is checked, whatever the story is about.

mod check;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use training_job::api::{CleanPodPolicy, ConditionStatus, JobCondition, JobStatus, RestartScope};
use training_job::plan::observed::{ObjectRecord, Observed, PodRecord};
use training_job::plan::{self, ChildKind, Deletion, ObjectPatch, Plan, PlannedEvent};
use training_job::{GangScheduler, JobObject, ObjectKind, Settings, TrainingJob, plan as plan_for, validate};

use crate::pods::{PodHandle, main_container};

pub use steps::{Step, steps};

/// More reconciles than any story needs until there is nothing left to do.
const MANY: usize = 20;

/// A cluster with one job, `job` in namespace `team`, and its controller.
#[derive(Clone)]
pub struct World<J> {
    /// The job.
    pub job: J,
    /// The time.
    pub now: Timestamp,
    /// The pods by name.
    pub pods: BTreeMap<String, Pod>,
    /// The services by name.
    pub services: BTreeMap<String, Service>,
    /// What else the job has.
    pub objects: BTreeMap<ObjectKind, BTreeMap<String, Arc<ObjectRecord>>>,
    /// The pods that succeeded and were deleted by others, as the controller's cache remembers them.
    pub completed: BTreeMap<String, u32>,
    /// The events, in order.
    pub events: Vec<PlannedEvent>,
    /// Names of created pods, in order.
    pub created: Vec<String>,
    /// When another job's pod last left room.
    pub room_left_at: Option<Timestamp>,
    /// The job was deleted by the controller.
    pub job_deleted: bool,
    /// When the controller saw each of these pods end.
    seen_to_end: BTreeMap<String, Timestamp>,
    settings: Settings,
    /// Pods that the controller itself deletes.
    deleted_here: BTreeSet<String>,
    last_uid: u32,
}

impl<J: TrainingJob> World<J> {
    /// A world with the job of this YAML.
    pub fn from_yaml(yaml: &str) -> Self {
        let mut job: J = serde_saphyr::from_str(yaml).expect("the story's job is YAML of its kind");
        job.meta_mut().uid = Some("job-uid".to_owned());
        Self {
            job,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            pods: BTreeMap::new(),
            services: BTreeMap::new(),
            objects: BTreeMap::new(),
            completed: BTreeMap::new(),
            events: Vec::new(),
            created: Vec::new(),
            room_left_at: None,
            job_deleted: false,
            seen_to_end: BTreeMap::new(),
            settings: Settings::default(),
            deleted_here: BTreeSet::new(),
            last_uid: 0,
        }
    }

    /// A job with these roles, such as `Master=1 Worker=2:OnFailure`, and these lines of its spec.
    pub fn with(roles: &str, fields: &str) -> Self {
        Self::from_yaml(&yaml::<J>(roles, fields))
    }

    /// Sets the operator's restart scope.
    pub fn with_scope(mut self, scope: RestartScope) -> Self {
        self.settings.restart_scope = Some(scope);
        self
    }

    /// Sets which pods the operator has go at the end of a job that does not say.
    pub fn with_clean_up(mut self, pods: CleanPodPolicy) -> Self {
        self.settings.clean_pods = pods;
        self
    }

    /// Lets this gang scheduler bind the pods.
    pub fn with_gangs(mut self, scheduler: &str) -> Self {
        self.settings.gang_scheduler = GangScheduler::named(scheduler);
        self
    }

    /// What the job's PodGroup has beside its metadata.
    pub fn group(&mut self) -> Option<&mut Value> {
        let scheduler = self.settings.gang_scheduler.as_ref()?;
        let groups = self.objects.get_mut(&scheduler.pod_group())?;
        Some(&mut Arc::make_mut(groups.get_mut("job")?).content)
    }

    /// The gang scheduler lets the group in, or has it wait again.
    pub fn phase(&mut self, phase: &str) -> &mut Self {
        self.group().expect("there is a PodGroup")["status"] = json!({ "phase": phase });
        self.reconcile()
    }

    /// The pod of a replica, such as `worker-0`.
    pub fn pod(&mut self, replica: &str) -> PodHandle<'_, J> {
        PodHandle::new(self, format!("job-{replica}"))
    }

    /// All pods run.
    pub fn all_running(&mut self) -> &mut Self {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in names {
            PodHandle::new(self, name).running();
        }
        self.reconcile()
    }

    /// The job starts, and all its pods run.
    pub fn started(mut self) -> Self {
        self.reconcile();
        self.all_running();
        self
    }

    /// So many seconds pass.
    pub fn after(&mut self, seconds: i64) -> &mut Self {
        self.now += SignedDuration::from_secs(seconds);
        self
    }

    /// The controller sees now that this pod has ended.
    pub fn observe_end(&mut self, replica: &str) -> &mut Self {
        self.seen_to_end.insert(format!("job-{replica}"), self.now);
        self
    }

    /// The user changes the job.
    pub fn edit(&mut self, change: impl FnOnce(&mut J)) -> &mut Self {
        change(&mut self.job);
        self
    }

    /// The user asks for so many replicas of a role.
    pub fn scale(&mut self, role: &str, replicas: i32) -> &mut Self {
        self.set_spec(&[J::FRAMEWORK.roles_field, role, "replicas"], replicas.into())
    }

    /// The user suspends the job or lets it go on.
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

    /// Restarts the operator, which loses what it had only in memory.
    pub fn restart_operator(&mut self) -> &mut Self {
        self.completed.clear();
        self.deleted_here.clear();
        self
    }

    /// Removes everything that is being deleted.
    pub fn finish_deletions(&mut self) -> &mut Self {
        let leaving: Vec<String> = self.pods.values().filter(|p| is_leaving(p)).map(name).collect();
        for name in leaving {
            self.remove_pod(&name);
        }
        self
    }

    /// The controller's plan now.
    pub fn plan(&self) -> Plan {
        match validate(&self.job, &self.settings) {
            Ok(valid) => plan_for(&valid, &self.observed(), self.now),
            Err(errors) => plan::invalid(
                &J::kind(&()),
                "job",
                &self.status(),
                self.job.run_policy().ttl_seconds_after_finished.map(i64::from),
                &errors.to_string(),
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

    /// Reconciles until there is nothing left to do.
    pub fn reconcile(&mut self) -> &mut Self {
        for _ in 0..MANY {
            if self.job_deleted || self.plan().is_idle() {
                return self;
            }
            self.reconcile_once();
        }
        panic!(
            "still something to do after {MANY} reconciles: {:#?}",
            self.plan()
        );
    }

    /// Does to the cluster what a step says.
    pub fn carry_out(&mut self, step: &Step) {
        match step {
            Step::CreateObject(object) => {
                let uid = self.uid();
                self.put(object, uid);
            }
            Step::PatchObject(patch) => self.patch(patch),
            Step::CreateService(service) => {
                let mut service = (**service).clone();
                service.metadata.uid = Some(self.uid());
                self.services
                    .insert(service.metadata.name.clone().unwrap(), service);
            }
            Step::CreatePod(pod) => {
                let job = validate(&self.job, &self.settings).expect("only a valid job has pods");
                let mut pod = pod.render(&job).expect("a replica's pod");
                pod.metadata.uid = Some(self.uid());
                let name = name(&pod);
                self.created.push(name.clone());
                self.pods.insert(name, pod);
            }
            Step::Delete(Deletion {
                kind: ChildKind::Service,
                name,
                ..
            }) => {
                self.services.remove(name);
            }
            Step::Delete(Deletion {
                kind: ChildKind::Pod,
                name,
                uid,
                ..
            }) => {
                self.deleted_here.insert(uid.clone());
                self.delete_pod(name);
            }
            Step::Delete(Deletion {
                kind: ChildKind::Object(kind),
                name,
                ..
            }) => drop(self.objects.entry(*kind).or_default().remove(name)),
        }
    }

    fn put(&mut self, object: &JobObject, uid: String) {
        let whole = || serde_json::to_value(object).unwrap();
        let name = object.metadata.name.clone().unwrap();
        match object.kind.into() {
            ChildKind::Pod => {
                let mut pod: Pod = serde_json::from_value(whole()).unwrap();
                pod.metadata.uid = Some(uid);
                self.pods.insert(name, pod);
            }
            ChildKind::Service => {
                let mut service: Service = serde_json::from_value(whole()).unwrap();
                service.metadata.uid = Some(uid);
                self.services.insert(name, service);
            }
            ChildKind::Object(kind) => {
                let record = ObjectRecord {
                    uid,
                    created: Some(self.now),
                    ..object.into()
                };
                let of_kind = self.objects.entry(kind).or_default();
                of_kind.insert(name, Arc::new(record));
            }
        }
    }

    fn patch(&mut self, patch: &ObjectPatch) {
        let object = &patch.object;
        let name = object.metadata.name.clone().unwrap();
        let records = self.objects.get_mut(&object.kind);
        let Some(record) = records.and_then(|records| records.get_mut(&name)) else {
            self.put(object, patch.uid.clone());
            return;
        };
        let record = Arc::make_mut(record);
        merge(&mut record.content, &object.content);
        let labels = object.metadata.labels.clone().unwrap_or_default();
        record.labels.extend(labels);
        let annotations = object.metadata.annotations.clone().unwrap_or_default();
        record.annotations.extend(annotations);
    }

    /// The API server stores the plan's status.
    pub fn store(&mut self, plan: &Plan) {
        self.job_deleted |= plan.delete_job;
        if let Some(change) = &plan.status {
            let wire = serde_json::to_string(&change.status).unwrap();
            let read: JobStatus = serde_json::from_str(&wire).unwrap();
            assert_eq!(read, change.status, "the status survives the wire");
            let mut job = serde_json::to_value(&self.job).unwrap();
            job["status"] = serde_json::to_value(&read).unwrap();
            self.job = serde_json::from_value(job).unwrap();
        }
    }

    /// A pod that runs on a node takes its time to go; any other is gone at once.
    pub fn delete_pod(&mut self, name: &str) {
        let pod = self.pods.get_mut(name).expect("the pod is there");
        if PodRecord::from(&*pod).phase == training_job::plan::observed::Phase::Running {
            pod.metadata.deletion_timestamp = Some(Time(self.now));
        } else {
            self.remove_pod(name);
        }
    }

    /// A pod is gone.
    pub fn remove_pod(&mut self, name: &str) {
        let pod = self.pods.remove(name).expect("the pod is there");
        let record = PodRecord::from(&pod);
        let ours = self.deleted_here.remove(&record.uid);
        if record.phase == training_job::plan::observed::Phase::Succeeded && !ours {
            self.completed.insert(name.to_owned(), record.attempt);
        }
    }

    /// What the controller's caches hold.
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
            completed: self.completed.clone(),
            room_left_at: self.room_left_at,
        }
    }

    /// The job's status.
    pub fn status(&self) -> JobStatus {
        self.job.status().cloned().unwrap_or_default()
    }

    /// The conditions that hold, in order.
    pub fn state(&self) -> Vec<String> {
        let held = |c: &training_job::api::JobCondition| c.status == ConditionStatus::True;
        self.status()
            .conditions
            .iter()
            .filter(|c| held(c))
            .map(|c| c.type_.clone())
            .collect()
    }

    /// All conditions, in order, as `Type=Status(Reason)`.
    pub fn conditions(&self) -> Vec<String> {
        let all = self.status().conditions;
        all.iter()
            .map(|c| format!("{}={:?}({})", c.type_, c.status, c.reason))
            .collect()
    }

    /// `active/succeeded/failed` of a role.
    pub fn counts(&self, role: &str) -> (i32, i32, i32) {
        let role = self
            .status()
            .replica_statuses
            .get(role)
            .cloned()
            .unwrap_or_default();
        (role.active, role.succeeded, role.failed)
    }

    /// The condition of this type, if it holds.
    pub fn held(&self, type_: &str) -> Option<JobCondition> {
        let conditions = self.status().conditions.into_iter();
        conditions
            .rev()
            .find(|c| c.type_ == type_ && c.status == ConditionStatus::True)
    }

    /// Its message; empty if it does not hold.
    pub fn told(&self, type_: &str) -> String {
        self.held(type_).map(|c| c.message).unwrap_or_default()
    }

    /// Names of the pods without the job's, those that are being deleted in brackets.
    pub fn pod_names(&self) -> Vec<String> {
        let short = |pod: &Pod| name(pod).trim_start_matches("job-").to_owned();
        let all = self.pods.values();
        all.map(|p| {
            if is_leaving(p) {
                format!("({})", short(p))
            } else {
                short(p)
            }
        })
        .collect()
    }

    /// Names of the services without the job's.
    pub fn service_names(&self) -> Vec<String> {
        self.services
            .keys()
            .map(|n| n.trim_start_matches("job-").to_owned())
            .collect()
    }

    /// The attempt that each pod was made for, by replica.
    pub fn attempts(&self) -> BTreeMap<String, u32> {
        let short = |name: &str| name.trim_start_matches("job-").to_owned();
        self.pods
            .iter()
            .map(|(n, p)| (short(n), PodRecord::from(p).attempt))
            .collect()
    }

    /// The reasons of all events, in order.
    pub fn event_reasons(&self) -> Vec<&str> {
        self.events.iter().map(|e| e.reason.as_str()).collect()
    }

    fn uid(&mut self) -> String {
        self.last_uid += 1;
        format!("uid-{}", self.last_uid)
    }
}

/// What a merge patch does.
fn merge(value: &mut Value, patch: &Value) {
    match (value, patch) {
        (Value::Object(members), Value::Object(patch)) => {
            for (name, change) in patch {
                if change.is_null() {
                    members.remove(name);
                } else {
                    merge(members.entry(name.clone()).or_insert(json!({})), change);
                }
            }
        }
        (value, patch) => *value = patch.clone(),
    }
}

fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap()
}

fn is_leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// A job's YAML. `roles` are such as `Master=1 Worker=2:OnFailure`, `fields` lines of the spec.
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
