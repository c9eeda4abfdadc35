//! A job whose Rust type is erased, so that the library is compiled once for all kinds.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::api::core::v1::{EnvVar, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::{
    FailureTolerance, FieldErrors, Framework, JobObject, Milestone, Mount, Outcome, Replica, ReplicaFailure,
    ReplicaNames, Replicas, Restart, Role, RoleSpecs, Scope, Topology, TrainingJob, hook,
};
use crate::api::{JobStatus, RunPolicy};

/// Declares [`AnyJob`] with a method for each hook, and implements it for all kinds. The name of a hook is recorded while it
/// runs, so that its panic can be reported.
macro_rules! any_job {
    ($(fn $hook:ident(&self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {
        /// A job of any kind: [`TrainingJob`] for use as a trait object. Every kind implements it by a blanket implementation.
        ///
        /// The methods that are not described here call the hook of the same name.
        #[expect(missing_docs, reason = "TrainingJob documents the hooks")]
        pub trait AnyJob: Any + Debug + Send + Sync {
            /// Returns the name of the kind, such as `MXJob`.
            fn kind(&self) -> Cow<'static, str>;
            /// Returns the API version for owner references, such as `example.com/v1`.
            fn api_version(&self) -> Cow<'static, str>;
            /// Returns the metadata of the job.
            fn meta(&self) -> &ObjectMeta;
            /// Returns the metadata of the job, to change them.
            fn meta_mut(&mut self) -> &mut ObjectMeta;
            /// Returns the job as JSON.
            ///
            /// # Errors
            /// The job cannot be encoded. Every decoded job can.
            fn to_json(&self) -> serde_json::Result<Value>;
            $(fn $hook(&self $(, $argument: $type)*) $(-> $result)?;)*
        }

        impl<J: TrainingJob> AnyJob for J {
            fn kind(&self) -> Cow<'static, str> {
                J::kind(&())
            }

            fn api_version(&self) -> Cow<'static, str> {
                match TrainingJob::framework(self).version {
                    Some(version) => format!("{}/{version}", J::group(&())).into(),
                    None => J::api_version(&()),
                }
            }

            fn meta(&self) -> &ObjectMeta {
                kube::Resource::meta(self)
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                kube::Resource::meta_mut(self)
            }

            fn to_json(&self) -> serde_json::Result<Value> {
                serde_json::to_value(self)
            }

            $(fn $hook(&self $(, $argument: $type)*) $(-> $result)? {
                hook(stringify!($hook), || TrainingJob::$hook(self $(, $argument)*))
            })*
        }
    };
}

any_job! {
    fn framework(&self) -> &'static Framework;
    fn replica_specs(&self) -> RoleSpecs<'_>;
    fn run_policy(&self) -> RunPolicy;
    fn run_policy_field(&self, field: &str) -> String;
    fn managed_by(&self) -> Option<&str>;
    fn status(&self) -> Option<&JobStatus>;
    fn encode_status(&self, status: &JobStatus, topology: Option<&Topology<'_>>) -> serde_json::Result<Value>;
    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar>;
    fn validate(&self, topology: &Topology<'_>, errors: &mut FieldErrors);
    fn warn(&self, topology: &Topology<'_>, warnings: &mut FieldErrors);
    fn describe_compatibility(&self, version: &str) -> Option<String>;
    fn describe_success(&self) -> Option<String>;
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome;
    fn restart_scope(&self, topology: &Topology<'_>, role: &Role<'_>) -> Scope;
    fn on_failure(&self, topology: &Topology<'_>, failure: &ReplicaFailure<'_>) -> Option<Restart>;
    fn is_elastic(&self, topology: &Topology<'_>, role: &Role<'_>) -> bool;
    fn retries(&self, role: &Role<'_>) -> Option<u32>;
    fn tolerance(&self, role: &Role<'_>) -> FailureTolerance;
    fn is_retryable(&self, role: &Role<'_>, exit_code: i32, reason: &str) -> bool;
    fn starts_after(&self, topology: &Topology<'_>, role: &Role<'_>) -> &'static [&'static str];
    fn replica_names(&self, role: &Role<'_>) -> ReplicaNames;
    fn labels(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> BTreeMap<String, String>;
    fn first_index(&self, role: &Role<'_>) -> u32;
    fn is_master(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool;
    fn prints_progress(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool;
    fn is_dialed(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool;
    fn mounts(&self, topology: &Topology<'_>, role: &Role<'_>) -> Vec<Mount>;
    fn customize(&self, topology: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec);
    fn framework_container(&self, role: &Role<'_>) -> Option<usize>;
    fn objects(&self, topology: &Topology<'_>, replicas: &Replicas<'_>) -> Vec<JobObject>;
    fn message(&self, milestone: &Milestone<'_>) -> String;
}
