//! A plan as the calls of a reconcile, each by itself.

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
    /// Change one.
    PatchObject(Box<ObjectPatch>),
    /// Delete a child.
    Delete(Deletion),
}

/// The calls of a plan but for the status, in the controller's order.
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
