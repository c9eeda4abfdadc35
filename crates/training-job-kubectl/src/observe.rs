//! Reads jobs and their objects from a cluster, in few large lists.

use std::fmt::Debug;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use futures::future::{join_all, try_join_all};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use training_job_client::call_error::{explained, is_unserved, unserved};
use training_job_client::cluster::with_timeout;
use training_job_review::{Kind, Kinds};

pub(crate) use super::stored::StoredJob;
use crate::connection::Connection;
use crate::job_events::JobEvents;
use crate::target::{NoSuchJob, Target, only};

/// The size of a page. Larger pages cost the API server more memory at once, and smaller ones more round trips.
const MAX_PAGE_ITEMS: u32 = 500;

/// A job with its objects at a moment.
#[derive(Clone, Debug)]
pub(crate) struct ObservedJob {
    pub(crate) job: StoredJob,
    pub(crate) pods: Vec<Pod>,
    /// The events about the job and its pods, the oldest first. Events of deleted pods are included.
    pub(crate) events: Vec<Event>,
    /// The resources that the user may not list.
    pub(crate) forbidden: Vec<&'static str>,
    pub(crate) now: Timestamp,
}

impl ObservedJob {
    /// Returns true if the user may not list a resource, so that nothing is known about its objects.
    pub(crate) fn is_forbidden(&self, resource: &str) -> bool {
        self.forbidden.contains(&resource)
    }
}

/// The objects to read in addition to the job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) pods: bool,
    pub(crate) events: bool,
}

/// Returns the job that an argument names.
///
/// # Errors
/// The job does not exist, several jobs have the name, or the user may not read it.
pub async fn find(connection: &Connection, kinds: &Kinds, argument: &str) -> anyhow::Result<StoredJob> {
    let target = Target::parse(argument, kinds)?;
    let namespace = &connection.namespace;
    let get = async |kind: Arc<Kind>| {
        let api = Api::<DynamicObject>::namespaced_with(connection.client.clone(), namespace, &kind.resource);
        (with_timeout(api.get_opt(&target.name)).await, kind)
    };
    let mut found = Vec::new();
    let (mut denied, mut missing) = (Vec::new(), Vec::new());
    for (response, kind) in join_all(target.kinds.iter().cloned().map(get)).await {
        match response? {
            Ok(Some(object)) => found.push(StoredJob::new(&kind, &object)?),
            Ok(None) => {}
            Err(error) if is_forbidden(&error) => denied.push(kind),
            Err(error) if is_unserved(&error) => missing.push(kind),
            Err(error) => return Err(explained(error, "get", &kind.resource.plural)),
        }
    }
    if found.is_empty()
        && let Some(kind) = denied.first()
    {
        let plural = full_plural(&kind.resource);
        return Err(forbidden("get", &plural, Some(namespace)));
    }
    if let ([only], [_]) = (&missing[..], &target.kinds[..]) {
        bail!(NoSuchJob(unserved(&only.resource)));
    }
    if let (true, [named]) = (found.is_empty(), &target.kinds[..]) {
        let others = kinds.iter().filter(|kind| kind.name() != named.name());
        let read = join_all(others.cloned().map(get)).await;
        let named_so = |(response, kind): (anyhow::Result<kube::Result<Option<_>>>, Arc<Kind>)| {
            let exists = matches!(response, Ok(Ok(Some(_))));
            exists.then(|| format!("{}/{}", kind.name(), target.name))
        };
        let others: Vec<String> = read.into_iter().filter_map(named_so).collect();
        if !others.is_empty() {
            let (noun, name) = (target.noun(), &target.name);
            let text = format!(
                "no {noun} {name:?} in namespace {namespace}; did you mean {}?",
                others.join(" or ")
            );
            bail!(NoSuchJob(text));
        }
    }
    only(found, &target, namespace, StoredJob::argument)
}

/// Returns the jobs of all kinds, by kind and name, and the kinds that the user may not list. Kinds that are not
/// installed have no jobs.
pub(crate) async fn list(
    client: &Client,
    namespace: Option<&str>,
    selector: Option<&str>,
    kinds: &[Arc<Kind>],
) -> anyhow::Result<(Vec<StoredJob>, Vec<String>)> {
    let (jobs, denied) = list_allowed(client, namespace, selector, kinds).await?;
    if jobs.is_empty()
        && denied.len() == kinds.len()
        && let Some(plural) = denied.first()
    {
        return Err(forbidden("list", plural, namespace));
    }
    Ok((jobs, denied))
}

/// Returns the jobs of all kinds, and the kinds that the user may not list, which may be all.
pub(crate) async fn list_allowed(
    client: &Client,
    namespace: Option<&str>,
    selector: Option<&str>,
    kinds: &[Arc<Kind>],
) -> anyhow::Result<(Vec<StoredJob>, Vec<String>)> {
    let of_kind = async |kind: &Arc<Kind>| {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind.resource),
            None => Api::all_with(client.clone(), &kind.resource),
        };
        match pages(&api, selector).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok((Vec::new(), None)),
            Err(error) if is_forbidden(&error) => Ok((Vec::new(), Some(full_plural(&kind.resource)))),
            Err(error) => Err(explained(error, "list", &kind.resource.plural)),
            Ok(objects) => {
                let jobs = objects.iter().map(|object| StoredJob::new(kind, object));
                Ok((jobs.collect::<anyhow::Result<Vec<_>>>()?, None))
            }
        }
    };
    let (mut jobs, mut denied) = (Vec::new(), Vec::new());
    for (of_kind, forbidden) in try_join_all(kinds.iter().map(of_kind)).await? {
        jobs.extend(of_kind);
        denied.extend(forbidden);
    }
    Ok((jobs, denied))
}

/// Reads the objects of a job.
///
/// # Errors
/// A list failed for another reason than missing rights.
pub(crate) async fn observe(client: &Client, job: StoredJob, parts: Parts) -> anyhow::Result<ObservedJob> {
    let selector = job.selector();
    let pods = of_job::<Pod>(client, &job, Some(&selector), parts.pods);
    let events = of_job::<Event>(client, &job, None, parts.events);
    let (pods, events) = futures::try_join!(pods, events)?;
    let lists = [("pods", pods.is_none()), ("events", events.is_none())];
    let forbidden = lists
        .into_iter()
        .filter_map(|(name, denied)| denied.then_some(name))
        .collect();
    let is_own = |meta: &ObjectMeta| {
        let mut owners = meta.owner_references.iter().flatten();
        owners.any(|owner| owner.controller == Some(true) && owner.uid == job.uid())
    };
    let mut pods = pods.unwrap_or_default();
    pods.retain(|pod| is_own(&pod.metadata));
    let mut events = events.unwrap_or_default();
    JobEvents::of(&job, &pods).keep(&mut events);
    Ok(ObservedJob {
        job,
        pods,
        events,
        forbidden,
        now: Timestamp::now(),
    })
}

/// Returns the objects of a type in the job's namespace, or `None` if the user may not list them.
async fn of_job<K>(
    client: &Client,
    job: &StoredJob,
    selector: Option<&str>,
    is_wanted: bool,
) -> anyhow::Result<Option<Vec<K>>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    if !is_wanted {
        return Ok(Some(Vec::new()));
    }
    let api = Api::<K>::namespaced(client.clone(), job.namespace());
    match pages(&api, selector).await {
        Ok(objects) => Ok(Some(objects)),
        Err(error) if is_forbidden(&error) => Ok(None),
        Err(error) => Err(explained(error, "list", &K::plural(&()))),
    }
}

/// Returns all objects of a list, page by page.
async fn pages<K: Clone + DeserializeOwned + Debug>(
    api: &Api<K>,
    selector: Option<&str>,
) -> kube::Result<Vec<K>> {
    let mut objects = Vec::new();
    let mut page = ListParams::default().limit(MAX_PAGE_ITEMS);
    page.label_selector = selector.map(str::to_owned);
    loop {
        let response = api.list(&page).await?;
        let next = response
            .metadata
            .continue_
            .clone()
            .filter(|token| !token.is_empty());
        objects.extend(response.items);
        match next {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(objects),
        }
    }
}

pub(crate) fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// Returns a resource with its group, such as `mxjobs.kubeflow.org`.
pub(crate) fn full_plural(resource: &ApiResource) -> String {
    match resource.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    }
}

/// Returns the error for a missing permission, with its remedy.
pub(crate) fn forbidden(verb: &str, resource: &str, namespace: Option<&str>) -> anyhow::Error {
    let (place, test) = match namespace {
        Some(namespace) => (
            format!("in namespace {namespace}"),
            format!("--namespace {namespace}"),
        ),
        None => ("in all namespaces".to_owned(), "--all-namespaces".to_owned()),
    };
    anyhow!(
        "you are not allowed to {verb} {resource} {place}; ask an administrator for the right, which `kubectl auth can-i \
         {verb} {resource} {test}` checks"
    )
}
