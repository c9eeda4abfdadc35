//! Checks the objects of a job: an API server accepts them, and the hooks return the same each time.

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use serde_json::Value;

use training_job::job::{Kind, Settings};
use training_job::render;
use training_job::validate::validate_any;

/// Returns what is wrong with the objects of a job. Returns nothing for an invalid job, which has none, and for a job with
/// warnings, because an API server may reject its own templates.
pub(super) async fn problems(kind: &Kind, client: &Client, job: &Value) -> Vec<String> {
    let Some(objects) = rendered(kind, job) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if let Some(again) = rendered(kind, job)
        && let Some((object, path)) = first_difference(&objects, &again)
    {
        found.push(format!(
            "the hooks return another {object} at each call (first at {path}); derive everything from the job"
        ));
    }
    for object in &objects {
        if let Err(problem) = create(kind, client, object).await {
            found.push(format!("the API server rejects {}: {problem}", named(object)));
        }
    }
    found
}

/// Returns the objects of a valid job.
fn rendered(kind: &Kind, job: &Value) -> Option<Vec<Value>> {
    let job = render::decode(kind, job).ok()?;
    let valid = validate_any(kind, &*job, &Settings::default()).ok()?;
    if !render::warnings(&valid).is_empty() {
        return None;
    }
    render::all(&valid).values().ok()
}

/// Creates an object without storing it.
async fn create(of: &Kind, client: &Client, object: &Value) -> Result<(), String> {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let resource = match text("kind") {
        "Pod" => ApiResource::erase::<Pod>(&()),
        "Service" => ApiResource::erase::<Service>(&()),
        kind => {
            let of_kind = of.objects().into_iter().find(|known| known.kind == kind);
            let Some(of_kind) = of_kind else {
                return Err("the kind does not declare it with Framework::objects".to_owned());
            };
            ApiResource {
                group: of_kind.group.to_owned(),
                version: of_kind.version.to_owned(),
                api_version: text("apiVersion").to_owned(),
                kind: kind.to_owned(),
                plural: of_kind.plural.to_owned(),
            }
        }
    };
    let mut object: DynamicObject =
        serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    object.metadata.namespace = None;
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let api = Api::<DynamicObject>::default_namespaced_with(client.clone(), &resource);
    match api.create(&params, &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(error) => Err(error.to_string()),
    }
}

fn named(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Returns the first object that differs, and the path in it.
fn first_difference(one: &[Value], other: &[Value]) -> Option<(String, String)> {
    if one.len() != other.len() {
        return Some(("number of objects".to_owned(), "the list".to_owned()));
    }
    let mut pairs = one.iter().zip(other);
    pairs.find_map(|(one, other)| Some((named(one), path_of_difference(one, other, "")?)))
}

fn path_of_difference(one: &Value, other: &Value, path: &str) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => one
            .iter()
            .find_map(|(key, value)| path_of_difference(value, &other[key], &kube_schema::field(path, key))),
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => (0..)
            .zip(one.iter().zip(other))
            .find_map(|(n, (one, other))| path_of_difference(one, other, &kube_schema::item(path, n))),
        _ => (one != other).then(|| path.to_owned()),
    }
}
