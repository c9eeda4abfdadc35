//! Compares with what runs in a cluster.

use anyhow::Context;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use training_job::Settings;
use training_job::api::labels::{JOB_NAME, OPERATOR_NAME};

use super::shape::shaped;
use crate::check::Job;
use crate::cluster::within;
use crate::write::title;

/// The old side and the new one: what the jobs of the same names have in the cluster, and what `jobs` get.
pub(super) async fn sides(client: &Client, jobs: Vec<Job>) -> anyhow::Result<(Vec<Value>, Vec<Value>)> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for mut job in jobs {
        let metadata = &mut job.object["metadata"];
        if metadata["namespace"].is_null() {
            metadata["namespace"] = json!(client.default_namespace());
        }
        let namespace = metadata["namespace"].as_str().unwrap_or_default().to_owned();
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &job.kind.resource);
        let there = within(api.get_opt(&name))
            .await
            .and_then(|answer| Ok(answer?))
            .with_context(|| format!("{} {namespace}/{name}", job.kind.name()))?;
        if let Some(there) = &there {
            // The same job, so that its objects have the same owner.
            job.object["metadata"]["uid"] = json!(there.uid());
        }
        let wanted = job
            .render(&Settings::default())
            .map_err(|failure| anyhow::anyhow!("{failure}"))?;
        if let Some(there) = there {
            // A field that the stored job sets counts as decided by the job, too. An invalid stored job sets none.
            let stored = job
                .kind
                .render(&serde_json::to_value(&there)?, &Settings::default())
                .unwrap_or_default();
            let controller = job.kind.framework.controller;
            let selector = format!("{OPERATOR_NAME}={controller},{JOB_NAME}={name}");
            let mut runs = owned::<Service>(client, &namespace, &selector, &there).await?;
            let is_map = |object: &Value| object["kind"] == "ConfigMap";
            if wanted.iter().chain(&stored).any(is_map) {
                // Who has no such jobs need not be allowed to read them.
                runs.extend(owned::<ConfigMap>(client, &namespace, &selector, &there).await?);
            }
            runs.extend(owned::<Pod>(client, &namespace, &selector, &there).await?);
            for object in runs {
                let same = |other: &&Value| title(other) == title(&object);
                let shapes = [wanted.iter().find(same), stored.iter().find(same)];
                old.push(shaped(&object, &shapes.into_iter().flatten().collect::<Vec<_>>()));
            }
        }
        new.extend(wanted);
    }
    Ok((old, new))
}

/// The objects that a job controls.
async fn owned<K>(
    client: &Client,
    namespace: &str,
    selector: &str,
    owner: &DynamicObject,
) -> anyhow::Result<Vec<Value>>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + serde::Serialize,
{
    let api = Api::<K>::namespaced(client.clone(), namespace);
    let found = within(api.list(&ListParams::default().labels(selector)))
        .await
        .and_then(|answer| Ok(answer?))
        .with_context(|| K::plural(&()).into_owned())?;
    let is_ours = |object: &K| {
        let controllers = object.owner_references().iter();
        let mut controllers = controllers.filter(|o| o.controller == Some(true));
        controllers.any(|o| Some(&o.uid) == owner.metadata.uid.as_ref())
    };
    let ours = found.items.into_iter().filter(is_ours);
    Ok(ours.map(serde_json::to_value).collect::<Result<_, _>>()?)
}
