//! The kinds of job that this program runs.

use training_job_cli::Kinds;
use training_job_jax::JAXJob;
use training_job_mlkube::{MxJob, TfJob};
use training_job_mpi::MPIJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_tensorflow::TFJob;

use crate::installation::installation;

/// Returns the kinds, with the environment of those whose processes need another one on a machine than in a cluster.
pub(crate) fn kinds() -> Kinds {
    Kinds::from(training_review::kinds())
        .adjust_env::<MXJob>(training_job_mxnet::adjust_local)
        .adjust_env::<TFJob>(training_job_tensorflow::adjust_local)
        .adjust_env::<PyTorchJob>(training_job_pytorch::adjust_local)
        .adjust_env::<JAXJob>(training_job_jax::adjust_local)
        .adjust_env::<PaddleJob>(training_job_paddle::adjust_local)
        .adjust_env::<MPIJob>(training_job_mpi::adjust_local)
        .adjust_env::<TfJob>(training_job_tensorflow::adjust_local)
        .adjust_env::<MxJob>(training_job_mxnet::adjust_local)
        .installation(installation())
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use serde_json::{Value, json};
    use training_job::render::warnings;
    use training_job::validate::{manifest, validate_any};
    use training_job::{Kind, Settings};
    use training_job_mxnet::MXJob;

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
            static KIND: LazyLock<Kind> = LazyLock::new(Kind::of::<MXJob>);
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
            match manifest::check(&KIND, &object) {
                Ok(job) => {
                    prop_assert!(
                        keeps(&job.object, &object),
                        "something was removed without an error: {} of {object}",
                        job.object
                    );
                    // Rendering and rules do not panic either, whatever is in the fields.
                    prop_assert!(validate_any(&KIND, &*job.job, &Settings::default()).map(|job| warnings(&job)).is_ok());
                }
                Err(errors) => prop_assert!(errors.iter().all(|e| !e.path.is_empty()), "{errors}"),
            }
        }
    }
}
