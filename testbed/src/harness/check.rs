//! Assertions that hold for every plan of a [`PlanHarness`].

use std::collections::BTreeSet;

use training_job::TrainingJob;
use training_job::api::labels;
use training_job::plan::{ChildKind, Plan};
use training_job::validate::validate_any;

use super::{PlanHarness, is_leaving};

impl<J: TrainingJob> PlanHarness<J> {
    /// Asserts the properties of every plan.
    pub fn check_plan(&self, plan: &Plan) {
        let status = self.status();
        for deletion in &plan.delete {
            let (uid, leaving) = match deletion.kind {
                ChildKind::Pod => {
                    let pod = &self.pods[&deletion.name];
                    (pod.metadata.uid.clone(), is_leaving(pod))
                }
                ChildKind::Service => (self.services[&deletion.name].metadata.uid.clone(), false),
                ChildKind::Object(kind) => (Some(self.objects[&kind][&deletion.name].uid.clone()), false),
            };
            assert_eq!(
                uid.as_deref(),
                Some(&*deletion.uid),
                "a deletion means the object that was seen"
            );
            assert!(
                !leaving || deletion.force,
                "{} is being deleted already",
                deletion.name
            );
        }
        for object in &plan.create_objects {
            let mut definitions = J::FRAMEWORK.objects.iter().filter(|d| d.kind == object.kind);
            let is_new = |kind| plan.create_objects.iter().any(|other| other.kind == kind);
            assert!(
                !definitions.any(|d| d.refers_to.iter().any(|kind| is_new(*kind))),
                "{object:?} is made before what it refers to is known to be the job's own"
            );
        }
        let wanted = self.wanted();
        for pod in &plan.create_pods {
            assert!(wanted.contains(&pod.name), "{} is no replica's", pod.name);
            assert!(!self.pods.contains_key(&pod.name), "{} has a pod", pod.name);
        }
        for service in &plan.create_services {
            let name = service.metadata.name.clone().unwrap();
            assert!(
                wanted.contains(&name) && !self.services.contains_key(&name),
                "{name}"
            );
        }
        let creates = !plan.create_pods.is_empty() || !plan.create_services.is_empty();
        if status.is_finished() && status.start_time.is_some() {
            assert!(!creates, "a finished job creates nothing");
            let after = plan.status.as_ref().map_or(&status, |c| &c.status);
            assert_eq!(after.conditions, status.conditions, "a verdict is final");
        }
        if !plan.events.is_empty()
            && !plan.refused
            && validate_any(&self.kind, &self.job, &self.settings).is_ok()
        {
            let change = plan
                .status
                .as_ref()
                .expect("an event comes with a change of status");
            assert!(change.urgent, "a status with an event is written without delay");
        }
        if self.job.run_policy().suspend == Some(true) {
            assert!(!creates, "a suspended job creates nothing");
        }
        if labels::queue(self.job.meta()).is_some() && !plan.create_pods.is_empty() {
            let mut roles = status.replica_statuses.values();
            assert!(
                roles.any(|role| role.active > 0),
                "a queue is told before pods are made"
            );
        }
        let Some(change) = &plan.status else { return };
        assert_ne!(change.status, status, "a status is written only if it differs");
        assert!(
            change.status.restart_count >= status.restart_count,
            "the counter never falls"
        );
        let restarting = format!("{}Restarting", J::kind(&()));
        let ends = change.status.is_finished() && !status.is_finished();
        let restarts = change.status.recovery.job > status.recovery.job
            && plan.events.iter().any(|e| e.reason == restarting);
        if ends || restarts {
            assert!(
                !creates && plan.delete.is_empty(),
                "the status is stored before anything else is done"
            );
        }
    }

    /// Returns the names of all replicas' pods, and of the service that they may share.
    fn wanted(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::from(["job-hosts".to_owned()]);
        if let Ok(valid) = validate_any(&self.kind, &self.job, &self.settings) {
            names.extend(valid.topology.all().map(|replica| replica.pod_name()));
        }
        names
    }
}
