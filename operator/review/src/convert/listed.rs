//! Converts jobs whose replicas are a list: `v1alpha1`, and the `MxJob` and `TfJob` that preceded it.

use std::collections::BTreeSet;

use kube_manifest::{Content, Entry, Node};

use super::log::Log;
use super::mapped::MXNET;
use super::mxnet;
use super::policies::{keep_clean_up, move_policies, move_scheduler, remove_unused};
use super::tree::{
    below, child, entry, has, index, insert, integer, is_null, items, put, scalar, take, text,
};

/// A kind of job with a list of replicas. Each field with several names had several spellings.
pub(super) struct ListForm {
    /// The list of replicas in the spec.
    replicas: &'static [&'static str],
    /// The type of a replica.
    role: &'static [&'static str],
    /// The port of a replica.
    port: &'static [&'static str],
    /// The default image of the containers.
    image: &'static [&'static str],
    /// The replica types and their current roles.
    roles: &'static [(&'static str, &'static str)],
    /// The type of a replica that names none.
    default_role: &'static str,
    /// The type whose port is used by all replicas. If unset, each replica's port is used.
    root: Option<&'static str>,
    /// The type that may lack a template, because the operator ran its own server for it.
    served: Option<&'static str>,
    /// Fields of the spec that occur in manifests but that no operator read.
    unread: &'static [&'static str],
    /// The current field of the replicas.
    specs: &'static str,
    container: &'static str,
    port_name: &'static str,
    default_port: i64,
    /// True if the jobs have a mode.
    has_mode: bool,
    /// True if a job must name its mode.
    needs_mode: bool,
    /// The types whose first replica decides when the job ends. The first type that the job has counts.
    deciding: &'static [&'static str],
    /// The default clean-up policy, and the operator that had it.
    clean_up: Option<(&'static str, &'static str)>,
}

pub(super) const MXJOB_ALPHA: ListForm = ListForm {
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
    unread: &[],
    specs: "mxReplicaSpecs",
    container: "mxnet",
    port_name: "mxjob-port",
    default_port: 9091,
    has_mode: true,
    needs_mode: false,
    deciding: &["SCHEDULER", "WORKER"],
    clean_up: Some(("All", "stand-alone operator")),
};

pub(super) const MX_JOB: ListForm = ListForm {
    needs_mode: true,
    clean_up: None,
    ..MXJOB_ALPHA
};

pub(super) const TF_JOB: ListForm = ListForm {
    replicas: &["replicaSpecs", "replica_specs"],
    role: &["tfReplicaType", "tf_replica_type"],
    port: &["tfPort", "tf_port"],
    image: &["tfImage", "tf_image"],
    roles: &[("MASTER", "Master"), ("PS", "PS"), ("WORKER", "Worker")],
    default_role: "MASTER",
    root: None,
    served: Some("PS"),
    unread: &[],
    specs: "tfReplicaSpecs",
    container: "tensorflow",
    port_name: "tfjob-port",
    default_port: 2222,
    has_mode: false,
    needs_mode: false,
    deciding: &["MASTER", "WORKER"],
    clean_up: None,
};

pub(super) const TF_JOB_ALPHA: ListForm = ListForm {
    clean_up: Some(("All", "tf-operator")),
    ..TF_JOB
};

pub(super) const PYTORCHJOB_ALPHA: ListForm = ListForm {
    replicas: &["replicaSpecs"],
    role: &["replicaType", "pytorchReplicaType"],
    port: &["masterPort"],
    image: &["pytorchImage"],
    roles: &[("MASTER", "Master"), ("WORKER", "Worker")],
    default_role: "MASTER",
    root: Some("MASTER"),
    served: None,
    unread: &["backend", "masterPort"],
    specs: "pytorchReplicaSpecs",
    container: "pytorch",
    port_name: "pytorchjob-port",
    default_port: 23456,
    has_mode: false,
    needs_mode: false,
    deciding: &["MASTER"],
    clean_up: Some(("All", "pytorch-operator")),
};

impl ListForm {
    /// Returns true if the replicas of this spec are a list.
    pub(super) fn is_form_of(&self, spec: &Node) -> bool {
        self.replicas.iter().any(|name| has(spec, name))
    }
}

/// Converts a job with a list of replicas to its current form.
pub(super) fn convert(job: &mut Node, kind: &ListForm, log: &mut Log<'_>) {
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
            return log.error(
                image.at,
                &format!("spec.{name}"),
                "must be a string",
                "name an image",
            );
        } else if uses_image {
            "moved to all containers that had no image"
        } else {
            "removed: all containers have an image"
        };
        log.note(image.at, &format!("spec.{name}"), to);
    }
    if let Some((id, name)) = take_any(spec, &["RuntimeId", "runtimeId", "runtimeid"]) {
        let what = "removed: pods and services are named after the job, the role and the index";
        log.note(id.at, &format!("spec.{name}"), what);
    }
    for field in kind.unread {
        remove_unused(spec, field, "spec", "no operator ever read it", log);
    }
    if kind.needs_mode && !has(spec, "jobMode") {
        log.error(at, "spec.jobMode", "must be set", "use dist or local");
    } else if kind.has_mode {
        mxnet::mode(spec, at, log);
    }
    if kind.specs == MXNET.specs {
        mxnet::move_labels(spec, log);
    }
    termination_policy(spec, kind, log);
    tensorboard(spec, log);
    move_policies(spec, log);
    move_scheduler(spec, kind.specs, log);
    if let Some(default) = kind.clean_up {
        keep_clean_up(spec, default, at, log);
    }
}

/// Removes these fields. Returns the first that was present and not null, with its name.
fn take_any(node: &mut Node, names: &[&'static str]) -> Option<(Entry, &'static str)> {
    let found: Vec<_> = names
        .iter()
        .filter_map(|name| Some((take(node, name)?, *name)))
        .collect();
    found.into_iter().find(|(entry, _)| !is_null(&entry.value))
}

/// Converts the list of replicas to a mapping of roles.
fn roles(
    list: Entry,
    path: &str,
    kind: &ListForm,
    (image, uses_image): (Option<&str>, &mut bool),
    log: &mut Log<'_>,
) -> Entry {
    let mut list = list;
    let mut known = BTreeSet::new();
    let mut roles = Vec::new();
    let replicas = items(&mut list.value).map(std::mem::take).unwrap_or_else(|| {
        log.error(list.at, path, "must be a list", "list the replicas of each type");
        Vec::new()
    });
    for (n, mut replica) in replicas.into_iter().enumerate() {
        let path = format!("{path}[{n}]");
        let Some((type_, role)) = role_of(&mut replica, &path, kind, log) else {
            continue;
        };
        if !known.insert(role) {
            let problem = format!("duplicate type {type_}");
            log.error(replica.at, &path, problem, "keep one of the two");
            continue;
        }
        let is_default = take(&mut replica, "IsDefaultPS");
        if let Some(flag) = is_default.filter(|_| has(&replica, "template")) {
            let what = "removed: the replica has a template";
            log.note(flag.at, &format!("{path}.IsDefaultPS"), what);
        }
        if !has(&replica, "template") {
            let at = replica.at;
            let field = format!("{path}.template");
            if kind.served == Some(type_) {
                let what = "the former operator ran its own server in a replica without a template";
                log.unsupported(at, &field, what, "add a template that runs the server");
            } else {
                log.error(at, &field, "must be set", "add the replica's pod template");
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
        value: Node::new(list.value.at, Content::Map(roles)),
    }
}

/// Returns a replica's type and its current role.
fn role_of(
    replica: &mut Node,
    path: &str,
    kind: &ListForm,
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
        let problem = format!("unknown type {type_:?}");
        log.error(at, &field, problem, &format!("use one of {}", all.join(", ")));
    }
    found
}

/// Moves the restart policy from the template to the role. Any policy but `Never` restarted a replica after exit
/// codes of 128 or more, and failed the job after lower ones.
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
        log.note(
            policy.at,
            &from,
            "removed: the role's restartPolicy takes precedence",
        );
        return;
    }
    if text(&policy.value) == Some("Never") {
        log.note(policy.at, &from, "moved to the role's restartPolicy");
    } else {
        policy.value.content = scalar("ExitCode").content;
        log.note(
            policy.at,
            &from,
            "moved to the role's restartPolicy as ExitCode: exit codes of 128 or more restart the replica, as before",
        );
    }
    let before = index(replica, "template").unwrap_or(0);
    insert(replica, before, policy);
}

/// Moves a replica's port to the ports of its container.
fn port(replica: &mut Node, type_: &str, path: &str, kind: &ListForm, log: &mut Log<'_>) {
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
                    "removed: only the {}'s port is used",
                    kind.root.unwrap_or_default()
                ),
            );
        }
        return;
    }
    let number = match named.as_ref().map(|(entry, _)| integer(&entry.value)) {
        None => kind.default_port,
        Some(Some(number)) => number,
        Some(None) => return log.error(at, &field, "must be a number", "use a port from 1 to 65535"),
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
                log.note(at, &field, format!("removed: {place} has the same number"));
            }
        }
        Some(own) => {
            put(own, entry("containerPort", scalar(number)));
            log.note(at, &field, format!("moved to {place}, which had another number"));
        }
        None if number == kind.default_port => {
            if named.is_some() {
                log.note(at, &field, "removed: it is the default");
            }
        }
        None => {
            let port = Node::new(
                at,
                Content::Map(vec![
                    entry("name", scalar(kind.port_name)),
                    entry("containerPort", scalar(number)),
                ]),
            );
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
            log.note(at, &field, format!("moved to {place}"));
        }
    }
}

/// Returns the container of this name in a replica's template.
fn container<'n>(replica: &'n mut Node, name: &str) -> Option<&'n mut Node> {
    let containers = below(replica, &["template", "spec", "containers"]).and_then(items)?;
    containers
        .iter_mut()
        .find(|container| container.text("name") == Some(name))
}

/// Sets the image of the framework's container to the job's image if it has none. Returns true if it did.
fn fill_image(replica: &mut Node, name: &str, image: Option<&str>) -> bool {
    match (container(replica, name), image) {
        (Some(container), Some(image)) if !has(container, "image") => {
            put(container, entry("image", scalar(image)));
            true
        }
        _ => false,
    }
}

/// Removes the termination policy where it matches the current rules. Otherwise reports it as lost.
fn termination_policy(spec: &mut Node, kind: &ListForm, log: &mut Log<'_>) {
    let Some(mut policy) = take(spec, "terminationPolicy") else {
        return;
    };
    let chief = ["chief", "master"]
        .into_iter()
        .find_map(|key| take(&mut policy.value, key));
    let of_chief = chief.as_ref().map(|chief| &chief.value);
    let name = of_chief.and_then(|chief| chief.text("replicaName"));
    let name = name.unwrap_or(kind.default_role).to_owned();
    let index = ["replicaIndex", "replicaRank"].into_iter();
    let mut index = index.filter_map(|key| integer(of_chief?.get(key)?));
    let index = index.next().unwrap_or(0);
    let is_there = |type_: &str| {
        let role = kind.roles.iter().find(|(known, _)| *known == type_);
        role.is_some_and(|(_, role)| spec.get(kind.specs).is_some_and(|specs| has(specs, role)))
    };
    if kind.has_mode && index == 0 && kind.deciding.contains(&&*name) {
        let what = "removed: the job ends with its scheduler, which ends after the workers; without a scheduler, the \
                    job ends with its workers";
        return log.note(policy.at, "spec.terminationPolicy", what);
    }
    let decides = kind.deciding.iter().find(|type_| is_there(type_));
    if index == 0 && !kind.has_mode && decides.is_none_or(|decides| *decides == name) {
        let what = format!("removed: the job ends with {name} 0 by default");
        return log.note(policy.at, "spec.terminationPolicy", what);
    }
    let (others, remedy) = match kind.has_mode {
        true => (
            "the scheduler or the workers",
            "make the scheduler end when that replica ends",
        ),
        false => (
            "the MASTER or, without a MASTER, the first WORKER",
            "make that replica end at the same time",
        ),
    };
    let what = format!("the job ended with {name} {index}, but now it ends with {others}");
    log.unsupported(policy.at, "spec.terminationPolicy", &what, remedy);
}

/// Reports the TensorBoard of a TfJob as lost.
fn tensorboard(spec: &mut Node, log: &mut Log<'_>) {
    if let Some((board, name)) = take_any(spec, &["tensorboard", "tensorBoard"]) {
        let what = "a TFJob does not run TensorBoard";
        let remedy = "run TensorBoard as a separate Deployment";
        log.unsupported(board.at, &format!("spec.{name}"), what, remedy);
    }
}
