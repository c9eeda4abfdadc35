//! The OpenAPI schemas of built-in kinds, from their Rust types, for `kubectl explain`.

use k8s_openapi::api::{coordination, core::v1, events};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// Returns the schemas of the built-in kinds of a version of a group, and of the types that they contain, by name.
pub(crate) fn schemas(group: &str, version: &str) -> Map<String, Value> {
    let mut settings = SchemaSettings::openapi3();
    settings.meta_schema = None;
    let mut schemas = Schemas {
        generator: SchemaGenerator::new(settings),
        kinds: Vec::new(),
    };
    match (group, version) {
        ("", "v1") => {
            schemas.add::<v1::ConfigMap>("ConfigMap");
            schemas.add::<v1::Event>("Event");
            schemas.add::<v1::Namespace>("Namespace");
            schemas.add::<v1::Node>("Node");
            schemas.add::<v1::Pod>("Pod");
            schemas.add::<v1::ResourceQuota>("ResourceQuota");
            schemas.add::<v1::Secret>("Secret");
            schemas.add::<v1::Service>("Service");
            schemas.add::<v1::ServiceAccount>("ServiceAccount");
        }
        ("coordination.k8s.io", "v1") => schemas.add::<coordination::v1::Lease>("Lease"),
        ("events.k8s.io", "v1") => schemas.add::<events::v1::Event>("Event"),
        ("apiextensions.k8s.io", "v1") => schemas.add::<CustomResourceDefinition>("CustomResourceDefinition"),
        _ => {}
    }
    let mut all = schemas.generator.take_definitions(true);
    for (name, kind) in schemas.kinds {
        if let Some(schema) = all.get_mut(&name) {
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": group, "version": version, "kind": kind}]);
        }
    }
    all
}

struct Schemas {
    generator: SchemaGenerator,
    /// The names of schemas and their kinds.
    kinds: Vec<(String, &'static str)>,
}

impl Schemas {
    fn add<T: JsonSchema>(&mut self, kind: &'static str) {
        let _ = self.generator.subschema_for::<T>();
        self.kinds.push((T::schema_name().into_owned(), kind));
    }
}
