//! Writes a job's status.

use kube::api::{Patch, PatchParams, Request};
use kube::{Client, Resource};
use serde::de::Error as _;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::api::JobStatus;
use crate::job::TrainingJob;
use kube_follow::{CallError, CallTimeout};

use super::stored::Stored;

/// What became of a status.
pub(super) enum Written {
    /// There was none to write.
    Nothing,
    /// It is stored.
    Now,
    /// The server took it and stored what it had.
    Unchanged,
    /// The server takes no status of a job like this.
    Refused,
    /// It is to be written then.
    Later(Instant),
}

/// Patches the status of `job` from what it says to `next`, and returns the job as stored.
///
/// The patch names the version that `next` was made from, so a status is never written over one that
/// this controller has not seen.
///
/// # Errors
/// Code 409 if the job has changed since; code 404 if it is gone; none if the answer is about anything else.
pub(super) async fn write_status<J: TrainingJob>(
    client: &Client,
    timeout: CallTimeout,
    job: &Stored<J>,
    old: &JobStatus,
    next: &JobStatus,
) -> Result<Stored<J>, CallError> {
    let meta = job.meta();
    let (namespace, name) = (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    );
    let change = change(old, next).map_err(|e| CallError::Api(kube::Error::SerdeError(e)))?;
    let patch = json!({
        "metadata": { "resourceVersion": meta.resource_version, "uid": meta.uid },
        "status": change,
    });
    let path = Stored::<J>::url_path(&(), Some(&namespace));
    let patch = Patch::Merge(patch);
    let request = Request::new(path).patch_subresource("status", &name, &PatchParams::default(), &patch);
    let request = request.map_err(|e| CallError::Api(kube::Error::BuildRequest(e)))?;
    let answer = timeout.call(client.request_text(request)).await?;
    let answer = Stored::read(&answer).map_err(|e| CallError::Api(kube::Error::SerdeError(e)))?;
    if answer.meta().uid == meta.uid {
        Ok(answer)
    } else {
        let error = serde_json::Error::custom("the answer is about something else");
        Err(CallError::Api(kube::Error::SerdeError(error)))
    }
}

/// The merge patch that makes `next` of a status that reads as `old`.
pub(super) fn change(old: &JobStatus, next: &JobStatus) -> serde_json::Result<Value> {
    Ok(difference(
        &serde_json::to_value(old)?,
        serde_json::to_value(next)?,
    ))
}

/// The merge patch that makes `new` of `old` (RFC 7386).
fn difference(old: &Value, new: Value) -> Value {
    let (old, new) = match (old, new) {
        (Value::Object(old), Value::Object(new)) => (old, new),
        (_, new) => return new,
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(&key) {
            Some(before) if *before == value => {}
            Some(before) => {
                patch.insert(key, difference(before, value));
            }
            None => {
                patch.insert(key, value);
            }
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_says_what_changed_and_nothing_else() {
        let old = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1, 2], "f": {}});
        let new = json!({"a": 1, "b": {"c": 3}, "e": [2], "f": {}, "g": {"h": {}}});
        assert_eq!(
            difference(&old, new),
            json!({"b": {"c": 3, "d": null}, "e": [2], "g": {"h": {}}})
        );
        assert_eq!(difference(&old, old.clone()), json!({}));
    }
}
