//! The pod template of parameter servers that have none.

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};

use super::spec::{TfJobSpec, TfReplicaSpec};

const DEFAULT_IMAGE: &str = "tensorflow/tensorflow:1.3.0";

/// A server of TensorFlow 1 or 2 that runs until it is stopped.
const SERVER: &str = r#"import json, os
import tensorflow as tf
config = json.loads(os.environ["TF_CONFIG"])
server = tf.train.Server if hasattr(tf.train, "Server") else tf.distribute.Server
task = config["task"]
server(config["cluster"], job_name=task["type"], task_index=task["index"]).join()
"#;

/// Returns the image of parameter servers without a template, and of TensorBoard.
pub(super) fn image(spec: &TfJobSpec) -> &str {
    let own = spec.tf_image.as_deref().filter(|image| !image.is_empty());
    own.unwrap_or(DEFAULT_IMAGE)
}

/// Returns true if the pods of an entry run the operator's own parameter server.
pub(super) fn is_default_server(entry: &TfReplicaSpec) -> bool {
    let is_default = entry.template.is_none() || entry.is_default_ps == Some(true);
    is_default && entry.role().eq_ignore_ascii_case("PS")
}

/// Returns the template of the operator's own parameter servers.
pub(super) fn default_server(spec: &TfJobSpec) -> PodTemplateSpec {
    let container = Container {
        name: "tensorflow".to_owned(),
        image: Some(image(spec).to_owned()),
        command: Some(["python", "-c", SERVER].map(str::to_owned).into()),
        ..Container::default()
    };
    PodTemplateSpec {
        metadata: None,
        spec: Some(PodSpec {
            containers: vec![container],
            ..PodSpec::default()
        }),
    }
}
