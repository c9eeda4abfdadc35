//! Reads a cluster: lists objects, and checks the permissions of service accounts.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, Resource};
use serde_json::Value;
use tokio::time::sleep;
use training_job_client::call_error::{explained, is_unserved};
use training_job_client::cluster::with_timeout;

use super::deployments::{enabled_kinds, operator_of};
use super::overview::{expired_since, held_leases};
use crate::installation::{ClusterState, MissingPermission, OperatorVariant, name};
use crate::kinds::Kinds;

const MAX_PAGE_ITEMS: u32 = 500;

/// Time in which a leader certainly renews its lease, with the default flags.
const RENEWAL_TIME: Duration = Duration::from_secs(5);

/// Reads a cluster. The result lists the resources that the user may not read.
///
/// # Errors
/// The cluster cannot be reached.
pub(super) async fn cluster(client: &Client, kinds: &Kinds) -> anyhow::Result<ClusterState> {
    let version = with_timeout(client.apiserver_version()).await??;
    let number = |text: &str| text.trim_end_matches('+').parse().unwrap_or(0);
    let mut state = ClusterState {
        version: (number(&version.major), number(&version.minor)),
        git_version: version.git_version.clone(),
        now: Timestamp::now(),
        ..ClusterState::default()
    };
    let definitions = all::<CustomResourceDefinition>(client, &mut state).await?;
    let is_ours = |definition: &Value| {
        let group = definition["spec"]["group"].as_str();
        group.is_some_and(|group| kinds.is_own_group(group))
    };
    state.definitions = definitions.into_iter().filter(is_ours).collect();
    for definition in state.definitions.clone() {
        if let Some(resource) = served(&definition) {
            let jobs = list(client, &resource, &mut state).await?;
            state.jobs.extend(jobs);
        }
    }
    state.webhooks = all::<ValidatingWebhookConfiguration>(client, &mut state).await?;
    let mutating = all::<MutatingWebhookConfiguration>(client, &mut state).await?;
    state.webhooks.extend(mutating);
    let services = all::<Service>(client, &mut state).await?;
    let names = services.iter().map(name);
    state.services = names
        .map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
        .collect();
    state.deployments = all::<Deployment>(client, &mut state).await?;
    state.leases = all::<Lease>(client, &mut state).await?;
    if held_leases(&state)
        .iter()
        .any(|lease| expired_since(lease, state.now).is_some())
    {
        // The clocks may differ, but a leader renews the lease every few seconds.
        sleep(RENEWAL_TIME).await;
        let before = std::mem::take(&mut state.leases);
        state.leases = all::<Lease>(client, &mut state).await?;
        let renewed = held_leases(&state)
            .into_iter()
            .filter(|lease| !before.contains(lease));
        let renewed = renewed.filter_map(|lease| lease["spec"]["renewTime"].as_str()?.parse().ok());
        state.now = renewed.max().unwrap_or_else(Timestamp::now);
    }
    for deployment in state.deployments.clone() {
        if operator_of(&deployment, kinds) == Some(OperatorVariant::This) {
            check_permissions(client, kinds, &deployment, &mut state).await?;
        }
    }
    Ok(state)
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

async fn all<K: Resource<DynamicType = ()>>(
    client: &Client,
    state: &mut ClusterState,
) -> anyhow::Result<Vec<Value>> {
    list(client, &ApiResource::erase::<K>(&()), state).await
}

/// Returns all objects of a kind. If the user may not read them, records that and returns the objects read so far.
async fn list(
    client: &Client,
    resource: &ApiResource,
    state: &mut ClusterState,
) -> anyhow::Result<Vec<Value>> {
    let api = Api::<DynamicObject>::all_with(client.clone(), resource);
    let mut objects = Vec::new();
    let mut page = ListParams::default().limit(MAX_PAGE_ITEMS);
    loop {
        let response = with_timeout(api.list(&page)).await?;
        let items = match response {
            Ok(items) => items,
            Err(kube::Error::Api(status)) if status.code == 403 => {
                state
                    .forbidden
                    .push(("list".to_owned(), qualified(&resource.plural, &resource.group)));
                return Ok(objects);
            }
            // A kind that is not served has no objects.
            Err(error) if is_unserved(&error) => return Ok(objects),
            Err(kube::Error::Api(status)) => {
                let what = format!("{} of {}", resource.plural, resource.api_version);
                state.unreadable.push((what, status.message.clone()));
                return Ok(objects);
            }
            Err(error) => return Err(explained(error, "list", &resource.plural)),
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
async fn check_permissions(
    client: &Client,
    kinds: &Kinds,
    deployment: &Value,
    state: &mut ClusterState,
) -> anyhow::Result<()> {
    let pod = &deployment["spec"]["template"]["spec"];
    let namespace = name(deployment).0.to_owned();
    let account = pod["serviceAccountName"].as_str().unwrap_or("default").to_owned();
    let text = pod.to_string();
    let is_namespaced = text.contains("--namespace") || text.contains("KUBEFLOW_NAMESPACE");
    let wanted = kinds.rules_of(enabled_kinds(deployment, kinds));
    let api = Api::<SubjectAccessReview>::all(client.clone());
    for (group, resource, verb) in wanted.iter().flat_map(permissions) {
        let (plain, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let attributes = ResourceAttributes {
            group: Some(group.to_owned()),
            resource: Some(plain.to_owned()),
            subresource: Some(subresource.to_owned()),
            verb: Some(verb.to_owned()),
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
        let request = api.create(&parameters, &review);
        match with_timeout(request).await? {
            Ok(response) => {
                if !response.status.is_some_and(|status| status.allowed) {
                    state.missing_permissions.push(MissingPermission {
                        account: (namespace.clone(), account.clone()),
                        permission: (verb.to_owned(), resource.to_owned()),
                    });
                }
            }
            Err(kube::Error::Api(status)) if status.code == 403 => {
                let reviews = qualified("subjectaccessreviews", "authorization.k8s.io");
                state.forbidden.push(("create".to_owned(), reviews));
                return Ok(());
            }
            Err(kube::Error::Api(status)) => {
                let what = format!("permissions of the service account {namespace}/{account}");
                state.unreadable.push((what, status.message.clone()));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns a resource with its API group, such as `leases.coordination.k8s.io`.
fn qualified(plural: &str, group: &str) -> String {
    match group {
        "" => plural.to_owned(),
        group => format!("{plural}.{group}"),
    }
}

/// Returns each permission of a rule as group, resource and verb.
fn permissions(rule: &PolicyRule) -> impl Iterator<Item = (&str, &str, &str)> {
    let groups = rule.api_groups.iter().flatten();
    let resources = groups.flat_map(|group| {
        rule.resources
            .iter()
            .flatten()
            .map(move |resource| (group, resource))
    });
    resources.flat_map(|(group, resource)| {
        let verbs = rule.verbs.iter();
        verbs.map(move |verb| (group.as_str(), resource.as_str(), verb.as_str()))
    })
}
