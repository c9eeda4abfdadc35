//! Moves run policies from the top of the spec, where former versions had them.

use kube_manifest::{Entry, Node, Position};

use super::log::Log;
use super::tree::{child, entries, entry, for_each_role, has, is_null, mapping, put, scalar, take, text};

/// The fields of the run policy that former versions had at the top of the spec.
pub const RUN_POLICY_FIELDS: [&str; 5] = [
    "cleanPodPolicy",
    "ttlSecondsAfterFinished",
    "activeDeadlineSeconds",
    "backoffLimit",
    "schedulingPolicy",
];

/// Former names of policies, and their current names.
const RENAMED: [(&str, &str); 2] = [
    ("cleanupPodPolicy", "cleanPodPolicy"),
    ("ttlSecondsAfterFinishing", "ttlSecondsAfterFinished"),
];

/// Moves the policies from the top of the spec into the run policy. Returns true if the job was written for a
/// stand-alone operator: it had policies there, and none in `runPolicy`.
pub(super) fn move_policies(spec: &mut Node, log: &mut Log<'_>) -> bool {
    move_fields(spec, &RUN_POLICY_FIELDS, log)
}

/// Moves these policies. Returns the same as [`move_policies`].
pub(super) fn move_fields(spec: &mut Node, policies: &[&str], log: &mut Log<'_>) -> bool {
    let nested = spec.get("runPolicy");
    let is_nested = nested.is_some_and(|nested| RUN_POLICY_FIELDS.iter().any(|policy| has(nested, policy)));
    let mut found: Vec<(Entry, String)> = Vec::new();
    if let Some(mut go) = take(spec, "RunPolicy") {
        // Some clients in Go write the embedded struct under the name of its type.
        log.moved(go.at, "spec.RunPolicy", "spec.runPolicy");
        let nested = entries(&mut go.value).map(std::mem::take);
        if nested.is_none() && !is_null(&go.value) {
            log.error(
                go.at,
                "spec.RunPolicy",
                "must be a mapping",
                "put the policies below it",
            );
        }
        found.extend(nested.unwrap_or_default().into_iter().map(|entry| {
            let path = format!("spec.RunPolicy.{}", entry.key);
            (entry, path)
        }));
    }
    for policy in policies {
        if let Some(entry) = take(spec, policy) {
            found.push((entry, format!("spec.{policy}")));
        }
    }
    for (old, current) in RENAMED {
        if let Some(entry) = take(spec, old) {
            let key = current.to_owned();
            found.push((Entry { key, ..entry }, format!("spec.{old}")));
        }
    }
    let is_inline = !found.is_empty() && !is_nested;
    for (policy, path) in found {
        let to = format!("spec.runPolicy.{}", policy.key);
        if spec
            .get("runPolicy")
            .is_some_and(|nested| has(nested, &policy.key))
        {
            let counts = format!("removed: {}{to} takes precedence", log.prefix);
            log.note(policy.at, &path, counts);
        } else if let Some(nested) = mapping(spec, &["runPolicy"]) {
            log.moved(policy.at, &path, &to);
            put(nested, policy);
        }
    }
    is_inline
}

/// Writes the former operator's default clean-up policy if the job does not set one.
pub(super) fn keep_clean_up(
    spec: &mut Node,
    (policy, operator): (&str, &str),
    at: Position,
    log: &mut Log<'_>,
) {
    let nested = spec.get("runPolicy");
    let named = nested
        .and_then(|nested| nested.text("cleanPodPolicy"))
        .unwrap_or_default();
    if named.is_empty()
        && let Some(nested) = mapping(spec, &["runPolicy"])
    {
        put(nested, entry("cleanPodPolicy", scalar(policy)));
        let what = format!("set to {policy}, the {operator}'s default");
        log.note(at, "spec.runPolicy.cleanPodPolicy", what);
    }
}

/// Moves the scheduler's name into all templates that name none.
pub(super) fn move_scheduler(spec: &mut Node, specs: &str, log: &mut Log<'_>) {
    let Some(named) = take(spec, "schedulerName") else {
        return;
    };
    let Some(name) = text(&named.value).map(str::to_owned) else {
        if !is_null(&named.value) {
            log.error(
                named.at,
                "spec.schedulerName",
                "must be a string",
                "name a scheduler",
            );
        }
        return;
    };
    let to = "moved to template.spec.schedulerName of all roles";
    log.note(named.at, "spec.schedulerName", to);
    let mut first = Some(named.at);
    for_each_role(spec, specs, |_, role| {
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

/// Removes a field without effect, and returns it.
pub(super) fn remove_unused(
    node: &mut Node,
    key: &str,
    path: &str,
    why: &str,
    log: &mut Log<'_>,
) -> Option<Entry> {
    let gone = take(node, key)?;
    log.note(gone.at, &format!("{path}.{key}"), format!("removed: {why}"));
    Some(gone)
}

/// Removes the restart policy from a role's template, because it now belongs to the role. Returns its position and
/// value.
pub(super) fn take_restart_policy(role: &mut Node) -> Option<(Position, String)> {
    let pod = child(child(role, "template")?, "spec")?;
    let policy = take(pod, "restartPolicy")?;
    Some((policy.at, text(&policy.value).unwrap_or_default().to_owned()))
}
