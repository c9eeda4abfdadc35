//! Converts the fields that only KubeDL's jobs have.

use kube_manifest::{Entry, Node};
use kube_schema::field;

use super::log::Log;
use super::tree::{below, child, entries, for_each_role, put, take};

/// Features of the spec: the field, the problem, and the replacement.
const FEATURES: [(&str, &str, &str); 3] = [
    (
        "cronPolicy",
        "this operator does not run jobs on a schedule",
        "create the job from a CronJob",
    ),
    (
        "modelVersion",
        "this operator does not build models from the output of jobs",
        "build the model's image in a separate step",
    ),
    (
        "cacheBackend",
        "this operator does not create caches for jobs",
        "create the cache first and mount its volume",
    ),
];

/// Reports annotations that only KubeDL reads.
pub(super) fn annotations(job: &mut Node, log: &mut Log<'_>) {
    let Some(all) = below(job, &["metadata", "annotations"]).and_then(entries) else {
        return;
    };
    for annotation in all.iter().filter(|entry| entry.key.starts_with("kubedl.io/")) {
        let path = field("metadata.annotations", &annotation.key);
        log.note(annotation.at, &path, "has no effect: only KubeDL reads it");
    }
}

/// Removes the fields that jobs of other operators lack.
pub(super) fn features(spec: &mut Node, specs: &str, log: &mut Log<'_>) {
    features_at(spec, "spec", log);
    for key in ["runPolicy", "RunPolicy"] {
        if let Some(nested) = child(spec, key) {
            features_at(nested, &format!("spec.{key}"), log);
        }
    }
    for_each_role(spec, specs, |name, role| {
        if let Some(spot) = take(role, "spotReplicaSpec") {
            let path = format!("spec.{specs}.{name}.spotReplicaSpec");
            let what = "all replicas of a role must have the same template";
            log.unsupported(
                spot.at,
                &path,
                what,
                "set the priority class in the role's template",
            );
        }
    });
}

fn features_at(node: &mut Node, path: &str, log: &mut Log<'_>) {
    for (key, what, remedy) in FEATURES {
        if let Some(gone) = take(node, key) {
            log.unsupported(gone.at, &format!("{path}.{key}"), what, remedy);
        }
    }
    let Some(scheduling) = child(node, "schedulingPolicy") else {
        return;
    };
    let path = format!("{path}.schedulingPolicy");
    if let Some(class) = take(scheduling, "priorityClassName") {
        log.moved(
            class.at,
            &format!("{path}.priorityClassName"),
            &format!("{path}.priorityClass"),
        );
        let key = "priorityClass".to_owned();
        put(scheduling, Entry { key, ..class });
    }
    if let Some(number) = take(scheduling, "priority") {
        let what = "a job's priority must be that of a priority class";
        log.unsupported(number.at, &format!("{path}.priority"), what, "set priorityClass");
    }
}
