//! The kinds of job that this program runs.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;
use local_node::AdjustEnv;
use serde_json::Value;
use training_job::render::{self, warnings};
use training_job::validate::manifest::{self, Schemas};
use training_job::validate::validate;
use training_job::{FieldErrors, Framework, Settings, TrainingJob, admission};
use training_job_jax::JAXJob;
use training_job_mlkube::{MxJob, TfJob};
use training_job_mpi::MPIJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_tensorflow::TFJob;
use training_job_xgboost::XGBoostJob;

/// An operation that needs the type of a kind's jobs. [`DynKind::visit`] calls it with that type.
pub(crate) trait KindVisitor {
    type Output;

    fn visit<J: TrainingJob>(self) -> Self::Output;
}

pub(crate) struct DynKind {
    job_type: JobType,
    /// The custom resource definition. It is built on first use, because building it takes longer than all other work
    /// of a short command.
    pub(crate) definition: LazyLock<CustomResourceDefinition>,
    /// The schemas of its jobs, by API version. They are built on first use.
    pub(crate) schemas: LazyLock<Schemas>,
    pub(crate) resource: ApiResource,
    pub(crate) framework: Framework,
    /// Adjusts the environment of replicas that run as local processes.
    pub(crate) adjust_local: AdjustEnv,
}

#[derive(Clone, Copy)]
enum JobType {
    MXNet,
    TensorFlow,
    XGBoost,
    PyTorch,
    Jax,
    Paddle,
    Mpi,
    MlkubeMxnet,
    MlkubeTensorFlow,
}

pub(crate) fn kinds() -> Vec<DynKind> {
    vec![
        DynKind::new::<MXJob>(JobType::MXNet, training_job_mxnet::adjust_local),
        DynKind::new::<TFJob>(JobType::TensorFlow, training_job_tensorflow::adjust_local),
        DynKind::new::<XGBoostJob>(JobType::XGBoost, |_, _| {}),
        DynKind::new::<PyTorchJob>(JobType::PyTorch, training_job_pytorch::adjust_local),
        DynKind::new::<JAXJob>(JobType::Jax, training_job_jax::adjust_local),
        DynKind::new::<PaddleJob>(JobType::Paddle, training_job_paddle::adjust_local),
        DynKind::new::<MPIJob>(JobType::Mpi, training_job_mpi::adjust_local),
        DynKind::new::<TfJob>(JobType::MlkubeTensorFlow, training_job_tensorflow::adjust_local),
        DynKind::new::<MxJob>(JobType::MlkubeMxnet, training_job_mxnet::adjust_local),
    ]
}

impl DynKind {
    fn new<J: TrainingJob>(job_type: JobType, adjust_local: AdjustEnv) -> Self {
        Self {
            job_type,
            definition: LazyLock::new(|| {
                #[expect(clippy::expect_used, reason = "a test builds the definition of each kind")]
                admission::definition::<J>().expect("the definition of each kind can be built")
            }),
            schemas: LazyLock::new(Schemas::new::<J>),
            resource: ApiResource::erase::<J>(&()),
            framework: J::FRAMEWORK,
            adjust_local,
        }
    }

    /// Calls `visitor` with the type of this kind's jobs.
    pub(crate) fn visit<F: KindVisitor>(&self, visitor: F) -> F::Output {
        match self.job_type {
            JobType::MXNet => visitor.visit::<MXJob>(),
            JobType::TensorFlow => visitor.visit::<TFJob>(),
            JobType::XGBoost => visitor.visit::<XGBoostJob>(),
            JobType::PyTorch => visitor.visit::<PyTorchJob>(),
            JobType::Jax => visitor.visit::<JAXJob>(),
            JobType::Paddle => visitor.visit::<PaddleJob>(),
            JobType::Mpi => visitor.visit::<MPIJob>(),
            JobType::MlkubeMxnet => visitor.visit::<MxJob>(),
            JobType::MlkubeTensorFlow => visitor.visit::<TfJob>(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.resource.kind
    }

    /// Checks an object of a manifest. Returns all field errors, ordered by path.
    pub(crate) fn check(&self, object: &Value) -> Result<ValidObject, FieldErrors> {
        self.visit(Check {
            schemas: &self.schemas,
            object,
        })
    }

    /// Returns the objects of a job, in the order in which an operator with these settings creates them.
    ///
    /// # Errors
    /// The job is invalid.
    pub(crate) fn render(&self, object: &Value, settings: &Settings) -> Result<Vec<Value>, FieldErrors> {
        self.visit(Render { object, settings })
    }
}

pub(crate) struct ValidObject {
    /// The object in the stored version of its kind, without null fields.
    pub(crate) object: Value,
    /// Settings that are valid but almost certainly a mistake.
    pub(crate) warnings: FieldErrors,
}

struct Check<'a> {
    schemas: &'a Schemas,
    object: &'a Value,
}

impl KindVisitor for Check<'_> {
    type Output = Result<ValidObject, FieldErrors>;

    fn visit<J: TrainingJob>(self) -> Self::Output {
        let checked = manifest::check::<J>(self.schemas, self.object)?;
        let mut warnings = warnings(&validate(&checked.job, &Settings::default())?);
        for dropped in checked.warnings {
            warnings.push(dropped.path, dropped.problem, dropped.remedy);
        }
        Ok(ValidObject {
            object: checked.object,
            warnings,
        })
    }
}

struct Render<'a> {
    object: &'a Value,
    settings: &'a Settings,
}

impl KindVisitor for Render<'_> {
    type Output = Result<Vec<Value>, FieldErrors>;

    fn visit<J: TrainingJob>(self) -> Self::Output {
        let job: J = decode(self.object)?;
        let valid = validate(&job, self.settings)?;
        render::all(&valid).values().map_err(error_of_object)
    }
}

/// Returns an object as a job. A job without a UID gets [`render::NO_UID`].
///
/// # Errors
/// The object does not have a job's shape.
pub(crate) fn decode<J: TrainingJob>(object: &Value) -> Result<J, FieldErrors> {
    let mut job: J = serde::Deserialize::deserialize(object).map_err(error_of_object)?;
    job.meta_mut()
        .uid
        .get_or_insert_with(|| render::NO_UID.to_owned());
    Ok(job)
}

/// Returns an error without a path, for the whole object.
pub(crate) fn error_of_object(error: serde_json::Error) -> FieldErrors {
    let mut errors = FieldErrors::default();
    errors.push("", error.to_string(), "");
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;
    use serde_json::json;

    fn case() -> Value {
        let documents = kube_manifest::parse(include_str!("../tests/cases/rich-template.yaml"));
        documents.unwrap()[0].to_json()
    }

    /// Appends pointers to all values in `value`.
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

    /// Returns true if `kept` contains everything in `given`. `kept` may contain defaults as well. A null member counts
    /// as missing.
    fn keeps(kept: &Value, given: &Value) -> bool {
        match (kept, given) {
            (Value::Object(kept), Value::Object(given)) => {
                let mut members = given.iter().filter(|(_, member)| !member.is_null());
                members.all(|(key, member)| kept.get(key).is_some_and(|kept| keeps(kept, member)))
            }
            (Value::Array(kept), Value::Array(given)) => {
                kept.len() == given.len() && kept.iter().zip(given).all(|(k, g)| keeps(k, g))
            }
            (kept, given) => kept == given,
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
            // Ports have the schema of a quantity, which may have 64 bits.
            any::<i32>().prop_map(Value::from),
            (-1e6..1e6).prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ]
    }

    proptest! {
        /// An object that passes the check also decodes. So error messages contain fields, and never Rust types.
        #[test]
        fn an_object_without_errors_decodes(changes in prop::collection::vec((any::<prop::sample::Index>(), anything()), 1..4)) {
            static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::new::<MXJob>);
            let mut object = case();
            for (at, value) in changes {
                let mut all = Vec::new();
                pointers(&object, "", &mut all);
                // The root stays an object, because other values are rejected before the check.
                let pointer = &all[1 + at.index(all.len() - 1)];
                *object.pointer_mut(pointer).unwrap() = value;
                if !object["spec"].is_object() || !object["metadata"].is_object() {
                    object = case();
                }
            }
            match manifest::check::<MXJob>(&SCHEMAS, &object) {
                Ok(job) => {
                    prop_assert!(
                        keeps(&job.object, &object),
                        "something was removed without an error: {} of {object}",
                        job.object
                    );
                    // Rendering and rules do not panic either, whatever is in the fields.
                    prop_assert!(validate(&job.job, &Settings::default()).map(|job| warnings(&job)).is_ok());
                }
                Err(errors) => prop_assert!(errors.iter().all(|e| !e.path.is_empty()), "{errors}"),
            }
        }
    }
}
