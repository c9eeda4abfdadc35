//! Converts jobs whose replicas are a mapping of roles, for all operators.

use kube_manifest::{Entry, Node, Position};

use super::log::Log;
use super::policies::{keep_clean_up, move_policies, move_scheduler};
use super::tree::{below, child, entries, entry, for_each_role, has, insert, items, put, scalar, take};
use super::{kubedl, tree};

/// A kind of job with a mapping of roles, and the defaults of its former operator.
pub(super) struct MapForm {
    pub(super) specs: &'static str,
    /// The former name of the field of the replicas, or empty.
    old_specs: &'static str,
    roles: &'static [&'static str],
    /// The former name of the framework's container, and its current name.
    container: Option<(&'static str, &'static str)>,
    operator: &'static str,
    /// The former default clean-up policy, if the current default differs.
    clean_up: Option<&'static str>,
    /// The former default restart policies by role, if the current defaults differ.
    restarts: &'static [(&'static str, &'static str)],
    /// The former default time to live of a finished job in seconds, if it had one.
    ttl: Option<i64>,
    /// True for KubeDL, whose jobs have additional fields.
    is_kubedl: bool,
}

pub(super) const TENSORFLOW: MapForm = MapForm {
    specs: "tfReplicaSpecs",
    old_specs: "",
    roles: &["PS", "Worker", "Chief", "Master", "Evaluator"],
    container: None,
    operator: "tf-operator",
    clean_up: None,
    restarts: &[],
    ttl: None,
    is_kubedl: false,
};

pub(super) const PYTORCH: MapForm = MapForm {
    specs: "pytorchReplicaSpecs",
    roles: &["Master", "Worker"],
    operator: "pytorch-operator",
    clean_up: Some("None"),
    ..TENSORFLOW
};

pub(super) const XGBOOST: MapForm = MapForm {
    specs: "xgbReplicaSpecs",
    old_specs: "xgboostReplicaSpec",
    roles: &["Master", "Worker"],
    container: Some(("xgboostjob", "xgboost")),
    operator: "xgboost-operator",
    clean_up: Some("None"),
    ..TENSORFLOW
};

pub(super) const PADDLE: MapForm = MapForm {
    specs: "paddleReplicaSpecs",
    roles: &["Master", "Worker"],
    operator: "Go training operator",
    ..TENSORFLOW
};

pub(super) const JAX: MapForm = MapForm {
    specs: "jaxReplicaSpecs",
    roles: &["Worker"],
    operator: "Go training operator",
    ..TENSORFLOW
};

pub(super) const MXNET: MapForm = MapForm {
    specs: "mxReplicaSpecs",
    roles: &[
        "Scheduler",
        "Server",
        "Worker",
        "TunerTracker",
        "TunerServer",
        "Tuner",
    ],
    operator: "mxnet-operator",
    ..TENSORFLOW
};

pub(super) const MPI: MapForm = MapForm {
    specs: "mpiReplicaSpecs",
    roles: &["Launcher", "Worker"],
    operator: "mpi-operator",
    clean_up: Some("None"),
    ..TENSORFLOW
};

const KUBEDL: MapForm = MapForm {
    operator: "KubeDL operator",
    is_kubedl: true,
    ..TENSORFLOW
};

pub(super) const KUBEDL_TENSORFLOW: MapForm = MapForm {
    restarts: &[
        ("PS", "ExitCode"),
        ("Worker", "ExitCode"),
        ("Chief", "ExitCode"),
        ("Master", "ExitCode"),
        ("Evaluator", "ExitCode"),
    ],
    ..KUBEDL
};

pub(super) const KUBEDL_PYTORCH: MapForm = MapForm {
    specs: PYTORCH.specs,
    roles: PYTORCH.roles,
    clean_up: Some("None"),
    restarts: &[("Master", "ExitCode")],
    ..KUBEDL
};

pub(super) const KUBEDL_XGBOOST: MapForm = MapForm {
    specs: XGBOOST.specs,
    roles: XGBOOST.roles,
    container: XGBOOST.container,
    clean_up: Some("None"),
    ttl: Some(100),
    ..KUBEDL
};

pub(super) const KUBEDL_MPI: MapForm = MapForm {
    specs: MPI.specs,
    roles: MPI.roles,
    ..KUBEDL
};

/// Converts a job with a mapping of roles to its current form. `is_old` is true for a former API version. Returns true if the job was
/// made for a former operator: it has a former version, or has policies at a place that only such operators read.
pub(super) fn convert(job: &mut Node, kind: &MapForm, is_old: bool, log: &mut Log<'_>) -> bool {
    let at = job.at;
    if kind.is_kubedl {
        kubedl::annotations(job, log);
    }
    let Some(spec) = child(job, "spec") else {
        return is_old;
    };
    if kind.is_kubedl {
        kubedl::features(spec, kind.specs, log);
    }
    rename_specs(spec, kind, log);
    if is_old {
        name_roles(spec, kind, log);
    }
    let is_inline = move_policies(spec, log);
    let is_former = is_old || is_inline;
    if is_former {
        keep_defaults(spec, kind, at, log);
    }
    move_scheduler(spec, kind.specs, log);
    rename_containers(spec, kind, is_former, log);
    is_former
}

fn rename_specs(spec: &mut Node, kind: &MapForm, log: &mut Log<'_>) {
    if kind.old_specs.is_empty() || has(spec, kind.specs) {
        return;
    }
    let place = tree::index(spec, kind.old_specs);
    if let Some(specs) = take(spec, kind.old_specs) {
        let (from, to) = (format!("spec.{}", kind.old_specs), format!("spec.{}", kind.specs));
        log.moved(specs.at, &from, &to);
        let key = kind.specs.to_owned();
        insert(spec, place.unwrap_or(0), Entry { key, ..specs });
    }
}

/// Corrects the case of role names. Former operators ignored it.
pub(super) fn name_roles(spec: &mut Node, kind: &MapForm, log: &mut Log<'_>) {
    let Some(named) = child(spec, kind.specs).and_then(entries) else {
        return;
    };
    for n in 0..named.len() {
        let old = named[n].key.clone();
        let current = kind.roles.iter().find(|role| role.eq_ignore_ascii_case(&old));
        let Some(current) = current.filter(|role| **role != old) else {
            continue;
        };
        let path = format!("spec.{}.{old}", kind.specs);
        if named.iter().any(|entry| entry.key == *current) {
            let problem = format!("duplicate role {current}");
            log.error(named[n].at, &path, problem, "keep one of the two");
            continue;
        }
        (*current).clone_into(&mut named[n].key);
        log.note(named[n].at, &path, format!("renamed to {current}"));
    }
}

/// Writes the former operator's defaults into a job that does not set these fields.
fn keep_defaults(spec: &mut Node, kind: &MapForm, at: Position, log: &mut Log<'_>) {
    if let Some(policy) = kind.clean_up {
        keep_clean_up(spec, (policy, kind.operator), at, log);
    }
    if let Some(ttl) = kind.ttl {
        keep_policy(spec, ("ttlSecondsAfterFinished", ttl), kind.operator, at, log);
    }
    for_each_role(spec, kind.specs, |name, role| {
        let policy = kind.restarts.iter().find(|(role, _)| *role == name);
        if let Some((_, policy)) = policy {
            keep_restart(
                role,
                &format!("spec.{}.{name}", kind.specs),
                (policy, kind.operator),
                log,
            );
        }
    });
}

/// Writes a number into the run policy unless the job sets it.
pub(super) fn keep_policy(
    spec: &mut Node,
    (field, value): (&str, i64),
    operator: &str,
    at: Position,
    log: &mut Log<'_>,
) {
    let is_set = spec.get("runPolicy").is_some_and(|nested| has(nested, field));
    if !is_set && let Some(nested) = tree::mapping(spec, &["runPolicy"]) {
        put(nested, entry(field, scalar(value)));
        let what = format!("set to {value}, the {operator}'s default");
        log.note(at, &format!("spec.runPolicy.{field}"), what);
    }
}

/// Writes a role's restart policy unless it has one.
pub(super) fn keep_restart(role: &mut Node, path: &str, (policy, operator): (&str, &str), log: &mut Log<'_>) {
    let at = role.at;
    if role.text("restartPolicy").unwrap_or_default().is_empty() {
        take(role, "restartPolicy");
        let before = tree::index(role, "template").unwrap_or(usize::MAX);
        insert(role, before, entry("restartPolicy", scalar(policy)));
        let what = format!("set to {policy}, the {operator}'s default");
        log.note(at, &format!("{path}.restartPolicy"), what);
    }
}

/// Renames the framework's container in each role that has no container of the current name.
fn rename_containers(spec: &mut Node, kind: &MapForm, is_former: bool, log: &mut Log<'_>) {
    let Some((old, current)) = kind.container.filter(|_| is_former) else {
        return;
    };
    for_each_role(spec, kind.specs, |role_name, role| {
        let containers = below(role, &["template", "spec", "containers"]).and_then(items);
        let Some(containers) = containers else { return };
        if containers
            .iter()
            .any(|container| container.text("name") == Some(current))
        {
            return;
        }
        let found = containers.iter_mut().enumerate();
        let mut found = found.filter(|(_, container)| container.text("name") == Some(old));
        if let Some((n, container)) = found.next()
            && let Some(name) = child(container, "name")
        {
            let path = format!(
                "spec.{}.{role_name}.template.spec.containers[{n}].name",
                kind.specs
            );
            log.note(
                name.at,
                &path,
                format!("renamed to {current}, the name of the framework's container"),
            );
            name.content = scalar(current).content;
        }
    });
}
