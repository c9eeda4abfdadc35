//! Reads a cluster: lists objects, and checks the permissions of service accounts.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, Resource};
use serde_json::Value;

use crate::cluster::within;
use crate::kinds::Kind;

use super::seen::{
    GROUPS, Missing, RIGHTS, Runs, Seen, enabled, name, rights_to_jobs, rights_to_objects, runs,
};

const PAGE: u32 = 500;

/// Reads a cluster. The result lists the resources that the user may not read.
///
/// # Errors
/// The cluster cannot be reached.
pub(super) async fn cluster(client: &Client, kinds: &[Kind]) -> anyhow::Result<Seen> {
    let version = within(client.apiserver_version()).await??;
    let number = |text: &str| text.trim_end_matches('+').parse().unwrap_or(0);
    let mut seen = Seen {
        version: (number(&version.major), number(&version.minor)),
        ..Seen::default()
    };
    let definitions = all::<CustomResourceDefinition>(client, &mut seen).await?;
    let is_ours = |definition: &Value| GROUPS.iter().any(|group| definition["spec"]["group"] == *group);
    seen.definitions = definitions.into_iter().filter(is_ours).collect();
    for definition in seen.definitions.clone() {
        if let Some(resource) = served(&definition) {
            let jobs = list(client, &resource, &mut seen).await?;
            seen.jobs.extend(jobs);
        }
    }
    seen.webhooks = all::<ValidatingWebhookConfiguration>(client, &mut seen).await?;
    let mutating = all::<MutatingWebhookConfiguration>(client, &mut seen).await?;
    seen.webhooks.extend(mutating);
    let services = all::<Service>(client, &mut seen).await?;
    let names = services.iter().map(name);
    seen.services = names
        .map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
        .collect();
    seen.deployments = all::<Deployment>(client, &mut seen).await?;
    seen.leases = all::<Lease>(client, &mut seen).await?;
    for deployment in seen.deployments.clone() {
        if runs(&deployment) == Some(Runs::This) {
            rights(client, kinds, &deployment, &mut seen).await?;
        }
    }
    Ok(seen)
}

/// Returns the resource with the version in which a definition's objects are read: the stored version if it is served.
fn served(definition: &Value) -> Option<ApiResource> {
    let spec = &definition["spec"];
    let mut versions: Vec<_> = spec["versions"].as_array()?.iter().collect();
    versions.retain(|version| version["served"] == true);
    versions.sort_by_key(|version| version["storage"] != true);
    let version = versions.first()?["name"].as_str()?;
    let names = &spec["names"];
    let kind = GroupVersionKind::gvk(spec["group"].as_str()?, version, names["kind"].as_str()?);
    Some(ApiResource::from_gvk_with_plural(
        &kind,
        names["plural"].as_str()?,
    ))
}

async fn all<K: Resource<DynamicType = ()>>(client: &Client, seen: &mut Seen) -> anyhow::Result<Vec<Value>> {
    list(client, &ApiResource::erase::<K>(&()), seen).await
}

/// Returns all objects of a kind. If the user may not read them, records that and returns the objects read so far.
async fn list(client: &Client, resource: &ApiResource, seen: &mut Seen) -> anyhow::Result<Vec<Value>> {
    let api = Api::<DynamicObject>::all_with(client.clone(), resource);
    let mut objects = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let answer = within(api.list(&page)).await?;
        let items = match answer {
            Ok(items) => items,
            Err(kube::Error::Api(status)) => {
                let what = format!("{} of {}", resource.plural, resource.api_version);
                seen.unread.push((what, status.message.clone()));
                return Ok(objects);
            }
            Err(error) => return Err(error.into()),
        };
        let next = items.metadata.continue_.clone().filter(|token| !token.is_empty());
        for item in items {
            let mut object = serde_json::to_value(&item)?;
            // Items of a list lack their apiVersion and kind.
            object["apiVersion"] = resource.api_version.clone().into();
            object["kind"] = resource.kind.clone().into();
            objects.push(object);
        }
        match next {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(objects),
        }
    }
}

/// Finds the permissions that the service account of a Deployment lacks. They are checked in the Deployment's namespace
/// if the operator is restricted to one namespace, and in all namespaces otherwise.
async fn rights(client: &Client, kinds: &[Kind], deployment: &Value, seen: &mut Seen) -> anyhow::Result<()> {
    let pod = &deployment["spec"]["template"]["spec"];
    let namespace = name(deployment).0.to_owned();
    let account = pod["serviceAccountName"].as_str().unwrap_or("default").to_owned();
    let text = pod.to_string();
    let is_namespaced = text.contains("--namespace") || text.contains("KUBEFLOW_NAMESPACE");
    let mut wanted: Vec<(String, String, &[&'static str])> = Vec::new();
    for (resource, verbs) in RIGHTS {
        wanted.push((String::new(), resource.to_owned(), verbs));
    }
    for kind in enabled(deployment, kinds) {
        for (group, resource, verbs) in rights_to_objects(kind) {
            wanted.push((group.to_owned(), resource.to_owned(), verbs));
        }
        for (subresource, verbs) in rights_to_jobs(kind) {
            let resource = format!("{}{subresource}", kind.resource.plural);
            wanted.push((kind.resource.group.clone(), resource, verbs));
        }
    }
    let api = Api::<SubjectAccessReview>::all(client.clone());
    for (group, resource, verbs) in wanted {
        for verb in verbs {
            let (plain, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
            let attributes = ResourceAttributes {
                group: Some(group.clone()),
                resource: Some(plain.to_owned()),
                subresource: Some(subresource.to_owned()),
                verb: Some((*verb).to_owned()),
                namespace: is_namespaced.then(|| namespace.clone()),
                ..ResourceAttributes::default()
            };
            let review = SubjectAccessReview {
                spec: SubjectAccessReviewSpec {
                    user: Some(format!("system:serviceaccount:{namespace}:{account}")),
                    groups: Some(vec![
                        "system:serviceaccounts".to_owned(),
                        format!("system:serviceaccounts:{namespace}"),
                        "system:authenticated".to_owned(),
                    ]),
                    resource_attributes: Some(attributes),
                    ..SubjectAccessReviewSpec::default()
                },
                ..SubjectAccessReview::default()
            };
            let parameters = PostParams::default();
            let asked = api.create(&parameters, &review);
            match within(asked).await? {
                Ok(answer) => {
                    if !answer.status.is_some_and(|status| status.allowed) {
                        seen.missing.push(Missing {
                            account: (namespace.clone(), account.clone()),
                            right: (verb, resource.clone()),
                        });
                    }
                }
                Err(kube::Error::Api(status)) => {
                    let what = format!("permissions of the service account {namespace}/{account}");
                    seen.unread.push((what, status.message.clone()));
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
