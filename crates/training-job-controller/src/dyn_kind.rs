//! A kind of job by name, for programs that read jobs of several kinds.

use std::sync::{Arc, OnceLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;
use serde_json::Value;
use training_job::admission::{self, DefinitionError, check_framework};
use training_job::api::JobStatus;
use training_job::render::{self, decode, warnings};
use training_job::validate::manifest::{self, Schemas};
use training_job::validate::{other_manager, validate};
use training_job::{FieldErrors, Framework, Settings, TrainingJob};

use crate::Operator;
use crate::hook_panic::as_error;

/// A kind of job whose Rust type is erased: its functions take jobs as JSON.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DynKind {
    /// The resource, with the stored version.
    pub resource: ApiResource,
    /// The declarations of the kind's author.
    pub framework: Framework,
    /// Derived on first use, because that takes longer than checking a job.
    schemas: Arc<OnceLock<Schemas>>,
    functions: Functions,
}

#[derive(Clone, Copy, Debug)]
struct Functions {
    manage: fn(Operator) -> Operator,
    check_framework: fn() -> Result<(), DefinitionError>,
    definition: fn() -> Result<CustomResourceDefinition, DefinitionError>,
    definition_without_rules: fn() -> CustomResourceDefinition,
    schemas: fn() -> Schemas,
    check: fn(&Schemas, &Value) -> Result<CheckedJob, FieldErrors>,
    validate: fn(&Value, &Settings) -> Result<(), FieldErrors>,
    render: fn(&Value, &Settings) -> Result<Vec<Value>, FieldErrors>,
    status: fn(&Value) -> JobStatus,
    example: fn() -> Value,
}

/// A valid job of a manifest.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckedJob {
    /// The object in the stored version of its kind, without its status and null fields.
    pub object: Value,
    /// Settings that are valid but almost certainly a mistake.
    pub warnings: FieldErrors,
    /// The field that gives the job to another controller, and the name of that controller.
    pub other_manager: Option<(String, String)>,
}

impl DynKind {
    /// Returns the kind of the jobs of type `J`.
    pub fn new<J: TrainingJob>() -> Self {
        Self {
            resource: ApiResource::erase::<J>(&()),
            framework: J::FRAMEWORK,
            schemas: Arc::default(),
            functions: Functions {
                manage: Operator::manage::<J>,
                check_framework: check_framework::<J>,
                definition: admission::definition::<J>,
                definition_without_rules: J::definition,
                schemas: Schemas::new::<J>,
                check: check::<J>,
                validate: |object, settings| validate(&decode::<J>(object)?, settings).map(drop),
                render: render_objects::<J>,
                status: |object| {
                    decode::<J>(object)
                        .ok()
                        .and_then(|job| job.status().cloned())
                        .unwrap_or_default()
                },
                example: J::example,
            },
        }
    }

    /// Returns the name of the kind, such as `MXJob`.
    pub fn name(&self) -> &str {
        &self.resource.kind
    }

    /// Adds the kind to the kinds that `operator` manages.
    pub fn manage(&self, operator: Operator) -> Operator {
        (self.functions.manage)(operator)
    }

    /// Checks the declarations of the kind's author, without the definition, which takes time and 12 MB.
    ///
    /// # Errors
    /// The declarations are inconsistent.
    pub fn check_framework(&self) -> Result<(), DefinitionError> {
        (self.functions.check_framework)()
    }

    /// Builds the custom resource definition.
    ///
    /// # Errors
    /// The declarations of the kind's author are inconsistent.
    pub fn definition(&self) -> Result<CustomResourceDefinition, DefinitionError> {
        (self.functions.definition)()
    }

    /// Builds the custom resource definition without CEL rules, for an API server that does not evaluate them.
    pub fn definition_without_rules(&self) -> CustomResourceDefinition {
        (self.functions.definition_without_rules)()
    }

    /// Returns the schemas of the jobs, by API version.
    pub fn schemas(&self) -> &Schemas {
        self.schemas.get_or_init(self.functions.schemas)
    }

    /// Checks an object of a manifest, as [`manifest::check`] does.
    ///
    /// # Errors
    /// All errors of the job, ordered by path.
    pub fn check(&self, object: &Value) -> Result<CheckedJob, FieldErrors> {
        as_error(self.name(), || (self.functions.check)(self.schemas(), object))
    }

    /// Validates a stored object, as [`validate()`] does.
    ///
    /// # Errors
    /// All errors of the job, ordered by path; one error without a path if the object does not have a job's shape.
    pub fn validate(&self, object: &Value, settings: &Settings) -> Result<(), FieldErrors> {
        as_error(self.name(), || (self.functions.validate)(object, settings))
    }

    /// Returns the objects of a job, in the order in which an operator with these settings creates them.
    ///
    /// # Errors
    /// The job is invalid.
    pub fn render(&self, object: &Value, settings: &Settings) -> Result<Vec<Value>, FieldErrors> {
        as_error(self.name(), || (self.functions.render)(object, settings))
    }

    /// Returns the fields of the spec that a first job needs: [`TrainingJob::example`].
    pub fn example(&self) -> Value {
        (self.functions.example)()
    }

    /// Returns the status of a stored object; the default if it has none.
    pub fn status(&self, object: &Value) -> JobStatus {
        (self.functions.status)(object)
    }
}

fn check<J: TrainingJob>(schemas: &Schemas, object: &Value) -> Result<CheckedJob, FieldErrors> {
    let checked = manifest::check::<J>(schemas, object)?;
    let mut warnings = warnings(&validate(&checked.job, &Settings::default())?);
    for dropped in checked.warnings {
        warnings.push(dropped.path, dropped.problem, dropped.remedy);
    }
    Ok(CheckedJob {
        object: checked.object,
        warnings,
        other_manager: other_manager(&checked.job),
    })
}

fn render_objects<J: TrainingJob>(object: &Value, settings: &Settings) -> Result<Vec<Value>, FieldErrors> {
    let job: J = decode(object)?;
    let valid = validate(&job, settings)?;
    Ok(render::all(&valid).values()?)
}
