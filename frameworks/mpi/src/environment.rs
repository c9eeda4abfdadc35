//! The environment and the files of the launcher and the workers of v1, byte for byte as the Go operator v1.8.1 writes them
//! (`mpijob_controller.go`). The variables of Open MPI 5 are added to those of Open MPI 4.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, EmptyDirVolumeSource, EnvVar, KeyToPath, PodSpec, ResourceRequirements,
    SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use training_job::api::variable;
use training_job::{Replica, Role, Topology};

use crate::objects;
use crate::roles::{LAUNCHER, requests_gpu};
use crate::settings::{DELIVERY_IMAGE, SHELL_IMAGE, is_own_shell};

/// The init container that installs the launcher's `kubectl`, or the operator's own program.
pub(crate) const DELIVERY: &str = "kubectl-delivery";
pub(crate) const OWN_DELIVERY: &str = "remote-shell";

pub(crate) const CONFIG_VOLUME: &str = "mpi-job-config";
const KUBECTL_VOLUME: &str = "mpi-job-kubectl";
/// The mount path of the job's ConfigMap.
pub(crate) const CONFIG: &str = "/etc/mpi";
/// The directory of the launcher's `kubectl`.
const KUBECTL: &str = "/opt/kube";

/// The default command of a worker. As the first process of its container `sleep` would ignore SIGTERM, so the
/// deletion of the pod would take the whole grace period. The exit code is that of a process that SIGTERM ended.
const SLEEP: &str = "trap 'exit 143' TERM; sleep 365d & wait";

/// Readable and executable for all.
pub(crate) const SCRIPT_MODE: i32 = 0o555;
/// The mode of files that are readable for all.
pub(crate) const FILE_MODE: i32 = 0o444;

/// Returns the variables by which `mpirun` finds the workers and its remote shell. Returns none for a worker.
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
    if !requests_gpu(replica.role) {
        all.extend(hide_devices());
    }
    let unless_set = [
        ("I_MPI_HYDRA_BOOTSTRAP", "rsh"),
        ("I_MPI_HYDRA_BOOTSTRAP_EXEC", &shell),
    ];
    let more = unless_set
        .into_iter()
        .filter(|(name, _)| !sets(replica.role, name));
    all.extend(more.map(|(name, value)| variable(name, value)));
    // Open MPI 5 reads no other variables. Without these it would run all ranks in the launcher.
    all.push(variable("PRTE_MCA_plm_ssh_agent", &*shell));
    all.push(variable("PRTE_MCA_prte_default_hostfile", &*hosts));
    all
}

/// Returns variables without values, which hide the devices of the node from a launcher that does not compute. Without them
/// a device plug-in exposes all devices.
pub(crate) fn hide_devices() -> [EnvVar; 2] {
    ["NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"].map(|name| EnvVar {
        name: name.to_owned(),
        ..EnvVar::default()
    })
}

/// Returns true if the user sets this variable in the role's main container.
pub(crate) fn sets(role: &Role<'_>, name: &str) -> bool {
    let main = role.main_container().into_iter();
    let mut variables = main.flat_map(|container| container.env.iter().flatten());
    variables.any(|variable| variable.name == name)
}

/// Mounts the job's ConfigMap into a pod. A worker without a command gets one that sleeps. A launcher gets its
/// `kubectl` and its service account.
pub(crate) fn mount(topology: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec) {
    let is_launcher = replica.role.name() == LAUNCHER;
    let (mut volumes, mut mounts) = (Vec::new(), Vec::new());
    let mut files = vec![(objects::SHELL, SCRIPT_MODE)];
    if is_launcher {
        volumes.push(Volume {
            name: KUBECTL_VOLUME.to_owned(),
            empty_dir: Some(EmptyDirVolumeSource::default()),
            ..Volume::default()
        });
        mounts.push(mount_of(KUBECTL_VOLUME, KUBECTL));
        files.extend([(objects::HOSTS, FILE_MODE), (objects::DISCOVERY, SCRIPT_MODE)]);
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
    let main = replica.role.container;
    let Some(main) = main.and_then(|main| pod.containers.get_mut(main)) else {
        return;
    };
    if !is_launcher && main.command.as_ref().is_none_or(Vec::is_empty) {
        main.command = Some(["/bin/sh", "-c"].map(str::to_owned).into());
        main.args = Some(vec![SLEEP.to_owned()]);
    }
    main.volume_mounts.get_or_insert_default().extend(mounts);
}

pub(crate) fn config_volume(topology: &Topology<'_>, files: &[(&str, i32)]) -> Volume {
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

pub(crate) fn mount_of(volume: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}

/// Returns the init container that installs `kubectl` for the launcher and waits until the hosts of the hostfile run.
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

/// Returns the init container that copies the operator's program to the directory of `kubectl`, with a `kubectl` that
/// calls it. Thus the script of the ConfigMap is unchanged, and running launchers are unaffected if the setting
/// changes. The container does not wait, because the program itself waits for pods that do not run yet.
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
            read_only_root_filesystem: Some(true),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(vec![mount_of(KUBECTL_VOLUME, KUBECTL)]),
        ..Container::default()
    }
}

/// Returns resources whose requests equal their limits.
fn amounts<const N: usize>(amounts: [(&str, &str); N]) -> ResourceRequirements {
    let amounts = amounts.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())));
    let amounts = Some(BTreeMap::from(amounts));
    ResourceRequirements {
        limits: amounts.clone(),
        requests: amounts,
        ..ResourceRequirements::default()
    }
}
