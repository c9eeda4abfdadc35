//! The schemas of a kind's definition.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use kube_schema::Schema;
use serde_json::{Map, Value};

/// The schemas of a kind, one for each of its API versions.
#[derive(Clone, Debug)]
pub struct Schemas {
    /// The stored version comes first.
    versions: Vec<SchemaVersion>,
}

/// An API version of the kind.
#[derive(Clone, Debug)]
pub(crate) struct SchemaVersion {
    /// Group and version, such as `example.com/v1`.
    api_version: String,
    pub(crate) schema: Schema,
    /// The values that the API server fills in for missing fields of the spec itself.
    pub(crate) defaults: Map<String, Value>,
}

impl Schemas {
    pub(super) fn new(definition: &CustomResourceDefinition) -> Self {
        Self {
            versions: versions(definition),
        }
    }

    /// Returns the API versions of the kind, such as `example.com/v1`. The stored version comes first.
    pub fn api_versions(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().map(|version| version.api_version.as_str())
    }

    /// Returns the schema of `api_version`, if the kind has that version.
    pub fn get(&self, api_version: &str) -> Option<&Schema> {
        self.version(api_version).map(|version| &version.schema)
    }

    /// Returns the schema of the stored version.
    pub(crate) fn stored(&self) -> Option<&Schema> {
        self.versions.first().map(|version| &version.schema)
    }

    pub(crate) fn version(&self, api_version: &str) -> Option<&SchemaVersion> {
        self.versions
            .iter()
            .find(|version| version.api_version == api_version)
    }
}

/// Returns the versions of a definition, the stored version first.
///
/// A part of an older version that accepts any value must fit the stored version, because the API server stores the
/// object in that version.
fn versions(definition: &CustomResourceDefinition) -> Vec<SchemaVersion> {
    let mut versions: Vec<_> = definition.spec.versions.iter().collect();
    versions.sort_by_key(|version| !version.storage);
    let schema =
        |version: &CustomResourceDefinitionVersion| version.schema.as_ref()?.open_api_v3_schema.clone();
    let stored = versions.first().filter(|v| v.storage).and_then(|v| schema(v));
    let stored = stored.unwrap_or_default();
    versions
        .into_iter()
        .filter_map(|version| {
            let mut own = schema(version)?;
            fill_in(&mut own, &stored);
            Some(SchemaVersion {
                api_version: format!("{}/{}", definition.spec.group, version.name),
                schema: Schema::new(&serde_json::to_value(&own).unwrap_or_default()),
                defaults: defaults(&own),
            })
        })
        .collect()
}

/// Returns the defaults of the fields of the spec itself.
fn defaults(schema: &JSONSchemaProps) -> Map<String, Value> {
    let spec = schema.properties.as_ref().and_then(|p| p.get("spec"));
    let fields = spec.and_then(|spec| spec.properties.as_ref());
    let fields = fields.into_iter().flatten();
    let filled = fields.filter_map(|(field, schema)| Some((field.clone(), schema.default.clone()?.0)));
    filled.collect()
}

/// Replaces the parts of `schema` that accept any value by those of the stored version.
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
