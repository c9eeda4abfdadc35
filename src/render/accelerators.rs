//! Additions to a pod whose container requests a device.

use k8s_openapi::api::core::v1::{
    Container, HostPathVolumeSource, PodSpec, ResourceRequirements, Volume, VolumeMount,
};

use crate::api::variable;
use crate::job::{Accelerators, HostVolume};
use crate::validate::amount;

/// The additions to a pod, and the conflicts with fields that the job sets itself.
#[derive(Debug, Default)]
pub(crate) struct Additions<'a> {
    /// The index of the container that gets the additions.
    container: usize,
    volumes: Vec<&'a HostVolume>,
    mounts: Vec<&'a HostVolume>,
    variables: Vec<&'a (String, String)>,
    /// The additions that are left out.
    pub(crate) kept: Vec<Kept>,
}

/// A field that the job sets itself and that an accelerator would set otherwise.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The path of the field, below the pod's spec.
    pub(crate) field: String,
    /// The problem: the addition that is left out because of the field.
    pub(crate) problem: String,
}

/// Returns the additions for `container` in a pod that is otherwise as its template. A field to which the job itself
/// gives the same value is neither added nor reported.
pub(crate) fn additions<'a>(
    spec: &PodSpec,
    container: Option<usize>,
    accelerators: &'a Accelerators,
) -> Additions<'a> {
    let mut additions = Additions::default();
    let Some((n, container)) = container.and_then(|n| Some((n, spec.containers.get(n)?))) else {
        return additions;
    };
    additions.container = n;
    for (resource, accelerator) in accelerators {
        if !requests_resource(container, resource) {
            continue;
        }
        for volume in &accelerator.volumes {
            if additions.volume(spec, resource, volume) {
                additions.mount(container, n, resource, volume);
            }
        }
        for variable in &accelerator.variables {
            additions.variable(container, n, resource, variable);
        }
    }
    additions
}

fn requests_resource(container: &Container, resource: &str) -> bool {
    let Some(ResourceRequirements { limits, requests, .. }) = &container.resources else {
        return false;
    };
    let mut lists = [limits, requests].into_iter().flatten();
    lists.any(|amounts| {
        amounts
            .get(resource)
            .is_some_and(|quantity| amount(&quantity.0) != Some(0.0))
    })
}

impl<'a> Additions<'a> {
    /// Adds a volume. Returns true if the pod has the volume afterwards.
    fn volume(&mut self, spec: &PodSpec, resource: &str, volume: &'a HostVolume) -> bool {
        let mut own = spec.volumes.iter().flatten().enumerate();
        let Some((n, own)) = own.find(|(_, own)| own.name == volume.name) else {
            if self.volumes.iter().all(|added| added.name != volume.name) {
                self.volumes.push(volume);
            }
            return true;
        };
        let is_same = own
            .host_path
            .as_ref()
            .is_some_and(|host| host.path == volume.host_path);
        if !is_same {
            let what = format!("volume {}", volume.name);
            self.keep(format!("volumes[{n}].name"), &what, resource);
        }
        is_same
    }

    fn mount(&mut self, container: &Container, n: usize, resource: &str, volume: &'a HostVolume) {
        let mut own = container.volume_mounts.iter().flatten().enumerate();
        match own.find(|(_, own)| own.mount_path == volume.mount_path) {
            Some((_, own)) if own.name == volume.name => {}
            Some((m, _)) => {
                let what = format!("mount at {}", volume.mount_path);
                self.keep(
                    format!("containers[{n}].volumeMounts[{m}].mountPath"),
                    &what,
                    resource,
                );
            }
            None => {
                if self
                    .mounts
                    .iter()
                    .all(|added| added.mount_path != volume.mount_path)
                {
                    self.mounts.push(volume);
                }
            }
        }
    }

    fn variable(&mut self, container: &Container, n: usize, resource: &str, variable: &'a (String, String)) {
        let (name, value) = variable;
        let mut own = container.env.iter().flatten().enumerate();
        match own.find(|(_, own)| own.name == *name) {
            Some((_, own)) if own.value.as_ref() == Some(value) => {}
            Some((m, _)) => {
                self.keep(
                    format!("containers[{n}].env[{m}].name"),
                    &format!("variable {name}"),
                    resource,
                );
            }
            None => {
                if self.variables.iter().all(|(added, _)| added != name) {
                    self.variables.push(variable);
                }
            }
        }
    }

    fn keep(&mut self, field: String, what: &str, resource: &str) {
        let problem = format!("the job's own {what} is kept, so that of accelerator {resource} is not added");
        let kept = Kept { field, problem };
        // A volume may be mounted several times.
        if !self.kept.contains(&kept) {
            self.kept.push(kept);
        }
    }

    /// Adds the additions to the spec for which they were computed.
    pub(super) fn add_to(self, spec: &mut PodSpec) {
        let volumes = self.volumes.into_iter().map(|volume| Volume {
            name: volume.name.clone(),
            host_path: Some(HostPathVolumeSource {
                path: volume.host_path.clone(),
                type_: None,
            }),
            ..Volume::default()
        });
        extend(&mut spec.volumes, volumes);
        let Some(container) = spec.containers.get_mut(self.container) else {
            return;
        };
        let mounts = self.mounts.into_iter().map(|volume| VolumeMount {
            name: volume.name.clone(),
            mount_path: volume.mount_path.clone(),
            ..VolumeMount::default()
        });
        extend(&mut container.volume_mounts, mounts);
        let variables = self.variables.into_iter();
        extend(
            &mut container.env,
            variables.map(|(name, value)| variable(name, value)),
        );
    }
}

/// Extends a list, which stays absent if there is nothing to add.
fn extend<T>(list: &mut Option<Vec<T>>, more: impl ExactSizeIterator<Item = T>) {
    if more.len() > 0 {
        list.get_or_insert_default().extend(more);
    }
}
