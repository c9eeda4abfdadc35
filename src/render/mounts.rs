//! Mounts objects into pods, as their definitions or the hook `mounts` declare.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, PersistentVolumeClaimVolumeSource, PodSpec, SecretVolumeSource, Volume,
    VolumeMount,
};

use crate::job::{Mount, ObjectKind, Role};
use crate::validate::ValidJob;

/// Mounts the objects into the containers of a replica of `role` that get the environment. A container that mounts
/// something else at that path keeps it.
pub(super) fn add(job: &ValidJob<'_>, role: &Role<'_>, spec: &mut PodSpec) {
    let (framework, main) = (job.job.framework(), role.container);
    for (volume_name, mount) in mounts(job, role) {
        let mut is_used = false;
        for (n, container) in spec.containers.iter_mut().enumerate() {
            let mounts = container.volume_mounts.get_or_insert_default();
            let is_taken = mounts.iter().any(|own| own.mount_path == mount.path);
            if is_taken || framework.env_main_container_only && Some(n) != main {
                continue;
            }
            is_used = true;
            mounts.push(VolumeMount {
                name: volume_name.clone(),
                mount_path: mount.path.clone(),
                read_only: (mount.kind.kind != CLAIM).then_some(true),
                ..VolumeMount::default()
            });
        }
        if is_used {
            let volumes = spec.volumes.get_or_insert_default();
            volumes.push(volume(mount.kind, volume_name, mount.name));
        }
    }
    for container in &mut spec.containers {
        container.volume_mounts = container.volume_mounts.take().filter(|mounts| !mounts.is_empty());
    }
}

/// The kind of object that processes can write to.
const CLAIM: &str = "PersistentVolumeClaim";

/// Returns the mounts of a role with the names of their volumes: of each job of the kind, then of this job.
fn mounts(job: &ValidJob<'_>, role: &Role<'_>) -> Vec<(String, Mount)> {
    let objects = job.job.framework().objects.iter();
    let mounted = objects.filter_map(|object| Some((object.kind, object.mount?)));
    let of_kind = mounted.filter(|(_, mount)| mount.is_in(role.class()));
    let of_kind = of_kind.map(|(kind, mount)| {
        let object = mount.object_name(job.topology.job);
        (format!("job-{}", mount.name), kind.mount(object, mount.path))
    });
    let of_job = job.job.mounts(&job.topology, role).into_iter().enumerate();
    let of_job = of_job.map(|(n, mount)| (format!("job-mount-{n}"), mount));
    of_kind.chain(of_job).collect()
}

fn volume(kind: ObjectKind, name: String, object: String) -> Volume {
    let is = |wanted: &str| kind.kind == wanted;
    Volume {
        name,
        persistent_volume_claim: is(CLAIM).then(|| PersistentVolumeClaimVolumeSource {
            claim_name: object.clone(),
            ..PersistentVolumeClaimVolumeSource::default()
        }),
        secret: is("Secret").then(|| SecretVolumeSource {
            secret_name: Some(object.clone()),
            ..SecretVolumeSource::default()
        }),
        config_map: is("ConfigMap").then(|| ConfigMapVolumeSource {
            name: object,
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    }
}
