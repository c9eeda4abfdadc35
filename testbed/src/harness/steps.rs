//! The calls of a reconcile that carry out a plan.

use k8s_openapi::api::core::v1::Service;
use training_job::JobObject;
use training_job::plan::{Deletion, ObjectPatch, Plan, PlannedPod};

/// One call of a reconcile.
pub enum Step {
    /// Create a service.
    CreateService(Box<Service>),
    /// Create a pod.
    CreatePod(PlannedPod),
    /// Create another object.
    CreateObject(Box<JobObject>),
    /// Patch an object.
    PatchObject(Box<ObjectPatch>),
    /// Delete a child.
    Delete(Deletion),
}

/// Returns the calls of a plan in the controller's order, without the status write.
pub fn steps(plan: &Plan) -> Vec<Step> {
    let services = plan
        .create_services
        .iter()
        .cloned()
        .map(|s| Step::CreateService(Box::new(s)));
    let pods = plan.create_pods.iter().cloned().map(Step::CreatePod);
    let objects = plan.create_objects.iter().cloned();
    let patches = plan.patch_objects.iter().cloned();
    objects
        .map(|o| Step::CreateObject(Box::new(o)))
        .chain(patches.map(|p| Step::PatchObject(Box::new(p))))
        .chain(services)
        .chain(pods)
        .chain(plan.delete.iter().cloned().map(Step::Delete))
        .collect()
}
