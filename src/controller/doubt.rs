//! What is held of a job may not be what the server has: when, and how it is found out.

use kube::api::ListParams;
use kube::{Api, Resource};

use crate::job::TrainingJob;
use kube_follow::CallError;
use kube_follow::Version;

use super::lists::ObjectName;
use super::shared::Shared;
use super::stored::Stored;

/// Why it is not known what the server has of a job. Nothing is done for it until it is: the job may have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It is not at this version, says the server. The watch may be dead, and the answer to an own write lost.
    NotAt(Option<String>),
    /// What became of an own write was not told, or the answer was overtaken by a list.
    Untold,
}

impl Doubt {
    /// What a failed write of a job leaves in doubt.
    pub(super) fn of<J: TrainingJob>(error: &CallError, job: &Stored<J>) -> Option<Self> {
        match error.code() {
            Some(404 | 409) => Some(Self::NotAt(job.meta().resource_version.clone())),
            Some(400..500) => None,
            _ => Some(Self::Untold),
        }
    }

    /// Whether the doubt stands while this is held.
    pub(super) fn stands<J: TrainingJob>(&self, held: &Stored<J>) -> bool {
        match self {
            Self::NotAt(version) => *version == held.meta().resource_version,
            Self::Untold => true,
        }
    }
}

/// What the server has of a job, and at which version that was so.
pub(super) async fn ask<J: TrainingJob>(
    shared: &Shared,
    (namespace, name): &ObjectName,
) -> Result<(Option<Stored<J>>, Version), CallError> {
    let api = Api::<Stored<J>>::namespaced(shared.client.clone(), namespace);
    // A list tells its version, and takes no permission that the operator has not.
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let list = shared.timeout.call(api.list(&params)).await?;
    let version = list.metadata.resource_version.as_deref().map(Version::parse);
    Ok((list.items.into_iter().next(), version.unwrap_or_default()))
}
