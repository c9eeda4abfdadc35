//! Carries out the part of a plan that makes and deletes objects.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use futures::StreamExt;
use futures::stream;
use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client, Resource};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::Semaphore;

use crate::observed::{PodRecord, ServiceRecord};
use crate::plan::{ChildKind, Deletion, Plan};

use super::children::{Children, Tracked, controller};
use super::retry::{CallError, call};

/// Calls of one job under way at once; further ones wait, so that others get their turn at the
/// limit for all jobs.
const PER_JOB: usize = 32;

/// What applying a plan needs.
pub(super) struct Applier<'a> {
    pub(super) client: &'a Client,
    pub(super) children: &'a Mutex<Children>,
    /// Calls of all jobs under way at once.
    pub(super) limit: &'a Semaphore,
    pub(super) namespace: &'a str,
    pub(super) owner: &'a str,
}

/// What was done, by name, and what could not be.
#[derive(Debug, Default)]
pub(super) struct Applied {
    pub(super) created_pods: Vec<String>,
    pub(super) created_services: Vec<String>,
    pub(super) deleted_pods: Vec<String>,
    pub(super) deleted_services: Vec<String>,
    pub(super) failures: Vec<ApplyFailure>,
}

/// An object that could not be created or deleted.
#[derive(Debug)]
pub(super) struct ApplyFailure {
    pub(super) kind: ChildKind,
    pub(super) creating: bool,
    pub(super) name: String,
    pub(super) problem: ApplyError,
}

/// Why.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    /// The name belongs to somebody else's object.
    #[error("the name is taken by an object that this job does not control")]
    NameTaken,
    /// The predecessor of that name has not gone yet.
    #[error("an object of that name is still being deleted")]
    StillThere,
    /// The call failed.
    #[error("{}", .0.message())]
    Call(#[from] CallError),
    /// Not tried, since the server refused one of the same kind before it.
    #[error("not tried after an earlier refusal")]
    NotTried,
}

impl Applier<'_> {
    /// Creates services, then pods (a replica's host name is there before the replica), and deletes.
    /// One object's failure does not stop the others.
    pub(super) async fn apply(&self, plan: &Plan) -> Applied {
        let mut applied = Applied::default();
        let services = self
            .create::<ServiceRecord>(ChildKind::Service, &plan.create_services)
            .await;
        sort(services, &mut applied.created_services, &mut applied.failures);
        let pods = self.create::<PodRecord>(ChildKind::Pod, &plan.create_pods).await;
        sort(pods, &mut applied.created_pods, &mut applied.failures);
        for kind in [ChildKind::Pod, ChildKind::Service] {
            let wanted: Vec<&Deletion> = plan.delete.iter().filter(|d| d.kind == kind).collect();
            match kind {
                ChildKind::Pod => {
                    let pods = self.delete::<PodRecord>(kind, &wanted).await;
                    sort(pods, &mut applied.deleted_pods, &mut applied.failures);
                }
                ChildKind::Service => {
                    let services = self.delete::<ServiceRecord>(kind, &wanted).await;
                    sort(services, &mut applied.deleted_services, &mut applied.failures);
                }
            }
        }
        applied
    }

    async fn create<C: Tracked>(
        &self,
        kind: ChildKind,
        objects: &[C::Object],
    ) -> Vec<Result<String, ApplyFailure>>
    where
        C::Object: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned
            + Send
            + Sync,
    {
        let api = Api::<C::Object>::namespaced(self.client.clone(), self.namespace);
        let refused = std::sync::atomic::AtomicBool::new(false);
        let (api, refused) = (&api, &refused);
        let calls: Vec<_> = objects
            .iter()
            .map(|object| async move {
                let name = object.meta().name.clone().unwrap_or_default();
                // A quota that one exceeds, the next exceeds, too.
                let result = if refused.load(std::sync::atomic::Ordering::Relaxed) {
                    Err(ApplyError::NotTried)
                } else {
                    self.create_one::<C>(api, object, &name).await
                };
                if let Err(ApplyError::Call(error)) = &result
                    && matches!(error.code(), Some(403 | 429))
                {
                    refused.store(true, std::sync::atomic::Ordering::Relaxed);
                }
                match result {
                    Ok(()) => Ok(name),
                    Err(problem) => Err(ApplyFailure {
                        kind,
                        creating: true,
                        name,
                        problem,
                    }),
                }
            })
            .collect();
        stream::iter(calls).buffered(PER_JOB).collect().await
    }

    async fn create_one<C: Tracked>(
        &self,
        api: &Api<C::Object>,
        object: &C::Object,
        name: &str,
    ) -> Result<(), ApplyError>
    where
        C::Object: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let _permit = self.limit.acquire().await;
        let created = match call(api.create(&PostParams::default(), object)).await {
            Ok(created) => created,
            Err(error) if error.code() == Some(409) => {
                // An earlier create whose answer was lost, a predecessor, or somebody else's.
                let there = call(api.get(name)).await?;
                if controller(there.meta()).is_none_or(|owner| owner.uid != self.owner) {
                    return Err(if there.meta().deletion_timestamp.is_some() {
                        ApplyError::StillThere
                    } else {
                        ApplyError::NameTaken
                    });
                }
                there
            }
            Err(error) => return Err(error.into()),
        };
        self.children().answered::<C>(&created);
        Ok(())
    }

    async fn delete<C: Tracked + Clone>(
        &self,
        kind: ChildKind,
        wanted: &[&Deletion],
    ) -> Vec<Result<String, ApplyFailure>>
    where
        C::Object:
            Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let api = Api::<C::Object>::namespaced(self.client.clone(), self.namespace);
        let api = &api;
        let calls: Vec<_> = wanted
            .iter()
            .map(|deletion| async move {
                let Deletion { name, uid, .. } = deletion;
                match self.delete_one::<C>(api, name, uid).await {
                    Ok(()) => Ok(name.clone()),
                    Err(problem) => Err(ApplyFailure {
                        kind,
                        creating: false,
                        name: name.clone(),
                        problem,
                    }),
                }
            })
            .collect();
        stream::iter(calls).buffered(PER_JOB).collect().await
    }

    async fn delete_one<C: Tracked + Clone>(
        &self,
        api: &Api<C::Object>,
        name: &str,
        uid: &str,
    ) -> Result<(), ApplyError>
    where
        C::Object: Clone + Debug + DeserializeOwned,
    {
        let _permit = self.limit.acquire().await;
        // The watch may tell of the deletion before the server answers.
        self.children().deleting_here::<C>(self.owner, name, uid);
        let preconditions = Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::background()
        };
        match call(api.delete(name, &params)).await {
            Ok(_) => Ok(()),
            // Gone, or another object has the name now.
            Err(error) if matches!(error.code(), Some(404 | 409)) => {
                self.children().absent::<C>(self.namespace, name, uid);
                Ok(())
            }
            Err(error) => {
                self.children().not_deleting::<C>(self.owner, name, uid);
                Err(error.into())
            }
        }
    }

    fn children(&self) -> std::sync::MutexGuard<'_, Children> {
        // No code that holds the lock can leave the cache half-changed.
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sort(
    results: Vec<Result<String, ApplyFailure>>,
    done: &mut Vec<String>,
    failures: &mut Vec<ApplyFailure>,
) {
    for result in results {
        match result {
            Ok(name) => done.push(name),
            Err(failure) => failures.push(failure),
        }
    }
}

/// The word for an object of this kind in events.
pub(super) fn noun(kind: ChildKind) -> &'static str {
    match kind {
        ChildKind::Pod => "pod",
        ChildKind::Service => "service",
    }
}
