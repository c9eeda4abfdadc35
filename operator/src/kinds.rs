//! The kinds of job that this operator runs.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use kube::api::ApiResource;
use local_node::{AdjustEnv, Jobs};
use serde_json::Value;
use training_job::FieldErrors;
use training_job::process::Kinds;
use training_job::render::warnings;
use training_job::{Framework, Settings, TrainingJob, admission, render, validate};
use training_job_mxnet::MXJob;
use training_job_tensorflow::TFJob;
use training_job_xgboost::XGBoostJob;

use crate::explain;

/// The UID of a job that no API server has seen, in the owner references of what it would get.
pub(crate) const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// What can be done with a job of some kind without knowing its type.
pub(crate) struct Kind {
    /// The custom resource definition to install.
    /// Made when it is first asked for: it takes longer than anything else that a short command does.
    pub(crate) definition: LazyLock<CustomResourceDefinition>,
    /// The same without rules, which only an API server evaluates: all bounds stand in the schema.
    shape: fn() -> CustomResourceDefinition,
    schemas: OnceLock<BTreeMap<String, JSONSchemaProps>>,
    /// Where its jobs are in the API.
    pub(crate) resource: ApiResource,
    /// What the operator has against a job, or what its author should know of a good one.
    pub(crate) check: fn(&Value) -> Result<FieldErrors, Refusal>,
    /// All objects that a valid job gets, in the order in which the operator makes them.
    pub(crate) render: fn(&Value) -> Result<Vec<Value>, Refusal>,
    /// What the operator does in a valid job's life.
    pub(crate) explain: fn(&Value) -> Result<explain::Life, Refusal>,
    /// Adds it to the kinds of an operator on a cluster.
    add: fn(Kinds) -> Kinds,
    /// Adds it to the kinds of a local run.
    pub(crate) add_local: fn(Jobs, AdjustEnv) -> Jobs,
    /// Its names and roles.
    pub(crate) framework: Framework,
    /// What its replicas need to be told when they run as local processes.
    pub(crate) adjust_local: AdjustEnv,
}

/// Why an object is no valid job.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It does not have a job's shape.
    Unreadable(String),
    /// Fields are wrong.
    Invalid(FieldErrors),
}

/// All kinds, for an operator on a cluster.
pub(crate) fn for_clusters() -> Kinds {
    kinds().iter().fold(Kinds::default(), |all, kind| (kind.add)(all))
}

/// All kinds.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind::of::<MXJob>(training_job_mxnet::adjust_local),
        Kind::of::<TFJob>(training_job_tensorflow::adjust_local),
        Kind::of::<XGBoostJob>(|_, _| {}),
    ]
}

impl Kind {
    fn of<J: TrainingJob>(adjust_local: AdjustEnv) -> Self {
        Self {
            schemas: OnceLock::new(),
            definition: LazyLock::new(|| {
                #[allow(
                    clippy::expect_used,
                    reason = "crds/ has the definition of each kind that is here, and a test makes it"
                )]
                admission::definition::<J>().expect("a kind of this program is defined as it should be")
            }),
            shape: J::definition,
            check: check::<J>,
            render: render_all::<J>,
            explain: explain::life::<J>,
            add: Kinds::with::<J>,
            add_local: Jobs::kind_with::<J>,
            framework: J::FRAMEWORK,
            adjust_local,
            resource: ApiResource::erase::<J>(&()),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.resource.kind
    }

    /// The API versions under which it may be written, the one that is stored first.
    pub(crate) fn api_versions(&self) -> Vec<String> {
        let mut versions: Vec<_> = self.definition.spec.versions.iter().collect();
        versions.sort_by_key(|v| !v.storage);
        versions
            .into_iter()
            .map(|v| format!("{}/{}", self.definition.spec.group, v.name))
            .collect()
    }

    /// The schema of a job written under `api_version`, if the kind has that version.
    pub(crate) fn schema(&self, api_version: &str) -> Option<&JSONSchemaProps> {
        self.schemas
            .get_or_init(|| schemas(&(self.shape)()))
            .get(api_version)
    }
}

/// The schemas by API version.
///
/// Where an older version takes a part as it comes, that part must fit the stored version: it is
/// stored and read as such.
fn schemas(definition: &CustomResourceDefinition) -> BTreeMap<String, JSONSchemaProps> {
    let versions = || definition.spec.versions.iter();
    let schema =
        |version: &CustomResourceDefinitionVersion| version.schema.as_ref()?.open_api_v3_schema.clone();
    let stored = versions().find(|v| v.storage).and_then(schema);
    let stored = stored.unwrap_or_default();
    versions()
        .filter_map(|version| {
            let mut own = schema(version)?;
            fill_in(&mut own, &stored);
            Some((format!("{}/{}", definition.spec.group, version.name), own))
        })
        .collect()
}

fn fill_in(schema: &mut JSONSchemaProps, stored: &JSONSchemaProps) {
    if schema.x_kubernetes_preserve_unknown_fields == Some(true) && schema.properties.is_none() {
        *schema = stored.clone();
        return;
    }
    for (key, property) in schema.properties.iter_mut().flatten() {
        if let Some(stored) = stored.properties.as_ref().and_then(|p| p.get(key)) {
            fill_in(property, stored);
        }
    }
    if let (Some(JSONSchemaPropsOrBool::Schema(own)), Some(JSONSchemaPropsOrBool::Schema(stored))) =
        (&mut schema.additional_properties, &stored.additional_properties)
    {
        fill_in(own, stored);
    }
    if let (Some(JSONSchemaPropsOrArray::Schema(own)), Some(JSONSchemaPropsOrArray::Schema(stored))) =
        (&mut schema.items, &stored.items)
    {
        fill_in(own, stored);
    }
}

pub(crate) fn read<J: TrainingJob>(object: &Value) -> Result<J, Refusal> {
    let mut job: J = serde::Deserialize::deserialize(object)
        .map_err(|error: serde_json::Error| Refusal::Unreadable(error.to_string()))?;
    job.meta_mut().uid.get_or_insert_with(|| NO_UID.to_owned());
    Ok(job)
}

fn check<J: TrainingJob>(object: &Value) -> Result<FieldErrors, Refusal> {
    let job: J = read(object)?;
    let valid = validate(&job, &Settings::default()).map_err(Refusal::Invalid)?;
    Ok(warnings(&valid))
}

fn render_all<J: TrainingJob>(object: &Value) -> Result<Vec<Value>, Refusal> {
    let job: J = read(object)?;
    let valid = validate(&job, &Settings::default()).map_err(Refusal::Invalid)?;
    let (services, pods) = render::all(&valid);
    let services = services.into_iter().map(serde_json::to_value);
    let pods = pods.into_iter().map(serde_json::to_value);
    services
        .chain(pods)
        .collect::<Result<_, _>>()
        .map_err(|error| Refusal::Unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::OnceLock;

    use proptest::prelude::*;
    use serde_json::json;
    use training_job::validate::mend::mend;
    use training_job::validate::schema;

    use crate::manifest::documents;

    fn case() -> Value {
        let (documents, _) = documents(include_str!("../tests/cases/rich-template.yaml"));
        documents[0].to_json()
    }

    /// Pointers to every value in `value`.
    fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
        all.push(at.to_owned());
        match value {
            Value::Array(items) => {
                for (n, item) in items.iter().enumerate() {
                    pointers(item, &format!("{at}/{n}"), all);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    pointers(member, &format!("{at}/{key}"), all);
                }
            }
            _ => {}
        }
    }

    fn anything() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(json!(null)),
            Just(json!({})),
            Just(json!([])),
            Just(json!([null])),
            Just(json!({"name": 5, "x": null})),
            any::<bool>().prop_map(Value::from),
            // The schema of a port's number or name is that of a quantity, which may have 64 bits.
            any::<i32>().prop_map(Value::from),
            (-1e6..1e6).prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ]
    }

    proptest! {
        /// Whatever the schema lets pass, or is mended, decodes; so the user reads of fields, and
        /// never of Rust types.
        #[test]
        fn a_mended_object_is_readable(changes in prop::collection::vec((any::<prop::sample::Index>(), anything()), 1..4)) {
            static KIND: OnceLock<Kind> = OnceLock::new();
            let kind = KIND.get_or_init(|| Kind::of::<MXJob>(|_, _| {}));
            let schema = kind.schema("kubeflow.org/v1").unwrap();
            let mut object = case();
            for (at, value) in changes {
                let mut all = Vec::new();
                pointers(&object, "", &mut all);
                // The object itself stays one: another is refused before.
                let pointer = &all[1 + at.index(all.len() - 1)];
                *object.pointer_mut(pointer).unwrap() = value;
                if !object["spec"].is_object() || !object["metadata"].is_object() {
                    object = case();
                }
            }
            let errors = schema::check(schema, &object);
            let removed = mend(schema, &mut object);
            prop_assert!(removed.is_empty() || !errors.is_empty());
            for path in &removed {
                prop_assert!(errors.iter().any(|e| &e.path == path), "{path} was removed without an error");
            }
            let refused = (kind.check)(&object);
            prop_assert!(!matches!(refused, Err(Refusal::Unreadable(_))), "{refused:?}");
        }
    }
}
