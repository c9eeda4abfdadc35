//! The calls of users, which have no faults.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::ApiResource;
use serde_json::{Value, json};

use super::Simulation;

impl Simulation {
    /// Creates a job.
    ///
    /// # Panics
    /// Panics if the cluster rejects the call.
    pub async fn create(&self, job: Value) {
        let job: DynamicObject = serde_json::from_value(job).unwrap();
        self.jobs().create(&PostParams::default(), &job).await.unwrap();
    }

    /// Merges `patch` into a job.
    ///
    /// # Panics
    /// Panics if the cluster rejects the call.
    pub async fn edit(&self, name: &str, patch: Value) {
        self.jobs()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// Merges a patch into the status of a job.
    ///
    /// # Panics
    /// Panics if the cluster rejects the call.
    pub async fn edit_status(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        let edited = self
            .jobs()
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        edited.unwrap();
    }

    /// Deletes a job.
    ///
    /// # Panics
    /// Panics if the cluster rejects the call.
    pub async fn delete(&self, name: &str) {
        self.jobs()
            .delete(name, &DeleteParams::background())
            .await
            .unwrap();
    }

    /// Returns the users' API of jobs.
    pub fn jobs(&self) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(self.job_types[0].group(), "v1", self.job_types[0].kind()),
            self.job_types[0].plural(),
        );
        Api::default_namespaced_with(self.user.clone(), &kind)
    }

    /// Returns the users' API of pods.
    pub fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.user.clone())
    }

    /// Deletes a pod.
    ///
    /// # Panics
    /// Panics if the cluster rejects the call.
    pub async fn delete_pod(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }
}
