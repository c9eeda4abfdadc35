//! A valid job of a manifest or of a cluster.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use training_job::Settings;
use training_job::offline;

use crate::exit::Failure;
use crate::kinds::Kind;

/// A valid job, and where it is from.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its kind.
    pub kind: Arc<Kind>,
    /// The object in the stored version of its kind, without null fields.
    pub object: Value,
    /// The status that a cluster stores; null for a job of a manifest.
    pub(crate) status: Value,
    /// The API version of the manifest, without the group.
    pub(crate) version: String,
    /// The file, as the command's arguments name it.
    pub file: String,
    /// The path of the file below the directory that an argument names; empty for a file that an argument names.
    pub(crate) below: String,
    /// The file and the line at which the job begins, as `file:line`.
    pub origin: String,
}

impl Job {
    /// Returns the job of an object that a cluster stores. Messages name it as `origin`.
    ///
    /// # Errors
    /// The stored job is invalid.
    pub fn stored(kind: Arc<Kind>, object: &impl Serialize, origin: String) -> anyhow::Result<Self> {
        let mut object = serde_json::to_value(object)?;
        let status = object["status"].take();
        let checked = offline::check(&kind, &object);
        let mut object = checked
            .map_err(|errors| anyhow::anyhow!("{origin} is invalid: {errors}"))?
            .object;
        // A kind with several versions may record there by which one the job runs.
        if let Some(version) = status.get("apiVersion") {
            object["status"] = json!({"apiVersion": version});
        }
        Ok(Self {
            version: kind.resource.version.clone(),
            object,
            status,
            file: origin.clone(),
            below: String::new(),
            origin,
            kind,
        })
    }

    /// Returns the services and pods that an operator with these settings creates, in the order of creation.
    pub fn render(&self, settings: &Settings) -> Result<Vec<Value>, Failure> {
        offline::render(&self.kind, &self.object, settings)
            .map_err(|errors| Failure::new(&self.origin, errors))
    }
}
