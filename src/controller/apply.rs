//! Carries out the part of a plan that makes and deletes objects.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::stream;
use futures::{FutureExt, StreamExt};
use kube::api::{DeleteParams, PostParams, Preconditions, Request};
use kube::{Api, Client, Resource};
use tokio::sync::Semaphore;

use crate::api::labels;
use crate::plan::observed::{PodRecord, ServiceRecord};
use crate::plan::{ChildKind, Deletion, Plan};
use kube_follow::{CallError, CallTimeout};

use super::children::{Children, OwnerRef, Tracked, controller};
use super::seen::Seen;

/// Calls of one job under way at once; further ones wait, so that others get their turn at the
/// limit for all jobs.
const PER_JOB: usize = 32;

/// What applying a plan needs.
pub(super) struct Applier<'a> {
    pub(super) client: &'a Client,
    pub(super) timeout: CallTimeout,
    pub(super) children: &'a Mutex<Children>,
    /// Calls of all jobs under way at once.
    pub(super) limit: &'a Semaphore,
    pub(super) namespace: &'a str,
    /// The job's UID, its kind and name.
    pub(super) owner: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    /// The value of the label by which its children are watched.
    pub(super) controller: &'a str,
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
    /// Not tried, since a call of the same kind before it failed.
    #[error("not tried after an earlier failure")]
    NotTried,
}

impl ApplyError {
    /// How long the server asks to be left alone, if it does.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Call(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Whether it is this object that is refused, and will be until somebody does something about it.
    pub(super) fn is_of_object(&self) -> bool {
        match self {
            Self::NameTaken => true,
            Self::Call(error) => matches!(error.code(), Some(400 | 409 | 413 | 422)),
            Self::StillThere | Self::NotTried => false,
        }
    }

    /// Whether calls for other objects would fail as well: a quota that one exceeds, the next exceeds
    /// too, and a server that does not answer should not be asked a thousand times.
    fn concerns_all(&self) -> bool {
        matches!(self, Self::Call(_)) && !self.is_of_object()
    }
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
    ) -> Vec<Result<String, ApplyFailure>> {
        let api = Api::<Seen<C>>::namespaced(self.client.clone(), self.namespace);
        let failed = AtomicBool::new(false);
        let (api, failed) = (&api, &failed);
        let calls: Vec<_> = objects
            .iter()
            .map(|object| {
                let call = async move {
                    let name = object.meta().name.clone().unwrap_or_default();
                    let call = self.create_one::<C>(api, kind, object, &name);
                    match unless_failed(failed, call).await {
                        Ok(()) => Ok(name),
                        Err(problem) => Err(ApplyFailure {
                            kind,
                            creating: true,
                            name,
                            problem,
                        }),
                    }
                };
                // A call is large, and moved several times.
                call.boxed()
            })
            .collect();
        stream::iter(calls).buffered(PER_JOB).collect().await
    }

    async fn create_one<C: Tracked>(
        &self,
        api: &Api<Seen<C>>,
        kind: ChildKind,
        object: &C::Object,
        name: &str,
    ) -> Result<(), ApplyError> {
        let holder = self.children().owner::<C>(self.namespace, name);
        if holder.is_some_and(|holder| self.is_predecessor(&holder)) {
            // The watch tells when it is gone.
            return Err(ApplyError::StillThere);
        }
        let _permit = self.limit.acquire().await;
        let sent = self.children().sent::<C>();
        match self.timeout.call(self.post(api, object)).await {
            Ok(created) => {
                self.children().answered::<C>(&created, sent);
                self.log("created", kind, name);
                Ok(())
            }
            Err(error) if error.already_exists() => self.take_over::<C>(api, name).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Like [`Api::create`], but of what comes back no more is read than of what a watch tells.
    async fn post<C: Tracked>(&self, api: &Api<Seen<C>>, object: &C::Object) -> kube::Result<Seen<C>> {
        // Most pods fit in.
        let mut body = Vec::with_capacity(2_048);
        serde_json::to_writer(&mut body, object).map_err(kube::Error::SerdeError)?;
        let request = Request::new(api.resource_url())
            .create(&PostParams::default(), body)
            .map_err(kube::Error::BuildRequest)?;
        self.client.request(request).await
    }

    /// Finds out whose the object is that has the name already: ours, by an earlier call whose answer
    /// was lost; a predecessor's; or somebody else's.
    async fn take_over<C: Tracked>(&self, api: &Api<Seen<C>>, name: &str) -> Result<(), ApplyError> {
        let sent = self.children().sent::<C>();
        let there = match self.timeout.call(api.get(name)).await {
            Ok(there) => there,
            // It has gone since.
            Err(error) if error.code() == Some(404) => return Err(ApplyError::StillThere),
            Err(error) => return Err(error.into()),
        };
        let meta = there.meta();
        let owner = controller(meta);
        let deleting = meta.deletion_timestamp.is_some();
        if owner.as_ref().is_none_or(|owner| owner.uid != self.owner) {
            let predecessor = owner.is_some_and(|owner| self.is_predecessor(&owner));
            return Err(if deleting || predecessor {
                ApplyError::StillThere
            } else {
                ApplyError::NameTaken
            });
        }
        let label = meta.labels.as_ref().and_then(|l| l.get(labels::OPERATOR_NAME));
        if label.map(String::as_str) != Some(self.controller) {
            // Its label was edited, so that no watch tells of it any more.
            if !deleting {
                // If it has changed since, the label may be right again.
                let version = meta.resource_version.as_deref();
                self.call_delete::<C>(api, name, meta.uid.as_deref(), version)
                    .await?;
            }
            return Err(ApplyError::StillThere);
        }
        self.children().answered::<C>(&there, sent);
        if deleting {
            Err(ApplyError::StillThere)
        } else {
            Ok(())
        }
    }

    /// Whether an object's owner is an earlier job of the same name: the garbage collector takes what
    /// it left.
    fn is_predecessor(&self, owner: &OwnerRef) -> bool {
        owner.uid != self.owner && owner.kind == self.kind && owner.name == self.name
    }

    async fn delete<C: Tracked>(
        &self,
        kind: ChildKind,
        wanted: &[&Deletion],
    ) -> Vec<Result<String, ApplyFailure>> {
        let api = Api::<Seen<C>>::namespaced(self.client.clone(), self.namespace);
        let failed = AtomicBool::new(false);
        let (api, failed) = (&api, &failed);
        let calls: Vec<_> = wanted
            .iter()
            .map(|deletion| async move {
                let Deletion { name, uid, .. } = deletion;
                match unless_failed(failed, self.delete_one::<C>(api, kind, name, uid)).await {
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

    async fn delete_one<C: Tracked>(
        &self,
        api: &Api<Seen<C>>,
        kind: ChildKind,
        name: &str,
        uid: &str,
    ) -> Result<(), ApplyError> {
        let _permit = self.limit.acquire().await;
        let sent = self.children().sent::<C>();
        // The watch may tell of the deletion before the server answers.
        self.children()
            .deleting_here::<C>(self.namespace, self.owner, name, uid);
        let deleted = self.call_delete::<C>(api, name, Some(uid), None).await;
        match deleted {
            Ok(Deleted::Now) => self.log("deleted", kind, name),
            Ok(Deleted::Before) => self.children().absent::<C>(self.namespace, name, uid, sent),
            Err(_) => self
                .children()
                .not_deleting::<C>(self.namespace, self.owner, name, uid),
        }
        deleted.map(|_| ()).map_err(ApplyError::from)
    }

    async fn call_delete<C: Tracked>(
        &self,
        api: &Api<Seen<C>>,
        name: &str,
        uid: Option<&str>,
        version: Option<&str>,
    ) -> Result<Deleted, CallError> {
        let error = match self.timeout.call(api.delete(name, &only(uid, version))).await {
            Ok(answer) => match answer.right() {
                // A refusal is one whatever code it comes with.
                Some(status) if status.is_failure() => {
                    return Err(kube::Error::Api(Box::new(status)).into());
                }
                _ => return Ok(Deleted::Now),
            },
            Err(error) if error.is_not_found(name) => return Ok(Deleted::Before),
            Err(error) if error.code() == Some(409) => error,
            Err(error) => return Err(error),
        };
        // Another object may have the name now. But servers have other conflicts, and one that is taken
        // for this would leave the object there for ever.
        match self.timeout.call(api.get(name)).await {
            Ok(there) if there.meta().uid.as_deref() == uid => Err(error),
            Ok(_) => Ok(Deleted::Before),
            Err(error) if error.is_not_found(name) => Ok(Deleted::Before),
            Err(error) => Err(error),
        }
    }

    /// One line for each decision that was carried out.
    fn log(&self, done: &str, kind: ChildKind, name: &str) {
        let replica = name
            .strip_prefix(self.name)
            .and_then(|rest| rest.strip_prefix('-'));
        let (role, index) = replica.and_then(|r| r.rsplit_once('-')).unzip();
        tracing::info!(
            kind = self.kind,
            namespace = self.namespace,
            job = self.name,
            role,
            index,
            "{done} {} {name}",
            noun(kind),
        );
    }

    fn children(&self) -> std::sync::MutexGuard<'_, Children> {
        // No code that holds the lock can leave the cache half-changed.
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deletes only the object with this UID, and only in this version if one is named; what it owns goes later.
pub(super) fn only(uid: Option<&str>, version: Option<&str>) -> DeleteParams {
    let preconditions = Preconditions {
        uid: uid.map(str::to_owned),
        resource_version: version.map(str::to_owned),
    };
    DeleteParams {
        preconditions: Some(preconditions),
        ..DeleteParams::background()
    }
}

/// What became of an object that was to be deleted.
enum Deleted {
    /// It is gone, or going.
    Now,
    /// It was gone already.
    Before,
}

/// Makes a call, unless one before it failed in a way that concerns all.
async fn unless_failed<T>(
    failed: &AtomicBool,
    call: impl Future<Output = Result<T, ApplyError>>,
) -> Result<T, ApplyError> {
    if failed.load(Ordering::Relaxed) {
        return Err(ApplyError::NotTried);
    }
    let result = call.await;
    if result.as_ref().is_err_and(ApplyError::concerns_all) {
        failed.store(true, Ordering::Relaxed);
    }
    result
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_left_alone_as_long_as_it_asks_for() {
        let status = serde_json::json!({
            "status": "Failure", "message": "", "reason": "", "code": 429, "details": {"retryAfterSeconds": 7},
        });
        let error = kube::Error::Api(serde_json::from_value(status).unwrap());
        let busy = ApplyError::from(CallError::from(error));
        assert_eq!(busy.retry_after(), Some(Duration::from_secs(7)));
        assert_eq!(ApplyError::NotTried.retry_after(), None);
    }
}
