//! The custom resource definition of both versions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSON, JSONSchemaProps,
};
use kube::CustomResourceExt;
use serde_json::{Value, json};
use training_job::api::schema::{schema, strip_descriptions, tidy_definition, without_default_replicas};

use crate::api::{CREATION_POLICIES, IMPLEMENTATIONS, MPIJob};
use crate::v2beta1::{MANAGER, ROOT_KEYS};

/// Returns the definition. The versions have the same fields, because the API server stores jobs as v1, and drops the
/// fields that v1 lacks. Only v2beta1 has defaults: with defaults in v1, each job would get those of v2beta1.
pub(crate) fn of_both_versions(roles_field: &str) -> CustomResourceDefinition {
    let mut definition = tidy_definition(MPIJob::crd(), &[roles_field]);
    // The two roles have different defaults, and the map has one schema for both.
    let replicas = "The number of replicas. Default: 1 for the Launcher; for the Worker 0, and 1 in v2beta1. A role with 0 replicas is absent.";
    without_default_replicas(&mut definition, roles_field, replicas);
    let Some(v1) = definition.spec.versions.first_mut() else {
        return definition;
    };
    let managers = schema(v1).and_then(|schema| field(schema, &["spec", "runPolicy", "managedBy"]));
    if let Some(values) = managers.and_then(|managers| managers.enum_.as_mut()) {
        values.push(JSON(MANAGER.into()));
    }
    let mut v2beta1 = CustomResourceDefinitionVersion {
        name: "v2beta1".to_owned(),
        storage: false,
        ..v1.clone()
    };
    if let Some(schema) = schema(&mut v2beta1) {
        strip_descriptions(schema);
        set_defaults(schema);
    }
    definition.spec.versions.push(v2beta1);
    definition
}

/// Sets the defaults that clients of v2beta1 read, and by which the jobs of this version are known.
fn set_defaults(schema: &mut JSONSchemaProps) {
    let defaults: [(&[&str], Value); 6] = [
        (&["spec", "slotsPerWorker"], json!(1)),
        (&["spec", "mpiImplementation"], json!(IMPLEMENTATIONS[0])),
        (&["spec", "sshAuthMountPath"], json!(ROOT_KEYS)),
        (&["spec", "launcherCreationPolicy"], json!(CREATION_POLICIES[0])),
        (&["spec", "runLauncherAsWorker"], json!(false)),
        (&["spec", "runPolicy", "suspend"], json!(false)),
    ];
    for (path, default) in defaults {
        if let Some(field) = field(schema, path) {
            field.default = Some(JSON(default));
        }
    }
}

fn field<'s>(schema: &'s mut JSONSchemaProps, path: &[&str]) -> Option<&'s mut JSONSchemaProps> {
    path.iter()
        .try_fold(schema, |schema, name| schema.properties.as_mut()?.get_mut(*name))
}
