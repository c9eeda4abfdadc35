//! Mounts the objects of a job that their definitions declare as mounted.

use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, PodSpec, SecretVolumeSource, Volume, VolumeMount};

use crate::job::{Framework, MountDefinition, ObjectKind};
use crate::validate::ValidJob;

/// Mounts the objects into the containers that get the environment. `main` is the framework's container. A container that
/// mounts something else at that path keeps it.
pub(super) fn add(job: &ValidJob<'_>, main: Option<usize>, spec: &mut PodSpec) {
    let framework = job.job.framework();
    for (kind, mount) in mounted(framework) {
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
                read_only: Some(true),
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

fn mounted(framework: &Framework) -> impl Iterator<Item = (ObjectKind, MountDefinition)> {
    let objects = framework.objects.iter();
    objects.filter_map(|object| Some((object.kind, object.mount?)))
}

fn volume(kind: ObjectKind, name: String, object: String) -> Volume {
    let is_secret = kind.kind == "Secret";
    Volume {
        name,
        secret: is_secret.then(|| SecretVolumeSource {
            secret_name: Some(object.clone()),
            ..SecretVolumeSource::default()
        }),
        config_map: (!is_secret).then(|| ConfigMapVolumeSource {
            name: object,
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    }
}
