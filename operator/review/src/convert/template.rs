//! Converts MPIJobs of `v1alpha1`, which have one pod template for the launcher and the workers, and a number of
//! devices.

use kube_manifest::{Content, Entry, Node, Position};
use serde_json::Value;

use super::log::Log;
use super::mapped::MPI;
use super::policies::take_restart_policy;
use super::tree::{
    below, child, entries, entry, has, index, insert, integer, items, mapping, put, scalar, take, text,
};

/// The default number of devices of a node. The mpi-operator's manifests set it by `--gpus-per-node` and
/// `--processing-units-per-node`.
const DEFAULT_DEVICES_PER_NODE: i64 = 8;

/// The default resource of the devices.
const DEFAULT_DEVICE_RESOURCE: &str = "nvidia.com/gpu";

/// The number and size of the workers.
struct Workers {
    replicas: i64,
    /// Devices of each worker, if the job sets them and not the template.
    units: Option<i64>,
}

/// Converts a job's template to roles.
pub(super) fn split(spec: &mut Node, at: Position, log: &mut Log<'_>) {
    let resource = take(spec, "processingResourceType");
    let resource = match &resource {
        None => DEFAULT_DEVICE_RESOURCE.to_owned(),
        Some(named) => {
            let word = text(&named.value).unwrap_or_default().to_owned();
            log.note(
                named.at,
                "spec.processingResourceType",
                "moved to the resource limits of the workers",
            );
            if word == "cpu" {
                word
            } else {
                DEFAULT_DEVICE_RESOURCE.to_owned()
            }
        }
    };
    let per_node = [
        take_number(spec, "gpusPerNode", log),
        take_number(spec, "processingUnitsPerNode", log),
    ];
    let gpus = take_number(spec, "gpus", log);
    let units = take_number(spec, "processingUnits", log);
    let replicas = take_number(spec, "replicas", log);
    for (field, per_node, counted) in [
        ("gpusPerNode", per_node[0], gpus),
        ("processingUnitsPerNode", per_node[1], units),
    ] {
        let Some((at, _)) = per_node else { continue };
        let what = match counted {
            Some(_) => "removed: each worker sets its own devices",
            None => "removed: it has no effect without a number of devices",
        };
        log.note(at, &format!("spec.{field}"), what);
    }
    let Some(template) = take(spec, "template") else {
        return;
    };
    launcher_on_master(spec, log);
    let resources = take(spec, "launcherResources");
    let mounts = take(spec, "mountsOnLauncher");
    let workers = match (gpus, units) {
        (Some(_), Some((at, _))) => {
            let problem = "must not be set together with gpus";
            return log.error(at, "spec.processingUnits", problem, "keep one of the two");
        }
        (Some(total), None) => divide(total, ("gpus", "gpusPerNode"), per_node[0], log),
        (None, Some(total)) => divide(
            total,
            ("processingUnits", "processingUnitsPerNode"),
            per_node[1],
            log,
        ),
        (None, None) => Some(Workers {
            replicas: replicas.map_or(0, |(_, number)| number),
            units: None,
        }),
    };
    let Some(workers) = workers else { return };
    if let Some((at, _)) = replicas {
        if workers.units.is_some() {
            let what = "removed: the number of devices determined the number of workers";
            log.note(at, "spec.replicas", what);
        } else {
            log.moved(at, "spec.replicas", "spec.mpiReplicaSpecs.Worker.replicas");
        }
    }
    let units = workers.units.or_else(|| limit(&template, &resource));
    let slots = units.filter(|units| *units > 0);
    if let Some(slots) = slots
        && !has(spec, "slotsPerWorker")
    {
        put(spec, entry("slotsPerWorker", scalar(slots)));
        let what = format!("set to {slots}, the number of devices of a worker, which was the default");
        log.note(at, "spec.slotsPerWorker", what);
    }
    let launcher_has = match &resources {
        Some(_) => "with launcherResources",
        None => "without resources",
    };
    let to = format!("spec.mpiReplicaSpecs, as Launcher {launcher_has} and Worker without command");
    log.moved(template.at, "spec.template", &to);
    let worker = worker(template.clone(), workers.units, &resource);
    let mut launcher = launcher(template, resources, log);
    if let Some(mounts) = mounts {
        mount_on_launcher(&mut launcher, &mounts, log);
    }
    put_roles(spec, launcher, worker, workers.replicas);
}

/// The fields of the spec in `v1alpha1`. The last two are those of Arena's operator.
const FIELDS: [&str; 15] = [
    "activeDeadlineSeconds",
    "backoffLimit",
    "cleanPodPolicy",
    "gpus",
    "gpusPerNode",
    "launcherOnMaster",
    "mainContainer",
    "processingResourceType",
    "processingUnits",
    "processingUnitsPerNode",
    "replicas",
    "slotsPerWorker",
    "template",
    "launcherResources",
    "mountsOnLauncher",
];

/// The fields of the current spec.
const CURRENT_FIELDS: [&str; 7] = [
    MPI.specs,
    "runPolicy",
    "slotsPerWorker",
    "mainContainer",
    "cleanPodPolicy",
    "launcherCreationPolicy",
    "managedBy",
];

/// Reports the fields that neither `v1alpha1` nor the current version has, and removes them if that is allowed.
pub(super) fn report_unknown(spec: &mut Node, log: &mut Log<'_>) {
    let is_known = |key: &str| CURRENT_FIELDS.contains(&key);
    let is_lossy = log.is_lossy();
    for entry in entries(spec)
        .into_iter()
        .flatten()
        .filter(|entry| !is_known(&entry.key))
    {
        let (path, problem) = (format!("spec.{}", entry.key), "unknown field of v1alpha1");
        let lower = entry.key.to_lowercase();
        match FIELDS.iter().find(|field| field.to_lowercase() == lower) {
            Some(meant) => log.error(entry.at, &path, problem, &format!("did you mean {meant}?")),
            None if is_lossy => log.warn(entry.at, &path, format!("{problem}: removed")),
            None => {
                let fields = FIELDS.join(", ");
                let problem = format!("{problem}, which has {fields}");
                log.error(entry.at, &path, problem, "remove the field with --lossy");
            }
        }
    }
    if is_lossy && let Some(entries) = entries(spec) {
        entries.retain(|entry| is_known(&entry.key));
    }
}

/// Applies Arena's field `mountsOnLauncher`: if false, the launcher has no volumes.
fn mount_on_launcher(launcher: &mut Entry, flag: &Entry, log: &mut Log<'_>) {
    let is_true = matches!(flag.value.content, Content::Scalar(Value::Bool(true)));
    let what = match is_true {
        true => "removed: the Launcher's template has the volumes",
        false => "removed: the Launcher's template has no volumes",
    };
    log.note(flag.at, "spec.mountsOnLauncher", what);
    let Some(pod) = below(&mut launcher.value, &["spec"]).filter(|_| !is_true) else {
        return;
    };
    take(pod, "volumes");
    for list in ["initContainers", "containers"] {
        for container in child(pod, list).and_then(items).into_iter().flatten() {
            take(container, "volumeMounts");
        }
    }
}

/// Removes a field and returns it as a non-negative integer.
fn take_number(spec: &mut Node, key: &str, log: &mut Log<'_>) -> Option<(Position, i64)> {
    let named = take(spec, key)?;
    match integer(&named.value).filter(|number| *number >= 0) {
        Some(number) => Some((named.at, number)),
        None => {
            log.error(
                named.at,
                &format!("spec.{key}"),
                "must be a whole number",
                "write it without quotes",
            );
            None
        }
    }
}

/// Returns the workers for this number of devices.
fn divide(
    (at, total): (Position, i64),
    (field, per_node_field): (&str, &str),
    per_node: Option<(Position, i64)>,
    log: &mut Log<'_>,
) -> Option<Workers> {
    let path = format!("spec.{field}");
    let each = per_node
        .map_or(DEFAULT_DEVICES_PER_NODE, |(_, number)| number)
        .max(1);
    let (replicas, units) = match total {
        _ if total < each => (1, total),
        _ if total % each == 0 => (total / each, each),
        _ => {
            let problem = format!("must be a multiple of {each}, the devices of a node (is {total})");
            let remedy = format!("set spec.{per_node_field} to the number of devices of a node");
            log.error(at, &path, problem, &remedy);
            return None;
        }
    };
    let shares = format!("changed to {replicas} workers with {units} devices each");
    if per_node.is_none() && total > 1 {
        let what = format!(
            "{shares}, for nodes of {each} devices as in the mpi-operator's manifests; if your nodes have another number, \
             set spec.{per_node_field} before the conversion"
        );
        log.warn(at, &path, what);
    } else {
        log.note(at, &path, shares);
    }
    Some(Workers {
        replicas,
        units: Some(units),
    })
}

/// Returns the limit of devices in the first container of a template.
fn limit(template: &Entry, resource: &str) -> Option<i64> {
    let Content::List(containers) = &template.value.get("spec")?.get("containers")?.content else {
        return None;
    };
    let limit = containers
        .first()?
        .get("resources")?
        .get("limits")?
        .get(resource)?;
    integer(limit).or_else(|| text(limit)?.parse().ok())
}

fn launcher_on_master(spec: &mut Node, log: &mut Log<'_>) {
    let Some(flag) = take(spec, "launcherOnMaster") else {
        return;
    };
    let path = "spec.launcherOnMaster";
    if matches!(flag.value.content, Content::Scalar(Value::Bool(true))) {
        let what = "the launcher's template must select its node";
        log.unsupported(
            flag.at,
            path,
            what,
            "set nodeSelector and tolerations in the Launcher's template",
        );
    } else {
        log.note(flag.at, path, "removed: false has no effect");
    }
}

/// Returns the first container of a template.
fn first_container(template: &mut Entry) -> Option<&mut Node> {
    let containers = below(&mut template.value, &["spec", "containers"]).and_then(items)?;
    containers.first_mut()
}

/// Returns the launcher's template. Its first container gets these resources, or none as under the former operator.
fn launcher(mut template: Entry, resources: Option<Entry>, log: &mut Log<'_>) -> Entry {
    if let Some(container) = first_container(&mut template) {
        take(container, "resources");
        if let Some(resources) = resources {
            let to = "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].resources";
            log.moved(resources.at, "spec.launcherResources", to);
            put(
                container,
                Entry {
                    key: "resources".to_owned(),
                    ..resources
                },
            );
        }
    }
    template
}

/// Returns the workers' template. Its first container gets no command, and the devices as its limit.
fn worker(template: Entry, units: Option<i64>, resource: &str) -> Entry {
    let mut role = Node::new(template.at, Content::Map(vec![template]));
    take_restart_policy(&mut role);
    let mut template = take(&mut role, "template").unwrap_or_else(|| entry("template", role));
    if let Some(container) = first_container(&mut template) {
        for key in ["command", "args"] {
            take(container, key);
        }
        if let Some(units) = units.filter(|units| *units > 0)
            && let Some(limits) = mapping(container, &["resources", "limits"])
        {
            put(limits, entry(resource, scalar(units)));
        }
        if let Some(requests) = below(container, &["resources", "requests"])
            && let (Some(units), Some(request)) = (units, child(requests, resource))
        {
            request.content = scalar(units).content;
        }
    }
    template
}

/// Returns a role with this template.
fn role(name: &str, replicas: i64, policy: &str, template: Entry) -> Entry {
    let mut role = Node::new(template.at, Content::Map(Vec::new()));
    put(&mut role, entry("replicas", scalar(replicas)));
    put(&mut role, entry("restartPolicy", scalar(policy)));
    put(&mut role, template);
    entry(name, role)
}

/// Puts the roles Launcher and Worker in place of the template.
fn put_roles(spec: &mut Node, mut launcher: Entry, worker: Entry, replicas: i64) {
    let place = index(spec, "slotsPerWorker").map_or(usize::MAX, |at| at + 1);
    let mut of_launcher = Node::new(launcher.at, Content::Map(vec![launcher.clone()]));
    let named = take_restart_policy(&mut of_launcher);
    let policy = match named {
        Some((_, word)) if word == "Never" => "Never",
        _ => "OnFailure",
    };
    if let Some(template) = take(&mut of_launcher, "template") {
        launcher = template;
    }
    let roles = Node::new(
        launcher.at,
        Content::Map(vec![
            role("Launcher", 1, policy, launcher),
            role("Worker", replicas, "Always", worker),
        ]),
    );
    insert(spec, place, entry(MPI.specs, roles));
}
