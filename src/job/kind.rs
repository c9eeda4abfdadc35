//! A kind of job as a value.

use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;
use serde_json::Value;

use super::check::AnyCheck;
use super::{AnyJob, Framework, ObjectKind, Schemas, SharedEnvironment, TrainingJob};

/// A kind of job: its declarations, and how to decode its jobs. A program makes one for each of its kinds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Kind {
    /// The resource, with the stored version.
    pub resource: ApiResource,
    /// The declarations of the kind's author.
    pub framework: Framework,
    derived: Arc<Derived>,
    functions: Functions,
}

/// Values that are derived on first use, because that takes longer than checking a job.
#[derive(Debug, Default)]
struct Derived {
    schemas: OnceLock<Schemas>,
    checks: OnceLock<Vec<Box<dyn AnyCheck>>>,
}

#[derive(Clone, Copy, Debug)]
struct Functions {
    decode: fn(&Value) -> serde_json::Result<Box<dyn AnyJob>>,
    decode_text: fn(&str) -> serde_json::Result<Box<dyn AnyJob>>,
    definition: fn() -> CustomResourceDefinition,
    example: fn() -> Value,
    checks: fn() -> Vec<Box<dyn AnyCheck>>,
}

impl Kind {
    /// Returns the kind of the jobs of type `J`.
    pub fn of<J: TrainingJob>() -> Self {
        Self {
            resource: ApiResource::erase::<J>(&()),
            framework: J::FRAMEWORK,
            derived: Arc::default(),
            functions: Functions {
                decode: |object| Ok(Box::new(J::deserialize(object)?)),
                decode_text: |text| Ok(Box::new(serde_json::from_str::<J>(text)?)),
                definition: J::definition,
                example: J::example,
                checks: || {
                    let checks = J::checks().into_iter();
                    checks
                        .map(|check| -> Box<dyn AnyCheck> { Box::new(check) })
                        .collect()
                },
            },
        }
    }

    /// Returns the name of the kind, such as `MXJob`.
    pub fn name(&self) -> &str {
        &self.resource.kind
    }

    /// Decodes a job.
    ///
    /// # Errors
    /// The object does not have the shape of a job of this kind.
    pub fn decode(&self, object: &Value) -> serde_json::Result<Box<dyn AnyJob>> {
        (self.functions.decode)(object)
    }

    /// Decodes a job from its JSON text. This takes less time than [`decode`](Self::decode), which needs a tree of all fields.
    ///
    /// # Errors
    /// The text is not JSON, or does not have the shape of a job of this kind.
    pub fn decode_text(&self, text: &str) -> serde_json::Result<Box<dyn AnyJob>> {
        (self.functions.decode_text)(text)
    }

    /// Returns the custom resource definition without CEL rules: [`TrainingJob::definition`].
    pub fn definition_without_rules(&self) -> CustomResourceDefinition {
        (self.functions.definition)()
    }

    /// Returns the fields of the spec that a first job needs: [`TrainingJob::example`].
    pub fn example(&self) -> Value {
        (self.functions.example)()
    }

    /// Returns the schemas of the jobs, by API version.
    pub fn schemas(&self) -> &Schemas {
        self.derived
            .schemas
            .get_or_init(|| Schemas::new(&self.definition_without_rules()))
    }

    /// Returns the kinds of the objects that jobs may have beside pods and services: those that the kind declares, and the
    /// ConfigMap of [compact](crate::api::Layout::Compact) jobs.
    pub fn objects(&self) -> Vec<ObjectKind> {
        let declared = self.framework.all_objects().into_iter();
        declared.chain([SharedEnvironment::OBJECT.kind]).collect()
    }

    /// Returns true if some jobs of these kinds have objects of this kind, but only those of a [variant](Framework::variants).
    pub fn only_variants_have<'k>(kinds: impl IntoIterator<Item = &'k Self>, object: ObjectKind) -> bool {
        let of_all = [
            ObjectKind::of::<Pod>(),
            ObjectKind::of::<Service>(),
            SharedEnvironment::OBJECT.kind,
        ];
        let mut in_variants = false;
        for Self { framework, .. } in kinds {
            if of_all.contains(&object) || framework.declares(object, |_| true) {
                return false;
            }
            in_variants |= framework.all_objects().contains(&object);
        }
        in_variants
    }

    pub(crate) fn checks(&self) -> &[Box<dyn AnyCheck>] {
        self.derived.checks.get_or_init(self.functions.checks)
    }
}
