//! `diff`: the jobs of files, or those in a cluster with their objects.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::{Client, ResourceExt};
use serde::Deserialize;
use serde_json::{Value, json};
use training_job::Settings;
use training_job::api::JobStatus;
use training_job::offline;
use training_job_client::call_error::{is_unserved, unserved};
use training_job_client::cluster::{ClusterArgs, run_with_client, with_timeout};
use training_job_kubectl::outline;
use training_job_review::check::{Job, valid_jobs};
use training_job_review::diff::{
    HELP, JobSide, Options, Rules, between, planned_objects, print, reduced_to, title,
};
use training_job_review::report::note;
use training_job_review::{Failure, exit, help, write};

use super::with_cluster;
use crate::kinds::Kinds;

const EXAMPLE: &str = "diff --cluster job.yaml";

const CLUSTER_HELP: &str = "\
With --cluster, the old side consists of the jobs of the same names in the cluster, and their objects.
Only the fields of objects that a job sets are compared, not those that the cluster adds. Set the flags
that the cluster's operator has. A job that has ended or is suspended gets no objects, and a number of replicas or a
suspension that the manifest does not set stays as it is in the cluster, as with kubectl apply.";

/// Show how the rules and objects of jobs change.
#[derive(Debug, clap::Args)]
#[command(after_help = help(&with_cluster(HELP, EXAMPLE, CLUSTER_HELP)))]
pub struct Args {
    /// The old side and the new side; with --cluster, only the new side.
    #[arg(value_name = "SIDE", required = true, num_args = 1..=2)]
    sides: Vec<PathBuf>,
    /// Compare with the jobs in the cluster.
    #[arg(long)]
    cluster: bool,
    #[command(flatten)]
    connection: ClusterArgs,
    #[command(flatten)]
    options: Options,
}

pub(super) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let options = &arguments.options;
    match (&arguments.sides[..], arguments.cluster) {
        ([old, new], false) => between(old, new, options, kinds),
        ([new], true) => {
            let settings = options.settings.read()?;
            let Some(jobs) = valid_jobs(kinds, std::slice::from_ref(new)) else {
                return Ok(exit::bad_input());
            };
            let (old, new) = run_with_client(&arguments.connection, async |client| {
                sides(&client, jobs, &settings).await
            })?;
            print((&old, &new), options, &[])
        }
        (_, true) => Err(Failure::new(
            "diff",
            "with --cluster, exactly one side must be given; remove the old side",
        )),
        (_, false) => Err(Failure::new(
            "diff",
            "two sides must be given; add one, or set --cluster",
        )),
    }
}

/// Returns the old side and the new side: the same jobs in the cluster with their objects, and `jobs` with the objects
/// that they get.
async fn sides(
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
        let object = format!("{} {namespace}/{name}", job.kind.name());
        let stored_job = match with_timeout(api.get_opt(&name)).await? {
            Err(error) if is_unserved(&error) => {
                note(&format!("{object}: {}", unserved(&job.kind.resource)));
                None
            }
            stored => stored.with_context(|| object)?,
        };
        if let Some(stored_job) = &stored_job {
            // The objects of both sides must have the same owner.
            job.object["metadata"]["uid"] = json!(stored_job.uid());
            keep_applied(
                &mut job.object,
                &serde_json::to_value(stored_job)?,
                job.kind.framework.roles_field,
            );
        }
        let title = title(&job);
        let mut wanted = job.render(settings).map_err(as_error)?;
        let rules = Rules::new(&job, settings).map_err(as_error)?;
        if let Some(stored_job) = stored_job {
            // Fields that the stored job sets are compared as well. An invalid stored job sets none.
            let stored =
                offline::render(&job.kind, &serde_json::to_value(&stored_job)?, settings).unwrap_or_default();
            let selector = job.kind.framework.selector_of(&name);
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
            let (_, outline) = outline(&job.kind, &job.object);
            if let Some(text) = outline.ok().and_then(|outline| outline.resize_note()) {
                note(&format!("{title}: {text}"));
            }
            let planned = planned_objects(&job.kind, &job.object, settings, &running);
            let planned = planned.map_err(|errors| anyhow::anyhow!("{errors}"))?;
            let status = JobStatus::deserialize(&job.object["status"]).unwrap_or_default();
            if status.is_finished() || job.object["spec"]["runPolicy"]["suspend"] == true {
                // No pod and no service is created, so those that are gone are no difference.
                let exists = |object: &Value| {
                    let mut all = running.iter().chain(&planned);
                    all.any(|other| write::title(other) == write::title(object))
                };
                wanted.retain(exists);
            }
            for now in planned {
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

/// Copies to a manifest what `kubectl apply` keeps: the numbers of replicas and the suspension of the stored job, if
/// the manifest does not set them, and the one that was applied last did not either.
fn keep_applied(job: &mut Value, stored: &Value, roles_field: &str) {
    let applied = &stored["metadata"]["annotations"][LAST_APPLIED];
    let applied: Value = applied
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let mut pointers = vec!["/spec/runPolicy/suspend".to_owned()];
    let roles = job["spec"][roles_field].as_object().into_iter().flatten();
    pointers.extend(roles.map(|(role, _)| format!("/spec/{roles_field}/{role}/replicas")));
    for pointer in pointers {
        let is_set = |object: &Value| object.pointer(&pointer).is_some_and(|value| !value.is_null());
        if is_set(job) || is_set(&applied) {
            continue;
        }
        let Some(value) = stored.pointer(&pointer).filter(|value| !value.is_null()) else {
            continue;
        };
        let mut at = &mut *job;
        for key in pointer.split('/').skip(1) {
            at = &mut at[key];
        }
        *at = value.clone();
    }
}

/// The annotation in which `kubectl apply` stores the manifest.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_fields_of_a_manifest_keep_their_values_in_the_cluster() {
        let stored = json!({"spec": {"runPolicy": {"suspend": true}, "specs": {"Worker": {"replicas": 3}}}});
        let kept = |job: Value, stored: &Value| {
            let mut job = job;
            keep_applied(&mut job, stored, "specs");
            job["spec"].take()
        };
        let open = json!({"spec": {"specs": {"Worker": {}}}});
        assert_eq!(kept(open.clone(), &stored), stored["spec"]);
        let set = json!({"spec": {"runPolicy": {"suspend": false}, "specs": {"Worker": {"replicas": 1}}}});
        assert_eq!(kept(set.clone(), &stored), set["spec"]);
        let mut applied = stored.clone();
        applied["metadata"]["annotations"][LAST_APPLIED] = json!(stored.to_string());
        assert_eq!(
            kept(open.clone(), &applied),
            open["spec"],
            "apply removes what it set"
        );
    }
}
