//! Deletes a job at the end of its time to live. `plan/end.rs` decides when.

use kube::Api;
use kube::api::DynamicObject;

use training_job::plan::{PlannedEvent, reasons};

use super::apply::delete_params_with_uid;
use super::calls::Urgency;
use super::job_state::Uncertain;
use super::reconciler::Reconcile;
use super::requeue::Next;

/// Deletes the job. The garbage collector then deletes its children.
pub(super) async fn delete_job(reconcile: Reconcile<'_>) -> Next {
    let (context, job) = (reconcile.context, reconcile.job);
    let meta = job.meta();
    let (namespace, name) = (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    );
    let api = Api::<DynamicObject>::namespaced_with(context.client.clone(), &namespace, &job.kind().resource);
    let uid = meta.uid.as_deref().unwrap_or_default();
    let params = delete_params_with_uid(uid);
    let delete = api.delete(&name, &params);
    match context.calls.call(Urgency::Children, uid, 0, delete).await {
        Ok(_) => {
            let event = PlannedEvent {
                warning: false,
                reason: reasons::SUCCESSFUL_DELETE_JOB.to_owned(),
                message: format!("Deleted job: {name}"),
            };
            context.recorder.record(job, &event, context.clock.now(), true);
            Next::Done(None)
        }
        Err(error) => {
            reconcile.state.uncertain = Uncertain::after_error(&error, job);
            Next::Failed(error.into(), None)
        }
    }
}
