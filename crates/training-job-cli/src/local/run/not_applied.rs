//! The settings of pods that processes of this machine do not get (pure).

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

/// Returns the settings without effect in one line, or `None` if there are none. `pods` are those of one job, each with
/// its role. `is_given` is true for a volume that has a directory here and for a resource
/// that has devices, and `is_directory` for a path that exists here.
pub(super) fn line(
    pods: &[(String, &Pod)],
    is_given: impl Fn(&str) -> bool,
    is_directory: impl Fn(&Path) -> bool,
) -> Option<String> {
    let mut roles: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (role, pod) in pods {
        let all = roles.entry(role).or_default();
        for setting in pod
            .spec
            .iter()
            .flat_map(|spec| settings(spec, &is_given, &is_directory))
        {
            if !all.contains(&setting) {
                all.push(setting);
            }
        }
    }
    let common: Vec<String> = match roles.values().next() {
        Some(first) => first
            .iter()
            .filter(|s| roles.values().all(|all| all.contains(s)))
            .cloned()
            .collect(),
        None => Vec::new(),
    };
    let mut parts: Vec<String> = Vec::from_iter((!common.is_empty()).then(|| common.join(", ")));
    for (role, all) in roles {
        let own: Vec<String> = all
            .into_iter()
            .filter(|setting| !common.contains(setting))
            .collect();
        if !own.is_empty() {
            parts.push(format!("{role}: {}", own.join(", ")));
        }
    }
    (!parts.is_empty()).then(|| format!("not applied on this machine: {}", parts.join("; ")))
}

/// Returns the settings of a pod that have no effect.
fn settings(
    spec: &PodSpec,
    is_given: impl Fn(&str) -> bool,
    is_directory: impl Fn(&Path) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for container in &spec.containers {
        found.extend(volumes(spec, container, &is_given));
        let limits = container
            .resources
            .iter()
            .flat_map(|resources| resources.limits.iter().flatten());
        for (resource, quantity) in limits.filter(|(resource, _)| !is_given(resource)) {
            found.push(match resource.contains('/') {
                true => format!("{resource} {}", quantity.0),
                false => format!("{resource} limit {}", quantity.0),
            });
        }
        let directory = container.working_dir.as_deref().map(Path::new);
        if let Some(directory) = directory.filter(|path| path.is_absolute() && !is_directory(path)) {
            found.push(format!("working directory {}", directory.display()));
        }
        found.extend(probes_and_hooks(container).map(str::to_owned));
        found.extend(container.image.as_ref().map(|image| format!("image {image}")));
    }
    found
}

fn probes_and_hooks(container: &Container) -> impl Iterator<Item = &'static str> {
    let hooks = container.lifecycle.as_ref();
    let all = [
        (container.startup_probe.is_some(), "startupProbe"),
        (container.readiness_probe.is_some(), "readinessProbe"),
        (container.liveness_probe.is_some(), "livenessProbe"),
        (
            hooks.is_some_and(|hooks| hooks.post_start.is_some()),
            "postStart hook",
        ),
        (
            hooks.is_some_and(|hooks| hooks.pre_stop.is_some()),
            "preStop hook",
        ),
    ];
    all.into_iter()
        .filter_map(|(is_set, name)| is_set.then_some(name))
}

/// Returns the volumes without files on this machine, each with its mount paths.
fn volumes(spec: &PodSpec, container: &Container, is_given: impl Fn(&str) -> bool) -> Vec<String> {
    let mut paths: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for mount in container.volume_mounts.iter().flatten() {
        paths.entry(&mount.name).or_default().push(&mount.mount_path);
    }
    let without_files = |name: &str| {
        let volume = spec.volumes.iter().flatten().find(|volume| volume.name == name);
        volume.is_some_and(|volume| volume.config_map.is_none() && volume.secret.is_none()) && !is_given(name)
    };
    let missing = paths.into_iter().filter(|(name, _)| without_files(name));
    missing
        .map(|(name, paths)| format!("volume {name} ({})", paths.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(container: &Value) -> Pod {
        serde_json::from_value(json!({"spec": {
            "containers": [container],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "settings", "configMap": {"name": "settings"}},
            ],
        }}))
        .unwrap()
    }

    fn line_of(pods: &[(&str, &Pod)], given: &str) -> Option<String> {
        let pods: Vec<_> = pods
            .iter()
            .map(|(role, pod)| ((*role).to_owned(), *pod))
            .collect();
        line(&pods, |volume| volume == given, |path| path == Path::new("/tmp"))
    }

    fn trainer() -> Pod {
        pod(&json!({
            "name": "main", "image": "train:1", "workingDir": "/workspace",
            "resources": {"limits": {"memory": "100Gi", "nvidia.com/gpu": "1"}},
            "volumeMounts": [
                {"name": "data", "mountPath": "/data"}, {"name": "data", "mountPath": "/more"},
                {"name": "settings", "mountPath": "/settings"},
            ],
        }))
    }

    #[test]
    fn settings_without_effect_are_listed() {
        let expected = "not applied on this machine: volume data (/data, /more), memory limit 100Gi, \
                        nvidia.com/gpu 1, working directory /workspace, image train:1";
        assert_eq!(line_of(&[("worker", &trainer())], "").as_deref(), Some(expected));
        let given = expected.replace("volume data (/data, /more), ", "");
        assert_eq!(line_of(&[("worker", &trainer())], "data"), Some(given));
    }

    #[test]
    fn probes_and_hooks_are_listed() {
        let pod = pod(&json!({
            "name": "main", "livenessProbe": {}, "readinessProbe": {}, "startupProbe": {},
            "lifecycle": {"preStop": {}, "postStart": {}},
        }));
        let expected = "not applied on this machine: startupProbe, readinessProbe, livenessProbe, postStart hook, \
                        preStop hook";
        assert_eq!(line_of(&[("worker", &pod)], "").as_deref(), Some(expected));
    }

    #[test]
    fn settings_of_some_roles_have_their_name() {
        let master = pod(&json!({"name": "main", "image": "train:1", "workingDir": "/tmp"}));
        assert_eq!(
            line_of(
                &[
                    ("master", &master),
                    ("worker", &trainer()),
                    ("worker", &trainer())
                ],
                "data"
            )
            .as_deref(),
            Some(
                "not applied on this machine: image train:1; \
                 worker: memory limit 100Gi, nvidia.com/gpu 1, working directory /workspace"
            )
        );
        assert_eq!(line_of(&[("master", &pod(&json!({"name": "main"})))], ""), None);
    }
}
