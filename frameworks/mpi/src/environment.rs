//! What a launcher's `mpirun` and the workers find in their pods, to the byte as the Go operator v1.8.1 makes it
//! (`mpijob_controller.go`), and the names of Open MPI 5 beside those of 4.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapVolumeSource, Container, EmptyDirVolumeSource, EnvVar, KeyToPath, PodSpec,
    ResourceRequirements, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use training_job::api::variable;
use training_job::{Replica, Role, SettingDefinition, Settings, Topology};

use crate::job::LAUNCHER;
use crate::objects;

/// The image that brings the launcher a `kubectl`.
pub(crate) const DELIVERY_IMAGE: SettingDefinition = SettingDefinition::new(
    "mpi-kubectl-delivery-image",
    "kubeflow/kubectl-delivery:latest",
    "The image of the init container that brings an MPIJob's launcher its kubectl",
);

/// The operator's own image, if that is to bring the launcher its remote shell.
pub(crate) const SHELL_IMAGE: SettingDefinition = SettingDefinition::new(
    "mpi-remote-shell-image",
    "",
    "The operator's own image, if it is to bring an MPIJob's launcher its remote shell in the place of kubectl; empty: \
     --mpi-kubectl-delivery-image does. The operator must be allowed to get pods/exec",
);

/// The init container that brings the launcher its `kubectl`, or the operator's own program.
pub(crate) const DELIVERY: &str = "kubectl-delivery";
pub(crate) const OWN_DELIVERY: &str = "remote-shell";

/// Whether the operator's own program is the launcher's remote shell.
pub(crate) fn is_own_shell(settings: &Settings) -> bool {
    !settings.get(&SHELL_IMAGE).is_empty()
}

const CONFIG_VOLUME: &str = "mpi-job-config";
const KUBECTL_VOLUME: &str = "mpi-job-kubectl";
/// Where the job's ConfigMap is.
const CONFIG: &str = "/etc/mpi";
/// Where the launcher's `kubectl` is.
const KUBECTL: &str = "/opt/kube";

/// Read by all, and started.
const SCRIPT: i32 = 0o555;
/// Read by all.
const FILE: i32 = 0o444;

/// The variables that tell `mpirun` how to reach the workers; none for a worker.
pub(crate) fn variables(replica: &Replica<'_>) -> Vec<EnvVar> {
    if replica.role.name() != LAUNCHER {
        return Vec::new();
    }
    let shell = format!("{CONFIG}/{}", objects::SHELL);
    let hosts = format!("{CONFIG}/{}", objects::HOSTS);
    let mut all = vec![
        variable("OMPI_MCA_plm_rsh_agent", &*shell),
        variable("OMPI_MCA_orte_default_hostfile", &*hosts),
    ];
    if !asks_for_gpu(replica.role) {
        // A device plugin would show the launcher all devices of its node.
        let hidden = ["NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"];
        all.extend(hidden.map(|name| EnvVar {
            name: name.to_owned(),
            ..EnvVar::default()
        }));
    }
    let unless_set = [
        ("I_MPI_HYDRA_BOOTSTRAP", "rsh"),
        ("I_MPI_HYDRA_BOOTSTRAP_EXEC", &shell),
    ];
    let more = unless_set
        .into_iter()
        .filter(|(name, _)| !sets(replica.role, name));
    all.extend(more.map(|(name, value)| variable(name, value)));
    // Open MPI 5 reads no others, and would run all ranks in the launcher.
    all.push(variable("PRTE_MCA_plm_ssh_agent", &*shell));
    all.push(variable("PRTE_MCA_prte_default_hostfile", &*hosts));
    all
}

/// Whether the role's first container has this variable of the user's.
fn sets(role: &Role<'_>, name: &str) -> bool {
    let first = role
        .template()
        .spec
        .iter()
        .filter_map(|spec| spec.containers.first());
    let mut variables = first.flat_map(|container| container.env.iter().flatten());
    variables.any(|variable| variable.name == name)
}

/// Whether a container of the role has a limit on GPUs: processes then run in it as well.
pub(crate) fn asks_for_gpu(role: &Role<'_>) -> bool {
    let containers = role.template().spec.iter().flat_map(|spec| &spec.containers);
    let limits = containers.filter_map(|container| container.resources.as_ref()?.limits.as_ref());
    limits
        .flat_map(BTreeMap::keys)
        .any(|resource| resource.contains("gpu"))
}

/// Puts the job's ConfigMap into a pod; makes a worker sleep that has nothing else to do, and brings a launcher its
/// `kubectl` and its account.
pub(crate) fn mount(topology: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec) {
    let is_launcher = replica.role.name() == LAUNCHER;
    let (mut volumes, mut mounts) = (Vec::new(), Vec::new());
    let mut files = vec![(objects::SHELL, SCRIPT)];
    if is_launcher {
        volumes.push(Volume {
            name: KUBECTL_VOLUME.to_owned(),
            empty_dir: Some(EmptyDirVolumeSource::default()),
            ..Volume::default()
        });
        mounts.push(mount_of(KUBECTL_VOLUME, KUBECTL));
        files.extend([(objects::HOSTS, FILE), (objects::DISCOVERY, SCRIPT)]);
    }
    volumes.push(config_volume(topology, &files));
    mounts.push(mount_of(CONFIG_VOLUME, CONFIG));
    if is_launcher {
        let account = pod.service_account_name.take().filter(|name| !name.is_empty());
        pod.service_account_name = account.or_else(|| Some(objects::launcher(topology.job)));
        let delivery = match is_own_shell(&topology.settings) {
            true => own_delivery(topology),
            false => delivery(topology, mounts.clone()),
        };
        pod.init_containers.get_or_insert_default().push(delivery);
    }
    pod.volumes.get_or_insert_default().extend(volumes);
    let Some(main) = pod.containers.first_mut() else {
        return;
    };
    if !is_launcher && main.command.as_ref().is_none_or(Vec::is_empty) {
        main.command = Some(vec!["sleep".to_owned()]);
        main.args = Some(vec!["365d".to_owned()]);
    }
    main.volume_mounts.get_or_insert_default().extend(mounts);
}

fn config_volume(topology: &Topology<'_>, files: &[(&str, i32)]) -> Volume {
    let items = files.iter().map(|(file, mode)| KeyToPath {
        key: (*file).to_owned(),
        path: (*file).to_owned(),
        mode: Some(*mode),
        ..KeyToPath::default()
    });
    Volume {
        name: CONFIG_VOLUME.to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: objects::config(topology.job),
            items: Some(items.collect()),
            default_mode: Some(0o644),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn mount_of(volume: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}

/// Brings the launcher a `kubectl`, and waits until the hosts of the hostfile run.
fn delivery(topology: &Topology<'_>, mounts: Vec<VolumeMount>) -> Container {
    Container {
        name: DELIVERY.to_owned(),
        image: Some(topology.settings.get(&DELIVERY_IMAGE).to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        env: Some(vec![
            variable("TARGET_DIR", KUBECTL),
            variable("NAMESPACE", topology.namespace),
        ]),
        resources: Some(amounts([
            ("cpu", "100m"),
            ("memory", "512Mi"),
            ("ephemeral-storage", "5Gi"),
        ])),
        volume_mounts: Some(mounts),
        ..Container::default()
    }
}

/// Copies the operator's program to where `kubectl` would be, beside a `kubectl` that calls it: so the script of the
/// ConfigMap is the same, and launchers that run stay as they are when the setting changes. It does not wait: the program
/// waits for a pod that does not run yet.
fn own_delivery(topology: &Topology<'_>) -> Container {
    let arguments = ["remote-shell", "install", KUBECTL];
    Container {
        name: OWN_DELIVERY.to_owned(),
        image: Some(topology.settings.get(&SHELL_IMAGE).to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(arguments.map(str::to_owned).into()),
        resources: Some(amounts([
            ("cpu", "100m"),
            ("memory", "128Mi"),
            ("ephemeral-storage", "256Mi"),
        ])),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            read_only_root_filesystem: Some(true),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(vec![mount_of(KUBECTL_VOLUME, KUBECTL)]),
        ..Container::default()
    }
}

/// As much as is asked for, and no more.
fn amounts<const N: usize>(amounts: [(&str, &str); N]) -> ResourceRequirements {
    let amounts = amounts.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())));
    let amounts = Some(BTreeMap::from(amounts));
    ResourceRequirements {
        limits: amounts.clone(),
        requests: amounts,
        ..ResourceRequirements::default()
    }
}
