//! Converts PaddleJobs of the paddle-operator (`batch.paddlepaddle.org/v1`), which have one field per role and other
//! environment variables.

use kube_manifest::{Content, Entry, Node, Position};

use super::log::Log;
use super::policies::{move_policies, remove_unused, take_restart_policy};
use super::tree::{
    below, child, entry, has, index, insert, integer, items, mapping, put, scalar, take, text,
};

/// The field of each role, and its current name.
const ROLES: [(&str, &str); 2] = [("ps", "Master"), ("worker", "Worker")];

const SPECS: &str = "paddleReplicaSpecs";

const CONTAINER: &str = "paddle";

/// Converts a PaddleJob of the paddle-operator to its current form.
pub(super) fn convert(job: &mut Node, log: &mut Log<'_>) {
    let at = job.at;
    let Some(spec) = child(job, "spec") else { return };
    let intranet = take(spec, "intranet");
    let intranet = intranet.map(|named| (named.at, text(&named.value).unwrap_or_default().to_owned()));
    let is_elastic = has(spec, "elastic");
    features(spec, log);
    clean_up(spec, at, log);
    move_policies(spec, log);
    if has(spec, SPECS) {
        // The roles of the former shape stay, and are reported as unknown fields.
        return;
    }
    let mode = intranet.as_ref().map_or("", |(_, mode)| &**mode);
    let mut place = usize::MAX;
    let mut roles = Vec::new();
    for (old, current) in ROLES {
        let found = index(spec, old);
        let Some(role) = take(spec, old) else { continue };
        place = place.min(found.unwrap_or(usize::MAX));
        let path = format!("spec.{old}");
        log.moved(role.at, &path, &format!("spec.{SPECS}.{current}"));
        let mut role = Entry {
            key: current.to_owned(),
            ..role
        };
        let default = match old == "worker" && mode == "Service" || is_elastic {
            true => "OnFailure",
            false => "Never",
        };
        convert_role(&mut role.value, &path, default, log);
        if mode == "Host" {
            use_host_network(&mut role.value);
        }
        roles.push(role);
    }
    if let Some((at, mode)) = &intranet {
        let what = match &**mode {
            "Host" => "moved to hostNetwork of all roles",
            _ => "removed: pods find each other through their services",
        };
        log.note(*at, "spec.intranet", what);
    }
    if roles.is_empty() {
        return;
    }
    let what = "pods get PADDLE_MASTER, PADDLE_NNODES and the other variables that paddle.distributed.launch reads, instead of \
                PADDLE_TRAINER_ENDPOINTS, PADDLE_PSERVERS_IP_PORT_LIST, TRAINING_ROLE and PADDLE_TRAINER_ID";
    let all = Node::new(at, Content::Map(roles));
    if !launches(&all) {
        log.warn(
            at,
            "spec",
            format!("{what}; start the program with python -m paddle.distributed.launch"),
        );
    } else {
        log.note(at, "spec", what);
    }
    insert(spec, place, entry(SPECS, all));
}

/// Removes the features that current jobs lack.
fn features(spec: &mut Node, log: &mut Log<'_>) {
    if let Some(heter) = take(spec, "heter") {
        let what = "a PaddleJob has no heterogeneous workers";
        log.unsupported(heter.at, "spec.heter", what, "run them as a separate job");
    }
    if let Some(elastic) = take(spec, "elastic") {
        let what = "this operator runs no etcd server for elastic training";
        let remedy = "let paddle.distributed.launch find its peers through PADDLE_MASTER";
        log.unsupported(elastic.at, "spec.elastic", what, remedy);
    }
    if let Some(samples) = take(spec, "sampleSetRef") {
        let what = "this operator does not cache sample sets";
        let remedy = "mount a volume with the data in the job's templates";
        log.unsupported(samples.at, "spec.sampleSetRef", what, remedy);
    }
    if let Some(gloo) = take(spec, "withGloo") {
        if integer(&gloo.value).unwrap_or(0) > 0 {
            let why = "paddle.distributed.launch sets up Gloo without the PADDLE_GLOO variables";
            log.note(gloo.at, "spec.withGloo", format!("removed: {why}"));
        } else {
            log.note(gloo.at, "spec.withGloo", "removed: 0 has no effect");
        }
    }
}

/// Converts the values of the clean-up policy.
fn clean_up(spec: &mut Node, at: Position, log: &mut Log<'_>) {
    let path = "spec.cleanPodPolicy";
    let (place, word) = match child(spec, "cleanPodPolicy") {
        None => (at, String::new()),
        Some(policy) => (policy.at, text(policy).unwrap_or_default().to_owned()),
    };
    let is_nested = spec
        .get("runPolicy")
        .is_some_and(|nested| has(nested, "cleanPodPolicy"));
    let current = match &*word {
        "" if is_nested => return,
        "Always" => "All",
        "Never" => "None",
        "OnFailure" | "OnCompletion" | "" => "Running",
        _ => return,
    };
    let deleted = match current {
        "All" => "all pods are deleted at the end",
        "None" => "no pods are deleted at the end",
        _ if word == "OnFailure" => {
            "running pods are deleted at the end; formerly, all pods were deleted after a failure and none after a success"
        }
        _ => {
            "running pods are deleted at the end; formerly, all pods were deleted after a success and none after a failure"
        }
    };
    let change = match word.is_empty() {
        true => format!("set to {current}"),
        false => format!("changed from {word} to {current}"),
    };
    log.note(place, path, format!("{change}: {deleted}"));
    take(spec, "cleanPodPolicy");
    let mut new = entry("cleanPodPolicy", scalar(current));
    new.at = place;
    if let Some(nested) = mapping(spec, &["runPolicy"]) {
        put(nested, new);
    }
}

/// Converts a role to its current form.
fn convert_role(role: &mut Node, path: &str, default: &str, log: &mut Log<'_>) {
    for key in ["requests", "limits"] {
        remove_unused(role, key, path, "the number of replicas is fixed", log);
    }
    remove_unused(
        role,
        "restartPolicy",
        path,
        "the paddle-operator never read it",
        log,
    );
    let from = format!("{path}.template.spec.restartPolicy");
    let policy = match take_restart_policy(role) {
        Some((at, word)) if !word.is_empty() => {
            log.note(at, &from, "moved to the role's restartPolicy");
            word
        }
        _ => {
            log.note(
                role.at,
                &from,
                format!("set to {default} on the role, the paddle-operator's default"),
            );
            default.to_owned()
        }
    };
    let before = index(role, "template").unwrap_or(usize::MAX);
    insert(role, before, entry("restartPolicy", scalar(policy)));
    let Some(containers) = below(role, &["template", "spec", "containers"]).and_then(items) else {
        return;
    };
    if containers
        .iter()
        .any(|container| container.text("name") == Some(CONTAINER))
    {
        return;
    }
    if let Some(name) = containers.first_mut().and_then(|first| child(first, "name")) {
        let path = format!("{path}.template.spec.containers[0].name");
        log.note(
            name.at,
            &path,
            "renamed to paddle, the name of the framework's container",
        );
        name.content = scalar(CONTAINER).content;
    }
}

fn use_host_network(role: &mut Node) {
    let Some(pod) = below(role, &["template", "spec"]) else {
        return;
    };
    put(pod, entry("hostNetwork", scalar(true)));
    if !has(pod, "dnsPolicy") {
        put(pod, entry("dnsPolicy", scalar("ClusterFirstWithHostNet")));
    }
}

/// Returns true if a text in this tree starts Paddle's launcher.
fn launches(node: &Node) -> bool {
    match &node.content {
        Content::Scalar(value) => {
            let word = value.as_str().unwrap_or_default();
            word.contains("paddle.distributed.launch") || word.contains("fleetrun")
        }
        Content::List(items) => items.iter().any(launches),
        Content::Map(entries) => entries.iter().any(|entry| launches(&entry.value)),
    }
}
