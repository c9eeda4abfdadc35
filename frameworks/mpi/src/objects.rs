//! What an MPIJob has beside its pods: the files that `mpirun` reads, and the right of the launcher to start processes in the
//! workers.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use serde_json::{Value, json};
use training_job::{JobObject, ObjectKind, ReplicaState, Replicas, Topology};

use crate::environment::{asks_for_gpu, is_own_shell};
use crate::job::{LAUNCHER, WORKER};

pub(crate) const ACCOUNT: ObjectKind = ObjectKind::of::<ServiceAccount>();
pub(crate) const CONFIG: ObjectKind = ObjectKind::of::<ConfigMap>();
pub(crate) const ROLE: ObjectKind = ObjectKind::of::<Role>();
pub(crate) const BINDING: ObjectKind = ObjectKind::of::<RoleBinding>();

/// The ConfigMap's files: the remote shell, where processes may run, and where they could run now.
pub(crate) const SHELL: &str = "kubexec.sh";
pub(crate) const HOSTS: &str = "hostfile";
pub(crate) const DISCOVERY: &str = "discover_hosts.sh";

/// The name of the job's ConfigMap.
pub(crate) fn config(job: &str) -> String {
    format!("{job}-config")
}

/// The name of its launcher, and of what gives the launcher its rights.
pub(crate) fn launcher(job: &str) -> String {
    format!("{job}-launcher")
}

/// All of them, in the order in which they are made. An account that the job's author names is somebody else's.
pub(crate) fn all(
    topology: &Topology<'_>,
    replicas: &Replicas<'_>,
    slots: i32,
    main_container: Option<&str>,
) -> Vec<JobObject> {
    let name = launcher(topology.job);
    let template = topology
        .role(LAUNCHER)
        .and_then(|role| role.template().spec.as_ref());
    let account = template.and_then(|spec| spec.service_account_name.as_deref());
    let own_account = account.filter(|account| !account.is_empty());
    let files = json!({"data": {
        SHELL: remote_shell(main_container),
        HOSTS: hosts(topology, slots),
        DISCOVERY: discovery(topology, replicas, slots),
    }});
    let binding = json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{
            "kind": "ServiceAccount", "name": own_account.unwrap_or(&name), "namespace": topology.namespace,
        }],
    });
    let mut objects = Vec::new();
    if own_account.is_none() {
        objects.push(ACCOUNT.object(&name, json!({})));
    }
    objects.push(CONFIG.object(config(topology.job), files));
    objects.push(ROLE.object(&name, rules(topology)));
    objects.push(BINDING.object(&name, binding));
    let labels = BTreeMap::from([("app".to_owned(), topology.job.to_owned())]);
    for object in &mut objects {
        object.metadata.labels = Some(labels.clone());
    }
    objects
}

/// What the launcher may do. Where nobody is named, the right to start processes would be that to do so in all pods.
fn rules(topology: &Topology<'_>) -> Value {
    let mut rules =
        vec![json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]})];
    let workers: Vec<_> = topology
        .role(WORKER)
        .iter()
        .flat_map(|workers| workers.all())
        .map(|w| w.host())
        .collect();
    if !workers.is_empty() {
        // By WebSocket, as our own program does it, a command is started by a GET.
        let verbs: &[&str] = match is_own_shell(&topology.settings) {
            true => &["create", "get"],
            false => &["create"],
        };
        rules.push(json!({
            "apiGroups": [""], "resources": ["pods/exec"], "verbs": verbs, "resourceNames": workers,
        }));
    }
    json!({ "rules": rules })
}

/// Runs a command in a worker's pod: what `mpirun` calls in the place of `rsh`.
fn remote_shell(main_container: Option<&str>) -> String {
    let container = main_container
        .map(|name| format!(" --container {name}"))
        .unwrap_or_default();
    format!(
        "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${{POD_NAME}}{container} -- /bin/sh -c \"$*\""
    )
}

/// Whether processes run in the launcher, too.
fn computes(topology: &Topology<'_>) -> bool {
    topology.role(LAUNCHER).is_some_and(asks_for_gpu)
}

/// All hosts on which processes may run.
fn hosts(topology: &Topology<'_>, slots: i32) -> String {
    let launcher = computes(topology).then(|| launcher(topology.job));
    let workers = topology
        .role(WORKER)
        .into_iter()
        .flat_map(|workers| workers.all());
    let all = launcher.into_iter().chain(workers.map(|worker| worker.host()));
    all.map(|host| format!("{host} slots={slots}\n")).collect()
}

/// A script that tells which of them run, in order of their numbers.
fn discovery(topology: &Topology<'_>, replicas: &Replicas<'_>, slots: i32) -> String {
    let mut script = "#!/bin/sh".to_owned();
    if computes(topology) {
        script += &format!("\necho {}:{slots}\n", launcher(topology.job));
    }
    let workers = replicas.role(WORKER).into_iter();
    let workers = workers.flat_map(|workers| workers.role.all().zip(&workers.states));
    for (worker, _) in workers.filter(|(_, state)| **state == ReplicaState::Running) {
        script += &format!("\necho {}:{slots}", worker.host());
    }
    script
}
