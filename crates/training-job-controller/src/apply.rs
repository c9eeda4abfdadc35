//! Step 4: carries out the creates, patches and deletes of a plan.

use parking_lot::MutexGuard;
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use futures::stream;
use futures::{FutureExt, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, Request};

use kube_follow::CallError;
use serde::Serialize;
use serde_json::{Value, json};
use training_job::api::labels;
use training_job::job::{JobObject, ObjectDefinition, Topology};
use training_job::plan::observed::{ObjectRecord, PodRecord, ServiceRecord};
use training_job::plan::{ChildKind, Deletion, ObjectPatch, Plan};

use super::answers::Answer;
use super::cache::children::{Children, OwnerRef, controller};
use super::cache::list_epoch::ListEpoch;
use super::cache::partial_child::Child;
use super::cache::partial_child::PartialChild;
use super::cache::stored_job::StoredJob;
use super::calls::Urgency;
use super::context::Context;
use super::steps::{Action, Applied, ApplyError, ApplyFailure, CallResult, CreateOutcome};
use super::validate::Validated;

/// Maximum number of concurrent calls of one job, waiting ones included. If one fails in a way that concerns all children,
/// the remaining calls are not made.
const MAX_CALLS_PER_JOB: usize = 32;

/// The media types for the metadata of an object, or the whole object from a server that does not support the first.
const ACCEPT_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Returns an object as it is sent, with its random bytes, which are in no other place. Returns `None` if the operating
/// system has no source of randomness.
fn drawn(object: &JobObject) -> Option<Cow<'_, JobObject>> {
    if object.random_bytes() == 0 {
        return Some(Cow::Borrowed(object));
    }
    let mut bytes = vec![0; object.random_bytes()];
    getrandom::fill(&mut bytes).ok()?;
    Some(Cow::Owned(object.drawn(&bytes)))
}

/// Carries out the creates, patches and deletes of one job.
pub(super) struct Applier<'a> {
    context: &'a Context,
    namespace: String,
    owner: String,
    kind: String,
    name: String,
    /// The replicas of the job; unset if it is invalid.
    topology: Option<&'a Topology<'a>>,
    /// The value of the label that selects the children in watches.
    controller: &'static str,
    /// The kinds of objects that its kind declares.
    objects: &'static [ObjectDefinition],
    /// True if a create was refused: the first create is made alone, because the next ones may be refused as well.
    was_refused: bool,
}

impl<'a> Applier<'a> {
    pub(super) fn new(
        context: &'a Context,
        job: &StoredJob,
        topology: Option<&'a Topology<'a>>,
        was_refused: bool,
    ) -> Self {
        let meta = job.meta();
        Self {
            context,
            namespace: meta.namespace.clone().unwrap_or_default(),
            owner: meta.uid.clone().unwrap_or_default(),
            kind: job.kind().name().to_owned(),
            name: meta.name.clone().unwrap_or_default(),
            topology,
            controller: job.framework().controller,
            objects: job.framework().objects,
            was_refused,
        }
    }

    /// Carries out the plan.
    ///
    /// Objects are created and patched first, because pods read them and need the permissions in them. Services follow, so
    /// that a replica's host name exists before its pod, and then pods. Deletes are made in the opposite order. The failure
    /// of one object does not stop the others of its kind. If a required object cannot be created, no services and pods are
    /// created, because they may need it; if a service cannot be created, no pods are.
    pub(super) async fn apply(&self, plan: &Plan, job: &Validated<'_>) -> Applied {
        let mut applied = Applied::default();
        for objects in plan.create_objects.chunk_by(|a, b| a.kind == b.kind) {
            let kind = ChildKind::from(objects[0].kind);
            let (objects, without_original) = self.copied(kind, objects).await;
            let objects = objects.iter();
            let objects = objects.map(|object| (object.name(), move || drawn(object)));
            let mut made = match kind {
                ChildKind::Pod => self.create::<PodRecord, _>(kind, objects).await,
                ChildKind::Service => self.create::<ServiceRecord, _>(kind, objects).await,
                ChildKind::Object(_) => self.create::<ObjectRecord, _>(kind, objects).await,
            };
            made.extend(without_original);
            applied.add_created(kind, made);
        }
        let is_optional = |failed: &ApplyFailure| {
            let mut objects = self.objects.iter();
            objects.any(|d| ChildKind::from(d.kind) == failed.kind && d.optional)
        };
        let has_all = applied.failures.iter().all(is_optional);
        for patches in plan.patch_objects.chunk_by(|a, b| a.object.kind == b.object.kind) {
            let kind = ChildKind::from(patches[0].object.kind);
            let patched = match kind {
                ChildKind::Pod => self.patch::<PodRecord>(kind, patches).await,
                ChildKind::Service => self.patch::<ServiceRecord>(kind, patches).await,
                ChildKind::Object(_) => self.patch::<ObjectRecord>(kind, patches).await,
            };
            applied.add(Action::Patch, kind, patched);
        }
        if has_all {
            let services = plan.create_services.iter().map(|service| {
                let name = service.metadata.name.as_deref().unwrap_or_default();
                (name, move || Some(service))
            });
            let pods = plan.create_pods.iter();
            let pods = pods.map(|pod| (&*pod.name, move || job.render(pod)));
            let services = self
                .create::<ServiceRecord, _>(ChildKind::Service, services)
                .await;
            let has_services = services.iter().all(Result::is_ok);
            applied.add_created(ChildKind::Service, services);
            // Pods that cannot find each other would only occupy their devices.
            if has_services {
                let pods = self.create::<PodRecord, _>(ChildKind::Pod, pods).await;
                applied.add_created(ChildKind::Pod, pods);
            }
        }
        let is_taken = |(kind, name): &(ChildKind, String)| {
            let mut failures = applied.failures.iter();
            failures
                .any(|f| f.kind == *kind && f.name == *name && matches!(f.problem, ApplyError::NameTaken(_)))
        };
        let dangling = plan.dangling.iter().filter(|d| d.referents.iter().any(is_taken));
        let delete: Vec<&Deletion> = plan.delete.iter().chain(dangling.map(|d| &d.deletion)).collect();
        let kinds: BTreeSet<ChildKind> = delete.iter().map(|deletion| deletion.kind).collect();
        for kind in kinds.into_iter().rev() {
            let wanted: Vec<&Deletion> = delete.iter().copied().filter(|d| d.kind == kind).collect();
            let deleted = match kind {
                ChildKind::Pod => self.delete::<PodRecord>(kind, &wanted).await,
                ChildKind::Service => self.delete::<ServiceRecord>(kind, &wanted).await,
                ChildKind::Object(_) => self.delete::<ObjectRecord>(kind, &wanted).await,
            };
            applied.add(Action::Delete, kind, deleted);
        }
        applied
    }

    /// Returns the objects to create, those that are copies with the content of their originals. Also returns the failures
    /// of those whose originals cannot be read.
    async fn copied<'o>(
        &self,
        kind: ChildKind,
        objects: &'o [JobObject],
    ) -> (Vec<Cow<'o, JobObject>>, Vec<CallResult<CreateOutcome>>) {
        let (mut all, mut failed) = (Vec::new(), Vec::new());
        for object in objects {
            let Some(original) = object.original() else {
                all.push(Cow::Borrowed(object));
                continue;
            };
            let api = self.api::<ObjectRecord>(kind);
            match self.read(kind, &api, original).await {
                Ok((_, original)) => all.push(Cow::Owned(object.copy_of(&original.body))),
                Err(error) => {
                    let problem = match Answer::from(&error) {
                        Answer::NotFound => ApplyError::NoOriginal(object.kind.kind, original.to_owned()),
                        _ => error.into(),
                    };
                    failed.push(Err((object.name().to_owned(), problem)));
                }
            }
        }
        (all, failed)
    }

    fn api<C: Child>(&self, kind: ChildKind) -> Api<PartialChild<C>> {
        Api::namespaced_with(self.context.client.clone(), &self.namespace, &kind.object_kind())
    }

    /// Makes a call once the limiter permits it.
    async fn call<T>(
        &self,
        bytes: usize,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, CallError> {
        self.context
            .calls
            .call(Urgency::Children, &self.owner, bytes, request)
            .await
    }

    /// Makes a call once the limiter permits it, and returns the list epoch in which it was sent.
    async fn call_in_epoch<T>(
        &self,
        kind: ChildKind,
        bytes: usize,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<(ListEpoch, T), CallError> {
        let call = async {
            let epoch = self.children().epoch(kind);
            Ok((epoch, request.await?))
        };
        self.call(bytes, call).await
    }

    /// Creates or adopts objects. Each has a name, and is rendered when it is sent.
    async fn create<'o, C: Child, O: Serialize + Send>(
        &self,
        kind: ChildKind,
        objects: impl Iterator<Item = (&'o str, impl Fn() -> Option<O> + Send + Sync)>,
    ) -> Vec<CallResult<CreateOutcome>> {
        let api = self.api::<C>(kind);
        let create = |(name, make)| {
            let api = &api;
            let call = move || self.create_one::<C, O>(api, kind, make, name).boxed();
            (str::to_owned(name), call)
        };
        call_each(objects.map(create), self.was_refused).await
    }

    async fn create_one<C: Child, O: Serialize>(
        &self,
        api: &Api<PartialChild<C>>,
        kind: ChildKind,
        make: impl Fn() -> Option<O>,
        name: &str,
    ) -> Result<CreateOutcome, ApplyError> {
        let holder = self.children().owner(kind, &self.namespace, name);
        if holder.is_some_and(|holder| self.is_predecessor(&holder)) {
            // The watch reports its end.
            return Err(ApplyError::StillThere);
        }
        // Most pods fit. `make` returns None only for a pod outside the topology, which no plan contains; the server would
        // reject the null.
        let mut body = Vec::with_capacity(2_048);
        serde_json::to_writer(&mut body, &make())
            .map_err(|error| CallError::from(kube::Error::SerdeError(error)))?;
        let bytes = body.len();
        match self.call_in_epoch(kind, bytes, self.post(api, body)).await {
            Ok((epoch, created)) if created.meta().name.as_deref() == Some(name) => {
                self.children().answered::<C>(kind, &created, epoch);
                self.log("created", kind, name);
                Ok(CreateOutcome::Created)
            }
            // A response about another object proves nothing.
            Ok(_) => Err(ApplyError::NotCached),
            Err(error) if Answer::from(&error) == Answer::AlreadyExists => {
                self.adopt::<C, O>(api, kind, make, name).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Creates an object like [`Api::create`], but decodes only the part of the response that the cache keeps, and requests
    /// only the metadata if a new object has no more information.
    async fn post<C: Child>(
        &self,
        api: &Api<PartialChild<C>>,
        body: Vec<u8>,
    ) -> kube::Result<PartialChild<C>> {
        let mut request = Request::new(api.resource_url())
            .create(&PostParams::default(), body)
            .map_err(kube::Error::BuildRequest)?;
        if C::STARTS_WITHOUT_BODY
            && let Ok(metadata) = ACCEPT_METADATA.parse()
        {
            request.headers_mut().insert("accept", metadata);
        }
        self.context.client.request(request).await
    }

    /// Finds the owner of the object that already has the name. Our own object is adopted: an earlier call created it and
    /// the response was lost, or it lacks our label. An object of a predecessor or of another owner is an error.
    async fn adopt<C: Child, O: Serialize>(
        &self,
        api: &Api<PartialChild<C>>,
        kind: ChildKind,
        make: impl Fn() -> Option<O>,
        name: &str,
    ) -> Result<CreateOutcome, ApplyError> {
        let (epoch, there) = match self.read(kind, api, name).await {
            Ok(answer) => answer,
            // The object has been deleted meanwhile.
            Err(error) if Answer::from(&error) == Answer::NotFound => return Err(ApplyError::StillThere),
            Err(error) => return Err(error.into()),
        };
        let meta = there.meta();
        let owner = controller(meta);
        let deleting = meta.deletion_timestamp.is_some();
        if owner.as_ref().is_none_or(|owner| owner.uid != self.owner) {
            let predecessor = owner.as_ref().is_some_and(|owner| self.is_predecessor(owner));
            return Err(match deleting || predecessor {
                true => ApplyError::StillThere,
                false => ApplyError::NameTaken(owner),
            });
        }
        let made = if self.is_labelled(meta) {
            self.children().answered::<C>(kind, &there, epoch);
            CreateOutcome::Created
        } else if deleting {
            CreateOutcome::Adopted
        } else {
            // No watch selects the object, because another operator created it or a user edited its labels.
            let wanted = serde_json::to_value(make())
                .map_err(|error| CallError::from(kube::Error::SerdeError(error)))?;
            self.patch_labels(api, kind, &there, &wanted).await?;
            CreateOutcome::Adopted
        };
        let cached = self.children().owner(kind, &self.namespace, name);
        if deleting {
            Err(ApplyError::StillThere)
        } else if cached.is_some_and(|owner| owner.uid == self.owner) {
            Ok(made)
        } else {
            // A list or the watch will deliver the object.
            Err(ApplyError::NotCached)
        }
    }

    /// Copies the labels of `wanted` to the existing object, and for a service also the selector, because future pods only
    /// have those labels.
    async fn patch_labels<C: Child>(
        &self,
        api: &Api<PartialChild<C>>,
        kind: ChildKind,
        there: &PartialChild<C>,
        wanted: &Value,
    ) -> Result<(), ApplyError> {
        let meta = there.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        // The server rejects the patch if the object has changed meanwhile, because its labels may be right then.
        let meta = json!({
            "uid": meta.uid, "resourceVersion": meta.resource_version, "labels": wanted["metadata"]["labels"],
        });
        let patch = match kind {
            ChildKind::Service => {
                let mut selector = wanted["spec"]["selector"].clone();
                selector["$patch"] = json!("replace");
                Patch::Strategic(json!({"metadata": meta, "spec": {"selector": selector}}))
            }
            ChildKind::Pod | ChildKind::Object(_) => Patch::Merge(json!({ "metadata": meta })),
        };
        let params = PatchParams::default();
        match self
            .call_in_epoch(kind, 0, api.patch(name, &params, &patch))
            .await
        {
            Ok((epoch, adopted)) => {
                self.children().answered::<C>(kind, &adopted, epoch);
                self.log("adopted", kind, name);
                Ok(())
            }
            // The object was deleted or has changed meanwhile. The next reconcile reads it again.
            Err(error) if matches!(Answer::from(&error), Answer::NotFound | Answer::Conflict) => {
                Err(ApplyError::NotCached)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if the object has the label that selects the children in watches.
    fn is_labelled(&self, meta: &ObjectMeta) -> bool {
        let label = meta.labels.as_ref().and_then(|l| l.get(labels::OPERATOR_NAME));
        label.map(String::as_str) == Some(self.controller)
    }

    /// Returns true if the owner is an earlier job of the same name. The garbage collector deletes its objects.
    fn is_predecessor(&self, owner: &OwnerRef) -> bool {
        owner.uid != self.owner && owner.kind == self.kind && owner.name == self.name
    }

    async fn patch<'p, C: Child>(
        &'p self,
        kind: ChildKind,
        patches: &'p [ObjectPatch],
    ) -> Vec<CallResult<()>> {
        let api = self.api::<C>(kind);
        let patch = |patch: &'p ObjectPatch| {
            let api = &api;
            let call = move || self.patch_one(api, kind, patch).boxed();
            (patch.object.name().to_owned(), call)
        };
        call_each(patches.iter().map(patch), false).await
    }

    async fn patch_one<C: Child>(
        &self,
        api: &Api<PartialChild<C>>,
        kind: ChildKind,
        patch: &ObjectPatch,
    ) -> Result<(), ApplyError> {
        let name = patch.object.name();
        let meta = &patch.object.metadata;
        // The server rejects the patch if another object has the name now, because the UID cannot change. Labels and
        // annotations must not be null, because that would remove those of other clients.
        let [labels, annotations] =
            [&meta.labels, &meta.annotations].map(|all| all.clone().unwrap_or_default());
        let meta = json!({"uid": patch.uid, "labels": labels, "annotations": annotations});
        let mut change = patch.object.content.as_object().cloned().unwrap_or_default();
        change.insert("metadata".to_owned(), meta);
        let (params, change) = (PatchParams::default(), Patch::Merge(change));
        let call = api.patch(name, &params, &change);
        match self.call_in_epoch(kind, 0, call).await {
            Ok((epoch, patched)) => {
                let kept = patched.record(kind).has(&patch.object);
                self.children().answered::<C>(kind, &patched, epoch);
                self.log("patched", kind, name);
                if kept { Ok(()) } else { Err(ApplyError::NotKept) }
            }
            // The watch reports the new state.
            Err(error) if matches!(Answer::from(&error), Answer::NotFound | Answer::Conflict) => {
                Err(ApplyError::NotCached)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn delete<'d, C: Child>(&'d self, kind: ChildKind, wanted: &[&'d Deletion]) -> Vec<CallResult<()>> {
        let api = self.api::<C>(kind);
        let delete = |deletion: &'d Deletion| {
            let api = &api;
            let call = move || self.delete_one::<C>(api, deletion).boxed();
            (deletion.name.clone(), call)
        };
        call_each(wanted.iter().copied().map(delete), false).await
    }

    async fn delete_one<C: Child>(
        &self,
        api: &Api<PartialChild<C>>,
        deletion: &Deletion,
    ) -> Result<(), ApplyError> {
        let Deletion { name, uid, kind, .. } = deletion;
        let kind = *kind;
        let epoch = self.children().epoch(kind);
        // The watch may report the deletion before the response arrives.
        self.children()
            .mark_deleting::<C>(kind, &self.namespace, &self.owner, name, uid);
        let deleted = self.call_delete(api, deletion).await;
        match deleted {
            Ok(DeleteAnswer::Deleted) => self.log("deleted", kind, name),
            Ok(DeleteAnswer::AlreadyGone) => {
                self.children()
                    .confirm_gone::<C>(kind, &self.namespace, name, uid, epoch)
            }
            Err(_) => self
                .children()
                .unmark_deleting::<C>(kind, &self.namespace, &self.owner, name, uid),
        }
        deleted.map(|_| ()).map_err(ApplyError::from)
    }

    async fn call_delete<C: Child>(
        &self,
        api: &Api<PartialChild<C>>,
        deletion: &Deletion,
    ) -> Result<DeleteAnswer, CallError> {
        let (name, uid) = (&*deletion.name, &*deletion.uid);
        let params = DeleteParams {
            grace_period_seconds: deletion.force.then_some(0),
            ..delete_params_with_uid(uid)
        };
        let error = match self.call(0, api.delete(name, &params)).await {
            Ok(answer) => match answer.right() {
                // A Status can report a failure with any HTTP code.
                Some(status) if status.is_failure() => {
                    return Err(kube::Error::Api(Box::new(status)).into());
                }
                _ => return Ok(DeleteAnswer::Deleted),
            },
            Err(error) if error.is_not_found(name) => return Ok(DeleteAnswer::AlreadyGone),
            Err(error) if matches!(Answer::from(&error), Answer::Conflict | Answer::AlreadyExists) => error,
            Err(error) => return Err(error),
        };
        // Another object may have the name now. But a conflict can have other causes, and then the object still exists and
        // must be deleted later.
        match self.read(deletion.kind, api, name).await {
            Ok((_, there)) if there.meta().uid.as_deref() == Some(uid) => Err(error),
            Ok(_) => Ok(DeleteAnswer::AlreadyGone),
            Err(error) if error.is_not_found(name) => Ok(DeleteAnswer::AlreadyGone),
            Err(error) => Err(error),
        }
    }

    /// Logs a completed action on a child.
    fn log(&self, done: &str, kind: ChildKind, name: &str) {
        let is_of_replica = matches!(kind, ChildKind::Pod | ChildKind::Service);
        let topology = self.topology.filter(|_| is_of_replica);
        let replica = topology.and_then(|topology| topology.replica_named(name));
        let (role, index) = replica
            .map(|replica| (replica.role.name(), replica.index))
            .unzip();
        tracing::info!(
            kind = self.kind,
            namespace = self.namespace,
            job = self.name,
            role,
            index,
            "{done} {} {name}",
            kind.noun(),
        );
    }

    fn children(&self) -> MutexGuard<'_, Children> {
        self.context.children()
    }
}

/// Returns the parameters that delete only the object with this UID. Its dependents are deleted in the background.
pub(super) fn delete_params_with_uid(uid: &str) -> DeleteParams {
    let preconditions = Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: None,
    };
    DeleteParams {
        preconditions: Some(preconditions),
        ..DeleteParams::background()
    }
}

/// The outcome of a delete call.
enum DeleteAnswer {
    /// The object is gone, or is being deleted.
    Deleted,
    /// The object did not exist any more.
    AlreadyGone,
}

/// Makes calls for children of one kind concurrently, or the first of them alone, until one fails in a way that concerns all
/// children. The future of a call takes tens of kilobytes, so it is created when the call begins.
async fn call_each<'a, T>(
    calls: impl Iterator<
        Item = (
            String,
            impl FnOnce() -> BoxFuture<'a, Result<T, ApplyError>> + Send,
        ),
    >,
    first_alone: bool,
) -> Vec<CallResult<T>> {
    let failed = AtomicBool::new(false);
    let mut calls: VecDeque<_> = calls
        .map(|(name, call)| {
            let failed = &failed;
            async move {
                if failed.load(Ordering::Relaxed) {
                    return Err((name, ApplyError::NotTried));
                }
                match call().await {
                    Ok(done) => Ok((done, name)),
                    Err(problem) => {
                        failed.fetch_or(problem.fails_all(), Ordering::Relaxed);
                        Err((name, problem))
                    }
                }
            }
        })
        .collect();
    let mut results = Vec::with_capacity(calls.len());
    if first_alone && let Some(first) = calls.pop_front() {
        results.push(first.await);
    }
    let mut rest = stream::iter(calls).buffered(MAX_CALLS_PER_JOB);
    while let Some(result) = rest.next().await {
        results.push(result);
    }
    results
}

mod read;
#[cfg(test)]
mod tests;
