//! The kinds of job that this program runs.

use std::ops::Deref;
use std::sync::OnceLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use local_node::AdjustEnv;
use serde_json::Value;
use training_job::{FieldErrors, Settings, TrainingJob};
use training_job_controller::DynKind;
use training_job_jax::JAXJob;
use training_job_mlkube::{MxJob, TfJob};
use training_job_mpi::MPIJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_tensorflow::TFJob;
use training_job_xgboost::XGBoostJob;

use crate::diff::planned::planned_objects;
use crate::explain::dry_run::timeline;
use crate::explain::timeline::JobTimeline;

/// Returns the kinds, in the order of help texts. A new framework gets one line here.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind::new::<MXJob>(training_job_mxnet::adjust_local),
        Kind::new::<TFJob>(training_job_tensorflow::adjust_local),
        Kind::new::<XGBoostJob>(|_, _| {}),
        Kind::new::<PyTorchJob>(training_job_pytorch::adjust_local),
        Kind::new::<JAXJob>(training_job_jax::adjust_local),
        Kind::new::<PaddleJob>(training_job_paddle::adjust_local),
        Kind::new::<MPIJob>(training_job_mpi::adjust_local),
        Kind::new::<TfJob>(training_job_tensorflow::adjust_local),
        Kind::new::<MxJob>(training_job_mxnet::adjust_local),
    ]
}

/// Returns the objects that the operator would create now for a job with these objects in the cluster.
type PlannedObjects =
    fn(job: &Value, settings: &Settings, running: &[Value]) -> Result<Vec<Value>, FieldErrors>;

/// A kind of job, with what this program adds to the library's functions.
pub(crate) struct Kind {
    pub(crate) dyn_kind: DynKind,
    definition: OnceLock<CustomResourceDefinition>,
    /// Adjusts the environment of replicas that run as local processes.
    pub(crate) adjust_local: AdjustEnv,
    /// Simulates a job that was written under an API version.
    pub(crate) timeline:
        fn(job: &Value, version: &str, settings: &Settings) -> Result<JobTimeline, FieldErrors>,
    /// Plans the objects of a job in a cluster, other than services and pods.
    pub(crate) planned_objects: PlannedObjects,
}

impl Kind {
    fn new<J: TrainingJob>(adjust_local: AdjustEnv) -> Self {
        Self {
            dyn_kind: DynKind::new::<J>(),
            definition: OnceLock::new(),
            adjust_local,
            timeline: timeline::<J>,
            planned_objects: planned_objects::<J>,
        }
    }

    /// Returns the custom resource definition. It is built on first use, because that takes longer than all other work
    /// of a short command.
    pub(crate) fn definition(&self) -> &CustomResourceDefinition {
        self.definition.get_or_init(|| {
            #[expect(clippy::expect_used, reason = "a test builds the definition of each kind")]
            self.dyn_kind
                .definition()
                .expect("the definition of each kind can be built")
        })
    }
}

impl Deref for Kind {
    type Target = DynKind;

    fn deref(&self) -> &DynKind {
        &self.dyn_kind
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::LazyLock;

    use super::*;
    use training_job_controller::process;

    use proptest::prelude::*;
    use serde_json::json;
    use training_job::render::warnings;
    use training_job::validate::manifest::{self, Schemas};
    use training_job::validate::validate;

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

    /// Returns each permission of these rules as `group/resource verb`.
    fn permissions(rules: &[Value]) -> BTreeSet<String> {
        let texts = |rule: &Value, key: &str| -> Vec<String> {
            let all = rule[key].as_array().into_iter().flatten();
            all.map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let mut all = BTreeSet::new();
        for rule in rules {
            for group in texts(rule, "apiGroups") {
                for resource in texts(rule, "resources") {
                    let verbs = texts(rule, "verbs").into_iter();
                    all.extend(verbs.map(|verb| format!("{group}/{resource} {verb}")));
                }
            }
        }
        all
    }

    #[test]
    fn the_role_has_the_permissions_that_the_library_names() {
        let role = kube_manifest::parse(include_str!("../../manifests/base/role.yaml")).unwrap();
        let role = permissions(role[0].to_json()["rules"].as_array().unwrap());
        // manifests/mpi adds those for MPIJobs.
        let kinds = kinds().into_iter().filter(|kind| kind.name() != "MPIJob");
        let kinds: Vec<DynKind> = kinds.map(|kind| kind.dyn_kind).collect();
        let named = permissions(&process::rules(&kinds));
        let missing: Vec<_> = named.difference(&role).collect();
        let kept = ["mlkube.io/tfjobs delete", "mxnet.mlkube.io/mxjobs delete"];
        assert_eq!(missing, kept, "these kinds have no time to live");
        assert!(
            role.is_subset(&named),
            "{:?}",
            role.difference(&named).collect::<Vec<_>>()
        );
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
