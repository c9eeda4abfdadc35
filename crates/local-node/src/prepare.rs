//! Converts a container of a pod to a process (pure, except that it checks whether directories exist).

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::ResourceExt;

use super::config::{DEFAULT_SCHEDULER, LocalPod, NodeConfig, OPERATOR_NAME_LABEL};
use super::env_values::{ConfigData, ConfigError, ValueSources, declared_environment};
use super::environment::{
    Difference, Environment, FILES_ARE_ELSEWHERE, NAMES_ARE_ADDRESSES, PodPart, Replaced,
};
use super::exec::Folders;
use super::host_names::{HostNames, possible_names};
use super::kill::MARKER;
use super::launch::Launch;
use super::references::Text;
use super::volumes::{self, Mount, replace_paths};

/// The variables that processes get from this machine. No other variable of the agent's own environment reaches them.
#[derive(Clone, Debug, Default)]
pub(super) struct HostVariables {
    folders: Folders,
    path: String,
    others: Vec<(&'static str, String)>,
}

impl HostVariables {
    pub(super) fn this(folders: Folders) -> Self {
        let or = |name: &str, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
        Self {
            folders,
            path: or("PATH", "/usr/local/bin:/usr/bin:/bin"),
            others: vec![
                ("HOME", or("HOME", "/")),
                ("TMPDIR", or("TMPDIR", "/tmp")),
                ("LANG", or("LANG", "C.UTF-8")),
                ("USER", or("USER", "nobody")),
            ],
        }
    }
}

/// A container ready to be started, and its differences from a cluster.
#[derive(Debug)]
pub(super) struct Preparation {
    pub(super) launch: Launch,
    pub(super) differences: Vec<Difference>,
    /// The files that must be written before the start.
    pub(super) mounts: Vec<Mount>,
}

/// The reason that a container cannot be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    /// An object or key that the container needs is missing, but may be created later.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The command is defined in the image, and there are no images.
    #[error(
        "images are not pulled, so the command of image {image:?} is unknown; set `command` in container {container:?}"
    )]
    NoCommand { image: String, container: String },
}

/// Prepares one container.
///
/// # Errors
/// See [`PrepareError`].
pub(super) fn prepare(
    container: &Container,
    sources: &ValueSources<'_>,
    names: &HostNames,
    config: &NodeConfig,
    host_variables: &HostVariables,
    marker: &str,
) -> Result<Preparation, PrepareError> {
    let mut env = declared_environment(container, sources)?;
    env.replace_names(names);
    let folders = &host_variables.folders;
    let mounts = mounts(container, sources.pod, &sources.contents, folders, config)?;
    env.replace_paths(|value| replace_paths(value, &mounts));
    add_host_variables(&mut env, sources, config, host_variables);
    adjust_env(&mut env, container, sources, config, &host_variables.folders);

    let (program, args, mut differences) = match env.replaced() {
        Some(Replaced { script, why }) => in_place_of_command(container, script, why),
        None => command(container, &env, names, &mounts)?,
    };

    differences.splice(0..0, env.differences());
    differences.extend(mounts.iter().map(Mount::difference));
    differences.extend(ignored_fields(container, sources.pod.spec.as_ref(), &mounts));
    let (directory, replaced) = directory(container, &config.workdir);
    differences.extend(replaced);

    let entrance = env.entrance().map(str::to_owned);
    let mut env: Vec<(String, String)> = env
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .filter(|(name, _)| name != MARKER)
        .collect();
    env.push((MARKER.to_owned(), marker.to_owned()));
    Ok(Preparation {
        launch: Launch {
            program,
            args,
            env,
            directory,
            entrance,
        },
        differences,
        mounts,
    })
}

/// Returns the names in a container's environment and command that may be those of pods or services. Without the
/// values of its environment there are none.
pub(super) fn names_in_values(container: &Container, sources: &ValueSources<'_>) -> BTreeSet<String> {
    let Ok(env) = declared_environment(container, sources) else {
        return BTreeSet::new();
    };
    let words = [&container.command, &container.args]
        .into_iter()
        .flatten()
        .flatten();
    let words = words.map(|raw| Text::expand(raw, |name| env.declared(name)));
    let values = env.iter().map(|(name, _)| env.declared(name));
    let texts = values.flatten().chain(words);
    texts
        .flat_map(|text| {
            possible_names(text.as_str())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The program to run, its arguments, and their differences.
type ProcessCommand = (String, Vec<String>, Vec<Difference>);

fn command(
    container: &Container,
    env: &Environment,
    names: &HostNames,
    mounts: &[Mount],
) -> Result<ProcessCommand, PrepareError> {
    if container.command.as_ref().is_none_or(Vec::is_empty) {
        let image = container.image.clone().unwrap_or_default();
        return Err(PrepareError::NoCommand {
            image,
            container: container.name.clone(),
        });
    }
    let mut differences = Vec::new();
    let mut words = Vec::new();
    for (field, written) in [("command", &container.command), ("args", &container.args)] {
        for (at, raw) in written.iter().flatten().enumerate() {
            let pod = Text::expand(raw, |name| env.declared(name));
            let local = Text::expand(raw, |name| env.reference(name));
            let named = names.replace_in(&local);
            let mut why = NAMES_ARE_ADDRESSES;
            let mut local = named.unwrap_or_else(|| local.as_str().to_owned());
            if let Some(led) = replace_paths(&local, mounts) {
                (local, why) = (led, FILES_ARE_ELSEWHERE);
            }
            if local != pod.as_str() {
                differences.push(Difference {
                    part: PodPart::Argument,
                    name: format!("{field}[{at}]"),
                    pod: Some(pod.as_str().to_owned()),
                    local: Some(local.clone()),
                    why: why.to_owned(),
                });
            }
            words.push(local);
        }
    }
    let program = words.remove(0);
    Ok((program, words, differences))
}

/// Returns a script that runs in place of a container's command.
fn in_place_of_command(container: &Container, script: &str, why: &str) -> ProcessCommand {
    let words = container.command.iter().chain(&container.args).flatten();
    let words: Vec<&str> = words.map(String::as_str).collect();
    let difference = Difference {
        part: PodPart::Setting,
        name: "command".to_owned(),
        pod: (!words.is_empty()).then(|| words.join(" ")),
        local: None,
        why: why.to_owned(),
    };
    (
        "/bin/sh".to_owned(),
        vec!["-c".to_owned(), script.to_owned()],
        vec![difference],
    )
}

/// Returns the container's mounts.
///
/// # Errors
/// A ConfigMap, Secret or key is missing and not optional.
pub(super) fn mounts(
    container: &Container,
    pod: &Pod,
    contents: &ConfigData,
    folders: &Folders,
    config: &NodeConfig,
) -> Result<Vec<Mount>, ConfigError> {
    let Some(spec) = &pod.spec else {
        return Ok(Vec::new());
    };
    let namespace = pod.namespace().unwrap_or_default();
    let folder = folders.volumes(&namespace, &pod.name_any());
    volumes::mounts(container, spec, contents, &folder, &config.mounts)
}

fn add_host_variables(
    env: &mut Environment,
    sources: &ValueSources<'_>,
    config: &NodeConfig,
    host_variables: &HostVariables,
) {
    let bin = config.venv.iter().map(|venv| venv.join("bin"));
    let front: Vec<String> = config
        .path
        .iter()
        .cloned()
        .chain(bin)
        .map(|directory| directory.display().to_string())
        .collect();
    match env.get("PATH").map(str::to_owned) {
        Some(_) if front.is_empty() => {}
        Some(declared) => env.set(
            "PATH",
            joined(&front, &declared),
            "the node's own directories come first",
        ),
        None => env.set(
            "PATH",
            joined(&front, &host_variables.path),
            "images are not pulled, so programs are this machine's",
        ),
    }
    if let Some(venv) = &config.venv {
        env.set(
            "VIRTUAL_ENV",
            venv.display().to_string(),
            "the virtual environment given to the node",
        );
    }
    for (name, ids) in &sources.devices {
        env.default_to(
            name,
            ids,
            "the devices of this machine that the container requests",
        );
    }
    for (name, value) in &config.env {
        env.default_to(name, value, "given to the node");
    }
    for (name, value) in &host_variables.others {
        env.default_to(
            name,
            value,
            "images are not pulled, so the value is this machine's",
        );
    }
    let spec = sources.pod.spec.as_ref();
    let hostname = spec
        .and_then(|spec| spec.hostname.clone())
        .unwrap_or_else(|| sources.pod.name_any());
    if env.get("HOSTNAME").is_none() {
        // The value is the same as in a cluster, so it does not count as a difference.
        env.declare("HOSTNAME", Text::kept(hostname), false);
    }
}

fn joined(front: &[String], rest: &str) -> String {
    front
        .iter()
        .map(String::as_str)
        .chain([rest])
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(":")
}

fn adjust_env(
    env: &mut Environment,
    container: &Container,
    sources: &ValueSources<'_>,
    config: &NodeConfig,
    folders: &Folders,
) {
    let labels = sources.pod.labels();
    let Some(adjust) = labels
        .get(OPERATOR_NAME_LABEL)
        .and_then(|operator| config.adjust_env.get(operator))
    else {
        return;
    };
    let (namespace, name) = (
        sources.pod.namespace().unwrap_or_default(),
        sources.pod.name_any(),
    );
    let pod = LocalPod {
        exec: folders.exec(&namespace),
        enter: folders.enter(&namespace, &name),
        temporary: folders.temporary(&namespace, &name),
        volumes: folders.volumes(&namespace, &name),
        namespace,
        name,
        container: container.name.clone(),
        address: sources.address,
        labels: labels.clone(),
        annotations: sources.pod.annotations().clone(),
    };
    adjust(&pod, env);
}

/// Returns the directory in which the process starts, and the difference if the container would start in another.
fn directory(container: &Container, workdir: &Path) -> (PathBuf, Option<Difference>) {
    let Some(wanted) = container
        .working_dir
        .as_deref()
        .filter(|wanted| !wanted.is_empty())
    else {
        return (workdir.to_owned(), None);
    };
    let joined = workdir.join(wanted);
    if joined.is_dir() {
        return (joined, None);
    }
    let difference = Difference {
        part: PodPart::Setting,
        name: "workingDir".to_owned(),
        pod: Some(wanted.to_owned()),
        local: Some(workdir.display().to_string()),
        why: "images are not pulled, and there is no such directory on this machine".to_owned(),
    };
    (workdir.to_owned(), Some(difference))
}

/// Returns the fields that are set but have no effect here.
fn ignored_fields(container: &Container, pod: Option<&PodSpec>, mounted: &[Mount]) -> Vec<Difference> {
    let setting = |name: &str, value: String, why: &str| Difference {
        part: PodPart::Setting,
        name: name.to_owned(),
        pod: Some(value),
        local: None,
        why: why.to_owned(),
    };
    let set = || "set".to_owned();
    let mut found = Vec::new();
    if let Some(image) = &container.image {
        found.push(setting(
            "image",
            image.clone(),
            "images are not pulled: the command runs on this machine",
        ));
    }
    let mounts = container.volume_mounts.iter().flatten();
    let is_here = |path: &str| {
        mounted
            .iter()
            .any(|mount| mount.pod == path.trim_end_matches('/'))
    };
    let mounts = mounts.map(|mount| mount.mount_path.as_str());
    let mounts: Vec<&str> = mounts.filter(|path| !is_here(path)).collect();
    if !mounts.is_empty() {
        found.push(setting(
            "volumeMounts",
            mounts.join(", "),
            "volumes are not mounted; processes see this machine's files",
        ));
    }
    let limited = |resources: &k8s_openapi::api::core::v1::ResourceRequirements| {
        [&resources.limits, &resources.requests]
            .into_iter()
            .flatten()
            .any(|list| !list.is_empty())
    };
    if container.resources.as_ref().is_some_and(limited) {
        found.push(setting("resources", set(), "not limited and not reserved"));
    }
    let probes = [
        ("startupProbe", container.startup_probe.is_some()),
        ("readinessProbe", container.readiness_probe.is_some()),
        ("livenessProbe", container.liveness_probe.is_some()),
    ];
    for (probe, _) in probes.into_iter().filter(|(_, set)| *set) {
        found.push(setting(
            probe,
            set(),
            "probes are not run; a running container is ready",
        ));
    }
    if container.lifecycle.is_some() {
        found.push(setting("lifecycle", set(), "hooks are not run"));
    }
    let pod_security = pod
        .and_then(|pod| pod.security_context.as_ref())
        .is_some_and(|set| *set != Default::default());
    if container.security_context.is_some() || pod_security {
        found.push(setting(
            "securityContext",
            set(),
            "processes run as the user of the agent",
        ));
    }
    let scheduler = pod.and_then(|pod| pod.scheduler_name.clone());
    if let Some(scheduler) = scheduler.filter(|name| name != DEFAULT_SCHEDULER) {
        found.push(setting(
            "schedulerName",
            scheduler,
            "all pods start at once, on this machine",
        ));
    }
    if pod.and_then(|pod| pod.host_network) == Some(true) {
        found.push(setting(
            "hostNetwork",
            "true".to_owned(),
            "the pod still has a loopback address of its own",
        ));
    }
    found
}

#[cfg(test)]
mod tests;
