//! MXJobs whose replicas are a mapping: `v1alpha2`, `v1beta1`, and `v1` of the stand-alone operator.

use kube_manifest::{Content, Entry, Node, Position};

use super::log::Log;
use super::tree::{child, entries, entry, has, insert, is_null, mapping, put, scalar, take, text};

/// What a run policy has that was at the top of the spec once.
pub(crate) const POLICIES: [&str; 5] = [
    "cleanPodPolicy",
    "ttlSecondsAfterFinished",
    "activeDeadlineSeconds",
    "backoffLimit",
    "schedulingPolicy",
];

/// Where the operator looks for the key by which a tuner finds its servers.
const TUNER_KEY: [&str; 3] = ["template", "metadata", "annotations"];

/// Makes an MXJob one of today's shape. `is_old` says whether it is of a version before `v1`.
pub(super) fn convert(job: &mut Node, is_old: bool, log: &mut Log<'_>) {
    let at = job.at;
    let Some(spec) = child(job, "spec") else { return };
    if is_old {
        name_mode(spec, at, log);
    }
    let is_inline = move_policies(spec, log);
    if is_old || is_inline {
        keep_defaults(spec, at, log);
    }
    move_scheduler(spec, log);
    for_each_role(spec, |name, role| move_label(name, role, log));
}

/// `v1` wants a mode, and the versions before had none or did not ask for it.
fn name_mode(spec: &mut Node, at: Position, log: &mut Log<'_>) {
    let mode = spec.text("jobMode").unwrap_or_default();
    if mode.is_empty() {
        take(spec, "jobMode");
        insert(spec, 0, entry("jobMode", scalar("MXTrain")));
        log.note(at, "spec.jobMode", "it is MXTrain, as it was without one");
    }
}

/// Moves the policies from the top of the spec into the run policy. Says whether the job was read as one of the
/// stand-alone operator: it had policies there, and none in `runPolicy`.
fn move_policies(spec: &mut Node, log: &mut Log<'_>) -> bool {
    let nested = spec.get("runPolicy");
    let is_nested = nested.is_some_and(|nested| POLICIES.iter().any(|policy| has(nested, policy)));
    let mut found: Vec<(Entry, String)> = Vec::new();
    if let Some(mut go) = take(spec, "RunPolicy") {
        // A client in Go has written the embedded structure under its name.
        log.moved(go.at, "spec.RunPolicy", "spec.runPolicy");
        let policies = entries(&mut go.value).map(std::mem::take);
        if policies.is_none() && !is_null(&go.value) {
            log.wrong(go.at, "spec.RunPolicy", "it is no mapping", "name policies in it");
        }
        let policies = policies.unwrap_or_default();
        found.extend(policies.into_iter().map(|entry| {
            let path = format!("spec.RunPolicy.{}", entry.key);
            (entry, path)
        }));
    }
    for policy in POLICIES {
        if let Some(entry) = take(spec, policy) {
            found.push((entry, format!("spec.{policy}")));
        }
    }
    let is_inline = !found.is_empty() && !is_nested;
    for (policy, path) in found {
        let to = format!("spec.runPolicy.{}", policy.key);
        if spec
            .get("runPolicy")
            .is_some_and(|nested| has(nested, &policy.key))
        {
            let counts = format!("it is left out: {}{to} counts", log.prefix);
            log.note(policy.at, &path, counts);
        } else if let Some(nested) = mapping(spec, &["runPolicy"]) {
            log.moved(policy.at, &path, &to);
            put(nested, policy);
        }
    }
    is_inline
}

/// Says what the stand-alone operator did where a job said nothing.
fn keep_defaults(spec: &mut Node, at: Position, log: &mut Log<'_>) {
    if has(spec, "compatibility") {
        return;
    }
    keep_clean_up(spec, at, log);
    let mut by_code = false;
    for_each_role(spec, |_, role| {
        by_code |= role.text("restartPolicy") == Some("ExitCode")
    });
    if by_code {
        put(spec, entry("compatibility", scalar("MXNetOperator")));
        let what =
            "it is MXNetOperator: by ExitCode, 130, 137, 138 and 143 restart a replica, and no other codes";
        log.note(at, "spec.compatibility", what);
    }
}

/// Says which pods it deleted at the end of a job that said nothing.
pub(super) fn keep_clean_up(spec: &mut Node, at: Position, log: &mut Log<'_>) {
    let nested = spec.get("runPolicy");
    let named = nested
        .and_then(|nested| nested.text("cleanPodPolicy"))
        .unwrap_or_default();
    if named.is_empty()
        && let Some(nested) = mapping(spec, &["runPolicy"])
    {
        put(nested, entry("cleanPodPolicy", scalar("All")));
        let what = "it is All, the stand-alone operator's default";
        log.note(at, "spec.runPolicy.cleanPodPolicy", what);
    }
}

/// Moves the scheduler's name into all templates that name none.
pub(super) fn move_scheduler(spec: &mut Node, log: &mut Log<'_>) {
    let Some(named) = take(spec, "schedulerName") else {
        return;
    };
    let Some(name) = text(&named.value).map(str::to_owned) else {
        if !is_null(&named.value) {
            log.wrong(
                named.at,
                "spec.schedulerName",
                "it is no string",
                "name a scheduler",
            );
        }
        return;
    };
    let to = "it is template.spec.schedulerName of all roles now";
    log.note(named.at, "spec.schedulerName", to);
    let mut first = Some(named.at);
    for_each_role(spec, |_, role| {
        if let Some(pod) = mapping(role, &["template", "spec"])
            && pod.text("schedulerName").unwrap_or_default().is_empty()
        {
            let mut new = entry("schedulerName", scalar(&*name));
            if let Some(at) = first.take() {
                new.at = at;
            }
            put(pod, new);
        }
    });
}

/// Moves the tuner's key to where all versions since v1.1.0 of the stand-alone operator look for it.
fn move_label(name: &str, role: &mut Node, log: &mut Log<'_>) {
    let Some(label) = take(role, "label") else { return };
    let path = format!("spec.mxReplicaSpecs.{name}");
    let is_empty = is_null(&label.value) || text(&label.value) == Some("");
    if is_empty {
        log.note(label.at, &format!("{path}.label"), "it is empty and left out");
    } else if let Some(annotations) = mapping(role, &TUNER_KEY) {
        let to = format!("{path}.template.metadata.annotations.tuner-server-key");
        if has(annotations, "tuner-server-key") {
            let counts = format!("it is left out: {}{to} counts", log.prefix);
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

/// Does something with each role.
fn for_each_role(spec: &mut Node, mut f: impl FnMut(&str, &mut Node)) {
    let roles = child(spec, "mxReplicaSpecs").and_then(entries);
    for role in roles.into_iter().flatten() {
        if matches!(role.value.content, Content::Map(_)) {
            f(&role.key, &mut role.value);
        }
    }
}
