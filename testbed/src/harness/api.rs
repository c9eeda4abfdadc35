//! Carries out the steps of a reconcile, as the API server does.

use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use training_job::api::JobStatus;
use training_job::plan::observed::{ObjectRecord, Phase, PodRecord};
use training_job::plan::{ChildKind, Deletion, ObjectPatch, Plan};
use training_job::validate::validate_any;
use training_job::{JobObject, TrainingJob};

use super::{PlanHarness, Step, name};

/// The termination grace period of running pods.
const GRACE_SECONDS: i64 = 30;

impl<J: TrainingJob> PlanHarness<J> {
    /// Applies a step to the cluster.
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
                let mut job =
                    validate_any(&self.kind, &self.job, &self.settings).expect("only a valid job has pods");
                job.read_contents(&self.observed());
                let mut pod = pod.render(&job).expect("a replica's pod");
                pod.metadata.uid = Some(self.uid());
                pod.metadata.creation_timestamp = Some(Time(self.now));
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
                force,
                ..
            }) => {
                self.deleted_here.insert(uid.clone());
                match force {
                    true => self.remove_pod(name),
                    false => self.delete_pod(name),
                }
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
        if ChildKind::from(object.kind) == ChildKind::Pod {
            let labels = object.metadata.labels.clone().unwrap_or_default();
            let pod = self.pods.get_mut(&name).unwrap();
            pod.metadata.labels.get_or_insert_default().extend(labels);
            return;
        }
        let records = self.objects.get_mut(&object.kind);
        let Some(record) = records.and_then(|records| records.get_mut(&name)) else {
            self.put(object, patch.uid.clone());
            return;
        };
        let record = Arc::make_mut(record);
        json_patch::merge(Arc::make_mut(&mut record.content), &object.content);
        let labels = object.metadata.labels.clone().unwrap_or_default();
        record.labels.extend(labels);
        let annotations = object.metadata.annotations.clone().unwrap_or_default();
        record.annotations.extend(annotations);
    }

    /// Stores the plan's status, as the API server does.
    pub fn store(&mut self, plan: &Plan) {
        self.job_deleted |= plan.delete_job;
        if let Some(change) = &plan.status {
            let wire = serde_json::to_string(&change.status).unwrap();
            let read: JobStatus = serde_json::from_str(&wire).unwrap();
            assert_eq!(read, change.status, "the status survives the wire");
            let mut job = serde_json::to_value(&self.job).unwrap();
            job["status"] = self.job.encode_status(&read, None).unwrap();
            self.job = serde_json::from_value(job).unwrap();
        }
    }

    /// Deletes a pod. A running pod takes its grace period to terminate, and any other pod is removed at once.
    pub fn delete_pod(&mut self, name: &str) {
        let pod = self.pods.get_mut(name).expect("the pod is there");
        if PodRecord::from(&*pod).phase == Phase::Running {
            let grace = SignedDuration::from_secs(GRACE_SECONDS);
            pod.metadata.deletion_timestamp = Some(Time(self.now + grace));
            pod.metadata.deletion_grace_period_seconds = Some(GRACE_SECONDS);
        } else {
            self.remove_pod(name);
        }
    }

    /// Removes a pod.
    pub fn remove_pod(&mut self, name: &str) {
        let pod = self.pods.remove(name).expect("the pod is there");
        let record = PodRecord::from(&pod);
        let ours = self.deleted_here.remove(&record.uid);
        if !ours && record.has_own_end() {
            self.removed.insert(name.to_owned(), Arc::new(record));
        }
    }

    fn uid(&mut self) -> String {
        self.last_uid += 1;
        format!("uid-{}", self.last_uid)
    }
}
