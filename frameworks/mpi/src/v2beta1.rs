//! Jobs of v2beta1, whose `mpirun` starts processes by SSH: the environment, the files and the other objects of the pods,
//! as in mpi-operator v0.8.2 (`pkg/controller/mpi_job_controller.go`). The variables of Open MPI 5 are added to those of
//! Open MPI 4.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    EnvVar, KeyToPath, PodDNSConfig, PodSpec, Secret, SecretVolumeSource, Service, Volume,
};
use serde_json::json;
use training_job::api::{CleanPodPolicy, ReplicaSpec, RestartPolicy, RunPolicy, labels, variable};
use training_job::job::RoleEntry;
use training_job::{
    FieldErrors, JobObject, Milestone, ObjectKind, Replica, ReplicaState, Replicas, Topology,
};

use crate::api::{IMPLEMENTATIONS, MPIJob};
use crate::environment::{
    CONFIG, CONFIG_VOLUME, FILE_MODE, SCRIPT_MODE, config_volume, hide_devices, mount_of, sets,
};
use crate::keys;
use crate::objects::{self, DISCOVERY, HOSTS};
use crate::roles::{LAUNCHER, WORKER};

pub(crate) const SERVICE: ObjectKind = ObjectKind::of::<Service>();
pub(crate) const SECRET: ObjectKind = ObjectKind::of::<Secret>();

/// The label values of the pods, by which users and Kueue select them.
pub(crate) const OPERATOR: &str = "mpi-operator";
/// The source of events.
pub(crate) const EVENT_SOURCE: &str = "mpi-job-controller";
/// The manager in `runPolicy.managedBy` that stands for this operator.
pub(crate) const MANAGER: &str = "kubeflow.org/mpi-operator";

/// The default of `sshAuthMountPath`: the place where OpenSSH looks for the keys of root.
pub(crate) const ROOT_KEYS: &str = "/root/.ssh";
/// The retries of a launcher without `backoffLimit`: those of a Job of Kubernetes.
pub(crate) const DEFAULT_BACKOFF_LIMIT: i32 = 6;

/// The annotation with which users of Volcano name a queue.
const QUEUE_ANNOTATION: &str = "scheduling.volcano.sh/queue-name";

/// The restart policies of mpi-operator.
const RESTART_POLICIES: [&str; 2] = ["Never", "OnFailure"];

pub(crate) const KEYS_VOLUME: &str = "ssh-auth";
/// The variable by which programs in images distinguish launcher and workers.
pub(crate) const ROLE_VARIABLE: &str = "K_MPI_JOB_ROLE";
/// The default command of a worker.
const SERVER: [&str; 2] = ["/usr/sbin/sshd", "-De"];
/// Arguments for `ssh`, because a name may not resolve before its pod is ready.
const SSH_ARGUMENTS: &str = "-o ConnectionAttempts=10";

/// The most characters of a host name.
const MAX_HOST_NAME: usize = 63;

/// Readable for its owner only. OpenSSH refuses other private keys of its own user.
const KEY_MODE: i32 = 0o600;
const PUBLIC_MODE: i32 = 0o644;

impl MPIJob {
    fn implementation(&self) -> &str {
        let named = self.spec.mpi_implementation.as_deref();
        named
            .filter(|name| !name.is_empty())
            .unwrap_or(IMPLEMENTATIONS[0])
    }

    fn keys_path(&self) -> &str {
        let path = self.spec.ssh_auth_mount_path.as_deref();
        path.filter(|path| !path.is_empty()).unwrap_or(ROOT_KEYS)
    }

    pub(crate) fn launcher_computes(&self) -> bool {
        self.spec.run_launcher_as_worker == Some(true)
    }
}

/// Returns the labels of a pod beside those of all kinds. A launcher that computes has the first index, so that Kueue places
/// it with the workers.
pub(crate) fn labels(job: &MPIJob, replica: &Replica<'_>) -> BTreeMap<String, String> {
    let keys = labels::Keys::DEFAULT;
    let index = job.launcher_computes() && replica.role.name() == LAUNCHER;
    let index = index.then(|| (keys.replica_index(), "0".to_owned()));
    [(keys.job_role(), replica.role.slug.clone())]
        .into_iter()
        .chain(index)
        .collect()
}

/// Returns the variables of the main container.
pub(crate) fn variables(job: &MPIJob, replica: &Replica<'_>) -> Vec<EnvVar> {
    let mut all = vec![variable(ROLE_VARIABLE, &*replica.role.slug)];
    if replica.role.name() != LAUNCHER {
        return all;
    }
    let hosts = format!("{CONFIG}/{HOSTS}");
    let slots = job.slots().to_string();
    match job.implementation() {
        "Intel" => all.extend([
            variable("I_MPI_HYDRA_HOST_FILE", &*hosts),
            variable("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", SSH_ARGUMENTS),
            variable("I_MPI_PERHOST", &*slots),
        ]),
        "MPICH" => all.extend([
            variable("HYDRA_HOST_FILE", &*hosts),
            variable("HYDRA_LAUNCH_EXTRA_ARGS", SSH_ARGUMENTS),
        ]),
        _ => all.extend([
            variable("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
            variable("OMPI_MCA_orte_default_hostfile", &*hosts),
            variable("OMPI_MCA_plm_rsh_args", SSH_ARGUMENTS),
            variable("OMPI_MCA_orte_set_default_slots", &*slots),
        ]),
    }
    if !job.launcher_computes() {
        all.extend(hide_devices());
    }
    if job.implementation() == IMPLEMENTATIONS[0] {
        // Open MPI 5 reads no other variables. Without these it would run all ranks in the launcher.
        let of_open_mpi_5 = [
            ("PRTE_MCA_prte_default_hostfile", &*hosts),
            ("PRTE_MCA_plm_ssh_args", SSH_ARGUMENTS),
            ("PRTE_MCA_prte_set_default_slots", &*slots),
        ];
        let unset = of_open_mpi_5
            .into_iter()
            .filter(|(name, _)| !sets(replica.role, name));
        all.extend(unset.map(|(name, value)| variable(name, value)));
    }
    all
}

/// Names the pod in the domain of the job's service, and mounts the keys, and into the launcher the hosts. A worker without
/// a command runs `sshd`.
pub(crate) fn customize(job: &MPIJob, topology: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec) {
    let is_launcher = replica.role.name() == LAUNCHER;
    pod.hostname = Some(match is_launcher {
        true => objects::launcher(topology.job),
        false => replica.pod_name(),
    });
    pod.subdomain = Some(topology.job.to_owned());
    if pod.host_network == Some(true) {
        pod.dns_policy = Some("ClusterFirstWithHostNet".to_owned());
    }
    let path = job.keys_path();
    let (mut volumes, mut mounts) = (
        vec![keys_volume(topology.job, path)],
        vec![mount_of(KEYS_VOLUME, path)],
    );
    if is_launcher {
        volumes.push(config_volume(
            topology,
            &[(HOSTS, FILE_MODE), (DISCOVERY, SCRIPT_MODE)],
        ));
        mounts.push(mount_of(CONFIG_VOLUME, CONFIG));
    } else {
        let domain = format!(
            "{}.{}.svc.{}",
            topology.job, topology.namespace, topology.settings.cluster_domain
        );
        let config = pod.dns_config.get_or_insert_with(PodDNSConfig::default);
        config.searches.get_or_insert_default().push(domain);
    }
    pod.volumes.get_or_insert_default().extend(volumes);
    let main = replica.role.container;
    let Some(main) = main.and_then(|main| pod.containers.get_mut(main)) else {
        return;
    };
    let is_unset = |words: &Option<Vec<String>>| words.as_ref().is_none_or(Vec::is_empty);
    if !is_launcher && is_unset(&main.command) && is_unset(&main.args) {
        main.command = Some(SERVER.map(str::to_owned).into());
    }
    main.volume_mounts.get_or_insert_default().extend(mounts);
}

fn keys_volume(job: &str, path: &str) -> Volume {
    let items = [
        (keys::PRIVATE, "id_rsa"),
        (keys::PUBLIC, "id_rsa.pub"),
        (keys::PUBLIC, "authorized_keys"),
    ];
    let items = items.map(|(key, path)| KeyToPath {
        key: key.to_owned(),
        path: path.to_owned(),
        ..KeyToPath::default()
    });
    let mode = match path.trim_end_matches('/') == ROOT_KEYS {
        true => KEY_MODE,
        // A user other than root could not read them, because the kubelet gives files of a Secret to root.
        false => PUBLIC_MODE,
    };
    Volume {
        name: KEYS_VOLUME.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret(job)),
            items: Some(items.into()),
            default_mode: Some(mode),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// Returns the name of the Secret with the keys.
fn secret(job: &str) -> String {
    format!("{job}-ssh")
}

/// Returns the host name of a pod, which resolves in all pods of the cluster.
fn host(topology: &Topology<'_>, pod: &str) -> String {
    format!("{pod}.{}.{}.svc", topology.job, topology.namespace)
}

/// Returns the service by whose domain the pods find each other, the files of the launcher, and the keys.
pub(crate) fn objects(job: &MPIJob, topology: &Topology<'_>, replicas: &Replicas<'_>) -> Vec<JobObject> {
    let mut service = json!({"spec": {
        "clusterIP": "None",
        "selector": {
            labels::OPERATOR_NAME: OPERATOR,
            labels::Keys::DEFAULT.job_name(): topology.job,
        },
    }});
    if job.launcher_computes() {
        // The launcher's own processes look up the launcher before it is ready.
        service["spec"]["publishNotReadyAddresses"] = json!(true);
    }
    let files = json!({"data": {HOSTS: hosts(job, topology), DISCOVERY: discovery(job, topology, replicas)}});
    let keys = json!({"type": "kubernetes.io/ssh-auth"});
    let mut objects = [
        SERVICE.object(topology.job, service),
        objects::CONFIG.object(objects::config(topology.job), files),
        SECRET
            .object(secret(topology.job), keys)
            .with_random(keys::RANDOM_BYTES, keys::pair),
    ];
    objects
        .iter_mut()
        .for_each(|object| objects::label(object, topology.job));
    objects.into()
}

/// Returns the hostfile: all hosts on which processes may run.
fn hosts(job: &MPIJob, topology: &Topology<'_>) -> String {
    let slots = job.slots();
    let line = |host: String| match job.implementation() == IMPLEMENTATIONS[0] {
        true => format!("{host} slots={slots}\n"),
        false => format!("{host}:{slots}\n"),
    };
    let pods = objects::hosts(topology, job.launcher_computes());
    pods.map(|pod| line(host(topology, &pod))).collect()
}

/// Returns a script that prints the running hosts.
fn discovery(job: &MPIJob, topology: &Topology<'_>, replicas: &Replicas<'_>) -> String {
    let launcher = job.launcher_computes().then(|| objects::launcher(topology.job));
    let workers = objects::workers(replicas, ReplicaState::runs);
    let running = launcher.into_iter().chain(workers);
    let lines = running.map(|pod| format!("echo {}\n", host(topology, &pod)));
    format!("#!/bin/sh\n{}", lines.collect::<String>())
}

/// Returns the message of a milestone.
pub(crate) fn message(milestone: &Milestone<'_>, namespace: &str, name: &str) -> String {
    match milestone {
        Milestone::Created => format!("MPIJob {namespace}/{name} is created."),
        Milestone::Suspended => "MPIJob suspended".to_owned(),
        Milestone::Resumed => "MPIJob resumed".to_owned(),
        other => other.describe_with_namespace("MPIJob", namespace, name),
    }
}

/// Fills in the defaults of a role, which the schema does not have because it is that of both roles.
///
/// `Never` means that the kubelet restarts nothing. Under mpi-operator a Job of Kubernetes replaces such a launcher, and no
/// controller such a worker. Here it is the policy `ExitCode`: each exit code of a launcher is retryable, and of a worker
/// those that mean that it was killed.
pub(crate) fn fill_in(role: &RoleEntry<'_>, spec: &mut ReplicaSpec) {
    let policy = spec.restart_policy.take();
    spec.restart_policy = Some(match policy {
        None if role.is(LAUNCHER) => RestartPolicy::OnFailure,
        None | Some(RestartPolicy::Never) => RestartPolicy::ExitCode,
        Some(policy) => policy,
    });
    spec.replicas.get_or_insert(1);
}

/// Returns the policy with the defaults of v2beta1.
///
/// The queue of a gang may stand in an annotation of Volcano, and its priority class in the templates.
pub(crate) fn run_policy(job: &MPIJob, mut policy: RunPolicy) -> RunPolicy {
    let annotations = job.metadata.annotations.as_ref();
    let queue = annotations.and_then(|all| all.get(QUEUE_ANNOTATION).cloned());
    let class = |role: &str| {
        let spec = job.spec.mpi_replica_specs.get(role)?.as_ref()?;
        spec.template.spec.as_ref()?.priority_class_name.clone()
    };
    let class = class(LAUNCHER).or_else(|| class(WORKER));
    if queue.is_some() || class.is_some() {
        let gang = policy.scheduling_policy.get_or_insert_default();
        gang.queue = gang.queue.take().or(queue);
        gang.priority_class = gang.priority_class.take().or(class);
    }
    policy.clean_pod_policy.get_or_insert(CleanPodPolicy::None);
    policy.backoff_limit.get_or_insert(DEFAULT_BACKOFF_LIMIT);
    policy.managed_by = policy.managed_by.filter(|manager| manager != MANAGER);
    policy
}

/// Adds the errors of what only v1 allows.
pub(crate) fn validate(job: &MPIJob, topology: &Topology<'_>, errors: &mut FieldErrors) {
    if let Some(implementation) = job.spec.mpi_implementation.as_deref()
        && !IMPLEMENTATIONS.contains(&implementation)
    {
        errors.unknown_word("spec.mpiImplementation", implementation, &IMPLEMENTATIONS);
    }
    for (role, spec) in &job.spec.mpi_replica_specs {
        let policy = spec.as_ref().and_then(|spec| spec.restart_policy.as_ref());
        let policy = policy.map_or(RESTART_POLICIES[0], RestartPolicy::as_str);
        if !RESTART_POLICIES.contains(&policy) {
            let field = format!("spec.mpiReplicaSpecs.{role}.restartPolicy");
            errors.unknown_word(field, policy, &RESTART_POLICIES);
        }
    }
    // The names of the pods are host names.
    let names = topology
        .roles
        .iter()
        .filter_map(|role| Some(role.pod_name(role.replicas.checked_sub(1)?)));
    if let Some(name) = names
        .filter(|name| name.len() > MAX_HOST_NAME)
        .max_by_key(String::len)
    {
        errors.push(
            "metadata.name",
            format!(
                "must be shorter: the host name {name} has {} characters",
                name.len()
            ),
            format!("remove at least {} characters", name.len() - MAX_HOST_NAME),
        );
    }
    let service = topology.job;
    if service.contains('.') || !service.starts_with(|first: char| first.is_ascii_lowercase()) {
        errors.push(
            "metadata.name",
            format!("must be usable as the name of a service (is {service:?})"),
            "begin with a letter, and use only lower-case letters, digits and '-'",
        );
    }
}
