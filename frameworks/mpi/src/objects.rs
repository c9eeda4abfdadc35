//! The other objects of an MPIJob of v1: the files that `mpirun` reads, and the launcher's permission to start processes
//! in the workers.

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use serde_json::{Value, json};
use training_job::{JobObject, ObjectKind, ReplicaState, Replicas, Topology};

use crate::roles::{LAUNCHER, WORKER, requests_gpu};
use crate::settings::is_own_shell;

pub(crate) const ACCOUNT: ObjectKind = ObjectKind::of::<ServiceAccount>();
pub(crate) const CONFIG: ObjectKind = ObjectKind::of::<ConfigMap>();
pub(crate) const ROLE: ObjectKind = ObjectKind::of::<Role>();
pub(crate) const BINDING: ObjectKind = ObjectKind::of::<RoleBinding>();

/// The ConfigMap's files: the remote shell, the hosts on which processes may run, and a script that prints the
/// running ones.
pub(crate) const SHELL: &str = "kubexec.sh";
pub(crate) const HOSTS: &str = "hostfile";
pub(crate) const DISCOVERY: &str = "discover_hosts.sh";

/// Returns the name of the job's ConfigMap.
pub(crate) fn config(job: &str) -> String {
    format!("{job}-config")
}

/// Returns the name of the job's launcher, and of the launcher's account, Role and RoleBinding.
pub(crate) fn launcher(job: &str) -> String {
    format!("{job}-launcher")
}

/// Sets the label of the job's other objects.
pub(crate) fn label(object: &mut JobObject, job: &str) {
    let labels = object.metadata.labels.get_or_insert_default();
    labels.insert("app".to_owned(), job.to_owned());
}

/// Returns all objects in the order of their creation. No ServiceAccount is included if the job names its own.
pub(crate) fn all(
    topology: &Topology<'_>,
    replicas: &Replicas<'_>,
    slots: i32,
    main_container: Option<&str>,
    is_over: bool,
) -> Vec<JobObject> {
    let name = launcher(topology.job);
    let template = topology
        .role(LAUNCHER)
        .and_then(|role| role.template().spec.as_ref());
    let account = template.and_then(|spec| spec.service_account_name.as_deref());
    let own_account = account.filter(|account| !account.is_empty());
    let files = json!({"data": {
        SHELL: remote_shell(main_container),
        HOSTS: hostfile(topology, slots),
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
    let is_there = |state: ReplicaState| !is_over && (state == ReplicaState::Pending || state.runs());
    let started: Vec<_> = workers(replicas, is_there).collect();
    objects.push(ROLE.object(&name, rules(topology, &started)));
    objects.push(BINDING.object(&name, binding));
    objects.iter_mut().for_each(|object| label(object, topology.job));
    objects
}

/// Returns the names of the workers' pods in these states, in the order of their indices.
pub(crate) fn workers(
    replicas: &Replicas<'_>,
    is: impl Fn(ReplicaState) -> bool,
) -> impl Iterator<Item = String> {
    let workers = replicas.role(WORKER).into_iter();
    let workers = workers.flat_map(|workers| workers.role.all().zip(&workers.states));
    let those = workers.filter(move |(_, state)| is(**state));
    those.map(|(worker, _)| worker.pod_name())
}

/// Returns the rules of the launcher's Role. A name is granted only while a pod of this job has it, because a job of
/// another kind may have pods of the same names. Without names there is no rule for `pods/exec`, because such a rule
/// would apply to all pods.
fn rules(topology: &Topology<'_>, workers: &[String]) -> Value {
    let mut rules =
        vec![json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]})];
    if !workers.is_empty() {
        // The operator's own program starts commands by WebSocket, which is a GET request.
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

/// Returns a script that runs a command in a worker's pod. `mpirun` calls it in place of `rsh`.
fn remote_shell(main_container: Option<&str>) -> String {
    let container = main_container
        .map(|name| format!(" --container {name}"))
        .unwrap_or_default();
    format!(
        "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${{POD_NAME}}{container} -- /bin/sh -c \"$*\""
    )
}

/// Returns true if processes run in the launcher, too.
fn computes(topology: &Topology<'_>) -> bool {
    topology.role(LAUNCHER).is_some_and(requests_gpu)
}

/// Returns the names of the pods in which processes may run.
pub(crate) fn hosts(topology: &Topology<'_>, launcher_computes: bool) -> impl Iterator<Item = String> {
    let launcher = launcher_computes.then(|| launcher(topology.job));
    let workers = topology
        .role(WORKER)
        .into_iter()
        .flat_map(|workers| workers.all());
    launcher
        .into_iter()
        .chain(workers.map(|worker| worker.pod_name()))
}

/// Returns the hostfile: all hosts on which processes may run.
fn hostfile(topology: &Topology<'_>, slots: i32) -> String {
    let all = hosts(topology, computes(topology));
    all.map(|host| format!("{host} slots={slots}\n")).collect()
}

/// Returns a script that prints the running hosts in the order of their indices.
fn discovery(topology: &Topology<'_>, replicas: &Replicas<'_>, slots: i32) -> String {
    let mut script = "#!/bin/sh".to_owned();
    if computes(topology) {
        script += &format!("\necho {}:{slots}\n", launcher(topology.job));
    }
    for worker in workers(replicas, ReplicaState::runs) {
        script += &format!("\necho {worker}:{slots}");
    }
    script
}
