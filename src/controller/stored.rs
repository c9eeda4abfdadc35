//! Jobs as the API server holds them, readable or not.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::api::JobStatus;
use crate::job::TrainingJob;

/// A job, or what can be said of an object of its kind that does not decode. One such object must
/// not hide the others in a list.
#[derive(Clone, Debug)]
pub(super) enum Stored<J> {
    /// A job.
    Job(Box<J>),
    /// An object that is not a job of this kind, whatever it says.
    Unreadable {
        /// Its metadata.
        meta: Box<ObjectMeta>,
        /// Its status, as far as it decodes.
        status: Box<JobStatus>,
        /// Why it is not a job.
        error: String,
    },
}

impl<'de, J: TrainingJob> Deserialize<'de> for Stored<J> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match J::deserialize(&value) {
            Ok(job) => Ok(Self::Job(Box::new(job))),
            Err(error) => {
                let part = |name| value.get(name).cloned().unwrap_or_default();
                Ok(Self::Unreadable {
                    meta: serde_json::from_value(part("metadata")).map_err(D::Error::custom)?,
                    status: serde_json::from_value(part("status")).unwrap_or_default(),
                    error: error.to_string(),
                })
            }
        }
    }
}

impl<J: TrainingJob> Resource for Stored<J> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        J::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        J::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        J::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        J::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Job(job) => job.meta(),
            Self::Unreadable { meta, .. } => meta,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Job(job) => job.meta_mut(),
            Self::Unreadable { meta, .. } => meta,
        }
    }
}
