//! Converts what only MXJobs have: the mode, the tuners' key, and the exit codes of the stand-alone operator.

use kube_manifest::{Entry, Node, Position};

use super::log::Log;
use super::mapped::{self, MXNET};
use super::policies::keep_clean_up;
use super::tree::{child, entry, for_each_role, has, insert, is_null, mapping, put, scalar, take, text};

const OPERATOR: &str = "stand-alone operator";

/// The path of the annotations. A tuner finds its servers by a key in them.
const TUNER_KEY: [&str; 3] = ["template", "metadata", "annotations"];

/// Converts an MXJob with a mapping of roles. `is_old` is true for a former API version.
pub(super) fn convert(job: &mut Node, is_old: bool, log: &mut Log<'_>) {
    let at = job.at;
    if is_old && let Some(spec) = child(job, "spec") {
        mode(spec, at, log);
    }
    let is_former = mapped::convert(job, &MXNET, is_old, log);
    let Some(spec) = child(job, "spec") else { return };
    if is_former {
        keep_defaults(spec, at, log);
    }
    move_labels(spec, log);
}

/// Moves the tuners' keys to the annotation that the stand-alone operator reads since v1.1.0.
pub(super) fn move_labels(spec: &mut Node, log: &mut Log<'_>) {
    for_each_role(spec, MXNET.specs, |name, role| move_label(name, role, log));
}

/// Writes the current mode. Former versions had none, did not require it, or used other names.
pub(super) fn mode(spec: &mut Node, at: Position, log: &mut Log<'_>) {
    let named = spec.text("jobMode").unwrap_or_default().to_owned();
    let place = child(spec, "jobMode").map_or(at, |mode| mode.at);
    match &*named {
        "" => {
            take(spec, "jobMode");
            insert(spec, 0, entry("jobMode", scalar("MXTrain")));
            return log.note(at, "spec.jobMode", "set to MXTrain, the former default");
        }
        "dist" => log.note(place, "spec.jobMode", "changed from dist to MXTrain"),
        "local" => {
            let what = "changed from local to MXTrain with one worker, which also gets the DMLC variables";
            log.note(place, "spec.jobMode", what);
        }
        "MXTrain" | "MXTune" => return,
        _ => {
            let problem = format!("unknown mode {named:?}");
            return log.error(place, "spec.jobMode", problem, "use dist or local");
        }
    }
    if let Some(mode) = child(spec, "jobMode") {
        mode.content = scalar("MXTrain").content;
    }
}

/// Writes the stand-alone operator's defaults into a job that does not set these fields.
fn keep_defaults(spec: &mut Node, at: Position, log: &mut Log<'_>) {
    if has(spec, "compatibility") {
        return;
    }
    keep_clean_up(spec, ("All", OPERATOR), at, log);
    let mut by_code = false;
    for_each_role(spec, MXNET.specs, |_, role| {
        by_code |= role.text("restartPolicy") == Some("ExitCode");
    });
    if by_code {
        put(spec, entry("compatibility", scalar("MXNetOperator")));
        let what =
            "set to MXNetOperator: with ExitCode, only exit codes 130, 137, 138 and 143 restart a replica";
        log.note(at, "spec.compatibility", what);
    }
}

fn move_label(name: &str, role: &mut Node, log: &mut Log<'_>) {
    let Some(label) = take(role, "label") else { return };
    let path = format!("spec.mxReplicaSpecs.{name}");
    let is_empty = is_null(&label.value) || text(&label.value) == Some("");
    if is_empty {
        log.note(label.at, &format!("{path}.label"), "removed: it is empty");
    } else if let Some(annotations) = mapping(role, &TUNER_KEY) {
        let to = format!("{path}.template.metadata.annotations.tuner-server-key");
        if has(annotations, "tuner-server-key") {
            let counts = format!("removed: {}{to} takes precedence", log.prefix);
            log.note(label.at, &format!("{path}.label"), counts);
        } else {
            log.moved(label.at, &format!("{path}.label"), &to);
            put(
                annotations,
                Entry {
                    key: "tuner-server-key".to_owned(),
                    ..label
                },
            );
        }
    }
}
