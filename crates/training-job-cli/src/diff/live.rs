//! Compares the rendered objects with the objects in a cluster.

use anyhow::Context;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use training_job::Settings;
use training_job::api::labels::OPERATOR_NAME;

use super::job::{self, JobSide, Rules};
use super::shape::reduced_to;
use crate::check::Job;
use crate::cluster::with_timeout;
use crate::exit::Failure;
use crate::report::note;
use crate::write;

/// Returns the old side and the new side: the same jobs in the cluster with their objects, and `jobs` with the objects
/// that they get.
pub(super) async fn sides(
    client: &Client,
    jobs: Vec<Job>,
    settings: &Settings,
) -> anyhow::Result<(Vec<JobSide>, Vec<JobSide>)> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for mut job in jobs {
        let metadata = &mut job.object["metadata"];
        if metadata["namespace"].is_null() {
            metadata["namespace"] = json!(client.default_namespace());
        }
        let namespace = metadata["namespace"].as_str().unwrap_or_default().to_owned();
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &job.kind.resource);
        let stored_job = with_timeout(api.get_opt(&name))
            .await
            .and_then(|response| Ok(response?))
            .with_context(|| format!("{} {namespace}/{name}", job.kind.name()))?;
        if let Some(stored_job) = &stored_job {
            // The objects of both sides must have the same owner.
            job.object["metadata"]["uid"] = json!(stored_job.uid());
        }
        let title = job::title(&job);
        let mut wanted = job.render(settings).map_err(as_error)?;
        let rules = Rules::new(&job, settings).map_err(as_error)?;
        if let Some(stored_job) = stored_job {
            // Fields that the stored job sets are compared as well. An invalid stored job sets none.
            let stored = job
                .kind
                .render(&serde_json::to_value(&stored_job)?, settings)
                .unwrap_or_default();
            let controller = job.kind.framework.controller;
            let job_name = job.kind.framework.keys().job_name();
            let selector = format!("{OPERATOR_NAME}={controller},{job_name}={name}");
            // Other kinds are read only if the jobs have such objects, because the user may lack the permission.
            let mut kinds = ["Service", "Pod"]
                .map(|kind| GroupVersionKind::gvk("", "v1", kind))
                .to_vec();
            for kind in wanted.iter().chain(&stored).map(kind) {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            let mut old_objects = Vec::new();
            let mut running = Vec::new();
            for kind in &kinds {
                running.extend(owned(client, kind, (&namespace, &selector), &stored_job).await?);
            }
            job.object["status"] = stored_job.data["status"].clone();
            let (_, outline) = (job.kind.outline)(&job.object);
            if let Some(text) = outline.ok().and_then(|outline| outline.resize_note()) {
                note(&format!("{title}: {text}"));
            }
            let planned = (job.kind.planned_objects)(&job.object, settings, &running);
            for now in planned.map_err(|errors| anyhow::anyhow!("{errors}"))? {
                let same = wanted
                    .iter_mut()
                    .find(|other| write::title(other) == write::title(&now));
                same.into_iter().for_each(|at_first| *at_first = now.clone());
            }
            for object in running {
                let same = |other: &&Value| write::title(other) == write::title(&object);
                let shapes = [wanted.iter().find(same), stored.iter().find(same)];
                old_objects.push(reduced_to(
                    &object,
                    &shapes.into_iter().flatten().collect::<Vec<_>>(),
                ));
            }
            old.push(JobSide {
                title: title.clone(),
                // An invalid stored job has no rules.
                rules: Job::stored(job.kind.clone(), &stored_job, job.origin.clone())
                    .ok()
                    .and_then(|stored| Rules::new(&stored, settings).ok()),
                objects: old_objects,
            });
        }
        new.push(JobSide {
            title,
            rules: Some(rules),
            objects: wanted,
        });
    }
    Ok((old, new))
}

fn as_error(failure: Failure) -> anyhow::Error {
    anyhow::anyhow!("{failure}")
}

/// Returns the kind of a rendered object.
fn kind(object: &Value) -> GroupVersionKind {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap_or_default())
}

/// Returns the objects of a kind that a job controls.
async fn owned(
    client: &Client,
    kind: &GroupVersionKind,
    (namespace, selector): (&str, &str),
    owner: &DynamicObject,
) -> anyhow::Result<Vec<Value>> {
    let resource = ApiResource::from_gvk(kind);
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource);
    let found = match with_timeout(api.list(&ListParams::default().labels(selector))).await {
        // Without a definition there are no objects of that kind.
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => return Ok(Vec::new()),
        response => response
            .and_then(|response| Ok(response?))
            .with_context(|| resource.plural.clone())?,
    };
    let is_ours = |object: &DynamicObject| {
        let mut controllers = object
            .owner_references()
            .iter()
            .filter(|o| o.controller == Some(true));
        controllers.any(|o| Some(&o.uid) == owner.metadata.uid.as_ref())
    };
    let ours = found.items.into_iter().filter(is_ours);
    // The items of a list lack their apiVersion and kind.
    let types = TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    };
    let typed = ours.map(|object| DynamicObject {
        types: Some(types.clone()),
        ..object
    });
    Ok(typed.map(serde_json::to_value).collect::<Result<_, _>>()?)
}
