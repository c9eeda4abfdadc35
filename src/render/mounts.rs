//! Mounts the objects of a job that their definitions declare as mounted.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, PersistentVolumeClaimVolumeSource, PodSpec, SecretVolumeSource, Volume,
    VolumeMount,
};

use crate::job::{Framework, MountDefinition, ObjectKind, Role};
use crate::validate::ValidJob;

/// Mounts the objects into the containers of a replica of `role` that get the environment. A container that mounts
/// something else at that path keeps it.
pub(super) fn add(job: &ValidJob<'_>, role: &Role<'_>, spec: &mut PodSpec) {
    let (framework, main) = (job.job.framework(), role.container);
    for (kind, mount) in mounted(framework).filter(|(_, mount)| mount.is_in(role.class())) {
        let volume_name = format!("job-{}", mount.name);
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
                mount_path: mount.path.to_owned(),
                read_only: (kind.kind != CLAIM).then_some(true),
                ..VolumeMount::default()
            });
        }
        if is_used {
            let object = mount.object_name(job.topology.job);
            spec.volumes
                .get_or_insert_default()
                .push(volume(kind, volume_name, object));
        }
    }
    for container in &mut spec.containers {
        container.volume_mounts = container.volume_mounts.take().filter(|mounts| !mounts.is_empty());
    }
}

/// The kind of object that processes can write to.
const CLAIM: &str = "PersistentVolumeClaim";

fn mounted(framework: &Framework) -> impl Iterator<Item = (ObjectKind, MountDefinition)> {
    let objects = framework.objects.iter();
    objects.filter_map(|object| Some((object.kind, object.mount?)))
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
