//! The custom resource definition: `v1`, and the older versions that manifests may still use.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSON, JSONSchemaProps, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use training_job::api::schema::{schema, strip_descriptions, tidy_definition};

use crate::{Compatibility, MXJob};

/// Versions of the stand-alone mxnet-operator. Their fields are a subset of ours, so no conversion is needed.
pub(crate) const OLDER: [&str; 2] = ["v1beta1", "v1alpha2"];

/// Returns the definition with all versions.
pub(crate) fn definition() -> CustomResourceDefinition {
    let mut definition = tidy_definition(MXJob::crd(), &["mxReplicaSpecs"]);
    let Some(v1) = definition.spec.versions.first() else {
        return definition;
    };
    let current = v1.clone();
    definition
        .spec
        .versions
        .extend(OLDER.map(|name| older(&current, name)));
    definition
}

/// Returns an older version with the same fields. Pod templates are not checked, because each copy of their schema
/// takes 55 KB, and descriptions are only in `v1`. The default of `compatibility` records that a job of this version
/// was written for the stand-alone operator; the API server stores the default with the job.
fn older(current: &CustomResourceDefinitionVersion, name: &str) -> CustomResourceDefinitionVersion {
    let mut version = CustomResourceDefinitionVersion {
        name: name.to_owned(),
        storage: false,
        deprecated: Some(true),
        ..current.clone()
    };
    // Only the current version has the columns of `kubectl get -o wide`.
    let columns = version.additional_printer_columns.iter_mut();
    columns.for_each(|columns| columns.retain(|c| c.priority.unwrap_or(0) == 0));
    let any = JSONSchemaProps {
        type_: Some("object".to_owned()),
        x_kubernetes_preserve_unknown_fields: Some(true),
        ..JSONSchemaProps::default()
    };
    if let Some(schema) = schema(&mut version) {
        strip_descriptions(schema);
        if let Some(status) = schema.properties.as_mut().and_then(|p| p.get_mut("status")) {
            // The operator writes the status under the stored version.
            status.properties = None;
        }
    }
    let spec = schema(&mut version).and_then(|s| s.properties.as_mut()?.get_mut("spec"));
    if let Some(spec) = spec {
        let compatibility = spec.properties.as_mut().and_then(|p| p.get_mut("compatibility"));
        if let Some(compatibility) = compatibility {
            let [mxnet_operator, _] = Compatibility::WORDS;
            compatibility.default = Some(JSON(mxnet_operator.into()));
        }
        if let Some(properties) = spec.properties.as_mut() {
            // The stand-alone operator did not have these fields, so few manifests contain them. The operator itself
            // checks them.
            for field in ["runPolicy", "schedulingPolicy"] {
                properties.insert(field.to_owned(), any.clone());
            }
        }
        let specs = spec.properties.as_mut().and_then(|p| p.get_mut("mxReplicaSpecs"));
        if let Some(JSONSchemaPropsOrBool::Schema(role)) =
            specs.and_then(|s| s.additional_properties.as_mut())
            && let Some(properties) = role.properties.as_mut()
        {
            properties.insert("template".to_owned(), any);
        }
    }
    version
}
