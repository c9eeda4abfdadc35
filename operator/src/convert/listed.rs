//! Jobs whose replicas are a list: MXJobs of `v1alpha1`, and the `MxJob` and `TfJob` of their ancestors.

use std::collections::BTreeSet;

use kube_manifest::{Content, Entry, Node, Position};

use super::log::Log;
use super::mapped::{keep_clean_up, move_scheduler};
use super::tree::{
    below, child, entry, has, index, insert, integer, is_null, items, mapping, put, scalar, take, text,
};

/// A kind of such a job. Fields that were spelled in two ways have both.
pub(super) struct Listed {
    /// The list of replicas.
    replicas: &'static [&'static str],
    /// A replica's type.
    role: &'static [&'static str],
    /// A replica's port.
    port: &'static [&'static str],
    /// The image of containers that name none.
    image: &'static [&'static str],
    /// The types and today's roles.
    roles: &'static [(&'static str, &'static str)],
    /// The type of a replica that names none.
    default_role: &'static str,
    /// The type whose port the others are told; all are told all ports if it is none.
    root: Option<&'static str>,
    /// The type that may have no template, and gets a server of the operator's.
    served: Option<&'static str>,
    /// Today's field of the replicas.
    specs: &'static str,
    container: &'static str,
    port_name: &'static str,
    default_port: i64,
    generation: Generation,
}

/// What else a kind has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Generation {
    /// `kubeflow.org/v1alpha1` `MXJob`.
    Alpha,
    /// `mxnet.mlkube.io/v1beta1` `MxJob`.
    MxJob,
    /// `mlkube.io/v1beta1` `TfJob`.
    TfJob,
}

pub(super) const MXJOB_ALPHA: Listed = Listed {
    replicas: &["replicaSpecs"],
    role: &["mxReplicaType"],
    port: &["PsRootPort"],
    image: &["mxImage"],
    roles: &[
        ("SCHEDULER", "Scheduler"),
        ("SERVER", "Server"),
        ("WORKER", "Worker"),
    ],
    default_role: "WORKER",
    root: Some("SCHEDULER"),
    served: None,
    specs: "mxReplicaSpecs",
    container: "mxnet",
    port_name: "mxjob-port",
    default_port: 9091,
    generation: Generation::Alpha,
};

pub(super) const MX_JOB: Listed = Listed {
    generation: Generation::MxJob,
    ..MXJOB_ALPHA
};

pub(super) const TF_JOB: Listed = Listed {
    replicas: &["replicaSpecs", "replica_specs"],
    role: &["tfReplicaType", "tf_replica_type"],
    port: &["tfPort", "tf_port"],
    image: &["tfImage", "tf_image"],
    roles: &[("MASTER", "Master"), ("PS", "PS"), ("WORKER", "Worker")],
    default_role: "MASTER",
    root: None,
    served: Some("PS"),
    specs: "tfReplicaSpecs",
    container: "tensorflow",
    port_name: "tfjob-port",
    default_port: 2222,
    generation: Generation::TfJob,
};

/// Makes such a job one of today's.
pub(super) fn convert(job: &mut Node, kind: &Listed, log: &mut Log<'_>) {
    let at = job.at;
    let Some(spec) = child(job, "spec") else { return };
    let image = take_any(spec, kind.image);
    let default_image = image
        .as_ref()
        .and_then(|(entry, _)| text(&entry.value).map(str::to_owned));
    let mut uses_image = false;
    let place = kind.replicas.iter().find_map(|name| index(spec, name));
    if let Some((list, name)) = take_any(spec, kind.replicas) {
        let path = format!("spec.{name}");
        log.moved(list.at, &path, &format!("spec.{}", kind.specs));
        let roles = roles(
            list,
            &path,
            kind,
            (default_image.as_deref(), &mut uses_image),
            log,
        );
        insert(spec, place.unwrap_or(0), roles);
    }
    if let Some((image, name)) = image {
        let to = if default_image.is_none() {
            return log.wrong(
                image.at,
                &format!("spec.{name}"),
                "it is no string",
                "name an image",
            );
        } else if uses_image {
            "it is the image of all containers that named none"
        } else {
            "it is left out: all containers name their images"
        };
        log.note(image.at, &format!("spec.{name}"), to);
    }
    if let Some((id, name)) = take_any(spec, &["RuntimeId", "runtimeId", "runtimeid"]) {
        let what = "it is left out: pods and services are named after the job, the role and the index";
        log.note(id.at, &format!("spec.{name}"), what);
    }
    match kind.generation {
        Generation::Alpha => {
            insert(spec, 0, entry("jobMode", scalar("MXTrain")));
            log.note(at, "spec.jobMode", "it is MXTrain, as it was without one");
            chief(spec, log);
            if let Some(clean) = take(spec, "cleanupPodPolicy") {
                log.moved(clean.at, "spec.cleanupPodPolicy", "spec.runPolicy.cleanPodPolicy");
                if let Some(nested) = mapping(spec, &["runPolicy"]) {
                    let key = "cleanPodPolicy".to_owned();
                    put(nested, Entry { key, ..clean });
                }
            }
            move_scheduler(spec, log);
            keep_clean_up(spec, at, log);
        }
        Generation::MxJob => mode(spec, at, log),
        Generation::TfJob => tensorboard(spec, log),
    }
}

/// The first of these fields that is there, and its name. Null is as good as none.
fn take_any(node: &mut Node, names: &[&'static str]) -> Option<(Entry, &'static str)> {
    let found: Vec<_> = names
        .iter()
        .filter_map(|name| Some((take(node, name)?, *name)))
        .collect();
    found.into_iter().find(|(entry, _)| !is_null(&entry.value))
}

/// The mapping that the list of replicas becomes.
fn roles(
    list: Entry,
    path: &str,
    kind: &Listed,
    (image, uses_image): (Option<&str>, &mut bool),
    log: &mut Log<'_>,
) -> Entry {
    let mut list = list;
    let mut known = BTreeSet::new();
    let mut roles = Vec::new();
    let replicas = items(&mut list.value).map(std::mem::take).unwrap_or_else(|| {
        log.wrong(list.at, path, "it is no list", "list the replicas of each type");
        Vec::new()
    });
    for (n, mut replica) in replicas.into_iter().enumerate() {
        let path = format!("{path}[{n}]");
        let Some((type_, role)) = role_of(&mut replica, &path, kind, log) else {
            continue;
        };
        if !known.insert(role) {
            let problem = format!("{type_} is here twice");
            log.wrong(replica.at, &path, problem, "keep one of the two");
            continue;
        }
        let is_default = take(&mut replica, "IsDefaultPS");
        if let Some(flag) = is_default.filter(|_| has(&replica, "template")) {
            let what = "it is left out: there is a template";
            log.note(flag.at, &format!("{path}.IsDefaultPS"), what);
        }
        if !has(&replica, "template") {
            let at = replica.at;
            let field = format!("{path}.template");
            if kind.served == Some(type_) {
                let what = "without one, the operator ran a server of its own";
                log.lost(at, &field, what, "name an image and a command that serve");
            } else {
                log.wrong(at, &field, "it is missing", "add the pod that the replica runs");
            }
            continue;
        }
        restart_policy(&mut replica, &path, log);
        port(&mut replica, type_, &path, kind, log);
        *uses_image |= fill_image(&mut replica, kind.container, image);
        roles.push(Entry {
            at: replica.at,
            key: role.to_owned(),
            value: replica,
        });
    }
    Entry {
        at: list.at,
        key: kind.specs.to_owned(),
        value: Node {
            at: list.value.at,
            content: Content::Map(roles),
        },
    }
}

/// A replica's type, and the role that it is today.
fn role_of(
    replica: &mut Node,
    path: &str,
    kind: &Listed,
    log: &mut Log<'_>,
) -> Option<(&'static str, &'static str)> {
    let named = take_any(replica, kind.role);
    let type_ = match &named {
        None => kind.default_role,
        Some((entry, _)) => text(&entry.value).unwrap_or_default(),
    };
    let found = kind.roles.iter().find(|(known, _)| *known == type_).copied();
    if found.is_none() {
        let at = named.as_ref().map_or(replica.at, |(entry, _)| entry.at);
        let all: Vec<_> = kind.roles.iter().map(|(type_, _)| *type_).collect();
        let field = format!("{path}.{}", kind.role[0]);
        let problem = format!("{type_:?} is not known");
        log.wrong(at, &field, problem, &format!("use one of {}", all.join(", ")));
    }
    found
}

/// Moves the template's restart policy to the role, which has it today. What was not `Never` restarted after exit codes from
/// 128 on, and failed the job after lower ones.
fn restart_policy(replica: &mut Node, path: &str, log: &mut Log<'_>) {
    let Some(pod) = below(replica, &["template", "spec"]) else {
        return;
    };
    let mut policy = take(pod, "restartPolicy").unwrap_or_else(|| Entry {
        at: pod.at,
        key: "restartPolicy".to_owned(),
        value: scalar("OnFailure"),
    });
    let from = format!("{path}.template.spec.restartPolicy");
    if has(replica, "restartPolicy") {
        log.note(policy.at, &from, "it is left out: the role's own counts");
        return;
    }
    if text(&policy.value) == Some("Never") {
        log.note(policy.at, &from, "it is restartPolicy of the role now");
    } else {
        policy.value.content = scalar("ExitCode").content;
        log.note(
            policy.at,
            &from,
            "it is ExitCode of the role now: a replica is restarted after exit codes from 128 on, as before",
        );
    }
    let before = index(replica, "template").unwrap_or(0);
    insert(replica, before, policy);
}

/// Writes a replica's port into its container, where it is today.
fn port(replica: &mut Node, type_: &str, path: &str, kind: &Listed, log: &mut Log<'_>) {
    let named = take_any(replica, kind.port);
    let field = format!(
        "{path}.{}",
        named.as_ref().map_or(kind.port[0], |(_, name)| *name)
    );
    let at = named.as_ref().map_or(replica.at, |(entry, _)| entry.at);
    if kind.root.is_some_and(|root| root != type_) {
        if named.is_some() {
            log.note(
                at,
                &field,
                format!(
                    "it is left out: only the {}'s port is used",
                    kind.root.unwrap_or_default()
                ),
            );
        }
        return;
    }
    let number = match named.as_ref().map(|(entry, _)| integer(&entry.value)) {
        None => kind.default_port,
        Some(Some(number)) => number,
        Some(None) => return log.wrong(at, &field, "it is no number", "use a port from 1 to 65535"),
    };
    let Some(container) = container(replica, kind.container) else {
        return;
    };
    let ports = child(container, "ports").and_then(items);
    let own = ports.and_then(|ports| {
        ports
            .iter_mut()
            .find(|port| port.text("name") == Some(kind.port_name))
    });
    let own_number = |own: &Node| own.get("containerPort").and_then(integer);
    let place = format!("port {} of container {}", kind.port_name, kind.container);
    match own {
        Some(own) if own_number(own) == Some(number) => {
            if named.is_some() {
                log.note(at, &field, format!("it is left out: {place} says the same"));
            }
        }
        Some(own) => {
            put(own, entry("containerPort", scalar(number)));
            log.note(at, &field, format!("it is {place} now, which had another number"));
        }
        None if number == kind.default_port => {
            if named.is_some() {
                log.note(at, &field, "it is left out: it is the default");
            }
        }
        None => {
            let port = Node {
                at,
                content: Content::Map(vec![
                    entry("name", scalar(kind.port_name)),
                    entry("containerPort", scalar(number)),
                ]),
            };
            if !has(container, "ports") {
                let list = Node {
                    content: Content::List(Vec::new()),
                    ..scalar(0)
                };
                put(container, entry("ports", list));
            }
            if let Some(ports) = child(container, "ports").and_then(items) {
                ports.push(port);
            }
            log.note(at, &field, format!("it is {place} now"));
        }
    }
}

/// The container of this name in a replica's template.
fn container<'n>(replica: &'n mut Node, name: &str) -> Option<&'n mut Node> {
    let containers = below(replica, &["template", "spec", "containers"]).and_then(items)?;
    containers
        .iter_mut()
        .find(|container| container.text("name") == Some(name))
}

/// Gives the framework's container the job's image if it has none. Says whether it did.
fn fill_image(replica: &mut Node, name: &str, image: Option<&str>) -> bool {
    match (container(replica, name), image) {
        (Some(container), Some(image)) if !has(container, "image") => {
            put(container, entry("image", scalar(image)));
            true
        }
        _ => false,
    }
}

/// `v1alpha1`: whose end was the job's.
fn chief(spec: &mut Node, log: &mut Log<'_>) {
    let Some(mut policy) = take(spec, "terminationPolicy") else {
        return;
    };
    let chief = child(&mut policy.value, "chief");
    let name = chief.as_ref().and_then(|chief| chief.text("replicaName"));
    let name = name.unwrap_or("WORKER").to_owned();
    let index = chief.and_then(|chief| chief.get("replicaIndex").and_then(integer));
    match (&*name, index.unwrap_or(0)) {
        ("SCHEDULER" | "WORKER", 0) => {
            let what = "it is left out: the scheduler's end is the job's, which comes after its workers' ends, and without \
                        a scheduler all workers decide";
            log.note(policy.at, "spec.terminationPolicy", what);
        }
        (name, index) => {
            let what = format!(
                "the end of {name} {index} was the job's, and none but the scheduler's or the workers' is"
            );
            let remedy = "have the scheduler end with it";
            log.lost(policy.at, "spec.terminationPolicy", &what, remedy);
        }
    }
}

/// `MxJob`: what `jobMode` says.
fn mode(spec: &mut Node, at: Position, log: &mut Log<'_>) {
    let mode = spec.text("jobMode").unwrap_or_default().to_owned();
    let place = child(spec, "jobMode").map_or(at, |mode| mode.at);
    match &*mode {
        "dist" => log.note(place, "spec.jobMode", "dist is MXTrain now"),
        "local" => {
            let what = "local is MXTrain of one worker now, which gets the DMLC variables too";
            log.note(place, "spec.jobMode", what);
        }
        _ => {
            let problem = format!("{mode:?} is not known");
            return log.wrong(place, "spec.jobMode", problem, "use dist or local");
        }
    }
    if let Some(mode) = child(spec, "jobMode") {
        mode.content = scalar("MXTrain").content;
    }
}

/// `TfJob`: what showed its logs.
fn tensorboard(spec: &mut Node, log: &mut Log<'_>) {
    if let Some((board, name)) = take_any(spec, &["tensorboard", "tensorBoard"]) {
        let what = "a TFJob runs no TensorBoard";
        let remedy = "run it as a Deployment of its own";
        log.lost(board.at, &format!("spec.{name}"), what, remedy);
    }
}
