//! Converts pods that connect by SSH, as the mpi-operator's `v2beta1` does, to pods in which processes start by exec.

use kube_manifest::{Content, Node};
use training_job_mpi::ssh::{Command, commands, use_in_variable, uses};

use super::log::Log;
use super::mapped::MPI;
use super::policies::remove_unused;
use super::tree::{below, child, for_each_role, items, scalar, take, text};

/// The volume of keys that the mpi-operator added to each pod.
const KEYS_VOLUME: &str = "ssh-auth";

/// The lists of containers of a pod.
const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// The command that replaces a daemon in the foreground. SIGTERM ends it.
const SLEEP: &str = "trap 'exit 143' TERM; sleep 365d & wait";

/// Calls `f` for each container of a pod, with its path.
fn for_each_container(role: &str, pod: &mut Node, mut f: impl FnMut(&str, &mut Node)) {
    for list in CONTAINERS {
        for (n, container) in child(pod, list).and_then(items).into_iter().flatten().enumerate() {
            f(
                &format!("spec.{}.{role}.template.spec.{list}[{n}]", MPI.specs),
                container,
            );
        }
    }
}

/// Removes the volume of the job's keys, and all mounts of it. The API server rejects a mount without its volume, and
/// a pod waits forever for a Secret that does not exist.
pub(super) fn remove_volumes(spec: &mut Node, job: Option<&str>, log: &mut Log<'_>) {
    let secret = job.map(|job| format!("{job}-ssh"));
    for_each_role(spec, MPI.specs, |role, value| {
        let Some(pod) = below(value, &["template", "spec"]) else {
            return;
        };
        let (mut gone, mut own) = (vec![KEYS_VOLUME.to_owned()], Vec::new());
        let volumes = child(pod, "volumes").and_then(items);
        if let Some(volumes) = volumes {
            let mut n = 0;
            volumes.retain(|volume| {
                let name = volume.text("name").unwrap_or_default().to_owned();
                let keys = volume.get("secret").and_then(|source| source.text("secretName"));
                let is_gone = keys.is_some() && keys == secret.as_deref();
                if is_gone {
                    let path = format!("spec.{}.{role}.template.spec.volumes[{n}]", MPI.specs);
                    log.note(
                        volume.at,
                        &path,
                        "removed: the operator makes no Secret with SSH keys",
                    );
                    gone.push(name);
                } else {
                    own.push(name);
                }
                n += 1;
                !is_gone
            });
        }
        gone.retain(|name| !own.contains(name));
        remove_if_empty(pod, "volumes");
        for_each_container(role, pod, |path, container| {
            let mut n = 0;
            if let Some(mounts) = child(container, "volumeMounts").and_then(items) {
                mounts.retain(|mount| {
                    let is_gone = mount
                        .text("name")
                        .is_some_and(|name| gone.iter().any(|gone| gone == name));
                    if is_gone {
                        let path = format!("{path}.volumeMounts[{n}]");
                        log.note(mount.at, &path, "removed: pods get no volume with SSH keys");
                    }
                    n += 1;
                    !is_gone
                });
            }
            remove_if_empty(container, "volumeMounts");
        });
    });
}

fn remove_if_empty(node: &mut Node, list: &str) {
    if child(node, list)
        .and_then(items)
        .is_some_and(|items| items.is_empty())
    {
        take(node, list);
    }
}

/// Replaces sshd in the commands of workers.
pub(super) fn replace_daemons(spec: &mut Node, log: &mut Log<'_>) {
    let Some(pod) = below(spec, &[MPI.specs, "Worker", "template", "spec"]) else {
        return;
    };
    for_each_container("Worker", pod, |path, container| {
        let words = words(container);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let direct = Command {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            ..Command::default()
        };
        let script = direct
            .script()
            .map(|script| (script.to_owned(), commands(script)));
        let only_prepares = |all: &[Command]| all.iter().all(|command| serves(command) || prepares(command));
        let is_only_daemon = match &script {
            None => serves(&direct),
            Some((_, all)) => all.iter().any(serves) && only_prepares(all),
        };
        if is_only_daemon {
            let why = "workers need no sshd; they sleep until mpirun starts processes in them";
            for key in ["command", "args"] {
                remove_unused(container, key, path, why, log);
            }
        } else if let Some((old, all)) = script.filter(|(_, all)| all.iter().any(serves)) {
            let new = without_daemon(&old, &all);
            for key in ["command", "args"] {
                let word = child(container, key).and_then(items).into_iter().flatten();
                for word in word.filter(|word| text(word) == Some(&old)) {
                    let what = "changed: sshd is not started, because mpirun starts processes by exec";
                    log.note(word.at, &format!("{path}.{key}"), what);
                    word.content = scalar(&*new).content;
                }
            }
        }
    });
}

/// Returns the words of a container's command and arguments.
fn words(container: &Node) -> Vec<String> {
    let lists = ["command", "args"]
        .into_iter()
        .filter_map(|key| container.get(key));
    let words = lists.flat_map(|list| match &list.content {
        Content::List(items) => &items[..],
        Content::Scalar(_) | Content::Map(_) => &[],
    });
    words.filter_map(text).map(str::to_owned).collect()
}

/// Returns true for a command that starts sshd.
fn serves(command: &Command) -> bool {
    let Some((program, at)) = command.program() else {
        return false;
    };
    let arguments: Vec<&str> = command.words.iter().skip(at + 1).map(String::as_str).collect();
    match program {
        "sshd" => true,
        "service" => matches!(arguments[..], ["ssh" | "sshd", "start" | "restart", ..]),
        "ssh" => command.words.get(at).is_some_and(|path| path.contains("init.d")),
        _ => false,
    }
}

/// Returns true for a command that only prepares sshd, or only waits.
fn prepares(command: &Command) -> bool {
    let is_about_ssh = || command.words.iter().any(|word| word.contains("ssh"));
    match command.program().map(|(program, _)| program) {
        Some("sleep" | "tail" | "wait" | "set" | "true" | "trap" | "done" | "fi" | "ssh-keygen") | None => {
            true
        }
        Some("mkdir" | "chmod" | "chown" | "cp" | "cat" | "sed" | "echo" | "touch" | "ln" | "rm") => {
            is_about_ssh()
        }
        _ => false,
    }
}

/// Returns a script with a sleep in place of each sshd in the foreground, and nothing in place of others.
fn without_daemon(script: &str, all: &[Command]) -> String {
    let mut new = script.to_owned();
    for command in all.iter().rev().filter(|command| serves(command)) {
        let Some((program, at)) = command.program() else {
            continue;
        };
        let is_foreground = program == "sshd" && {
            let mut options = command.words.iter().skip(at + 1);
            options.any(|word| word.starts_with('-') && !word.starts_with("-o") && word.contains('D'))
        };
        let rest = script.get(command.end..).unwrap_or_default().trim_start();
        let is_background = rest.starts_with('&') && !rest.starts_with("&&");
        // A wrapper such as exec is replaced as well, but no reserved word.
        let start = command.starts.get(command.first()).copied().unwrap_or_default();
        new.replace_range(
            start..command.end,
            if is_foreground && !is_background {
                SLEEP
            } else {
                "true"
            },
        );
    }
    new
}

/// Removes options and variables of SSH from the launcher, and warns about the uses that remain.
pub(super) fn report_uses(spec: &mut Node, log: &mut Log<'_>) {
    let Some(pod) = below(spec, &[MPI.specs, "Launcher", "template", "spec"]) else {
        return;
    };
    for_each_container("Launcher", pod, |path, container| {
        let mut n = 0;
        if let Some(variables) = child(container, "env").and_then(items) {
            variables.retain(|variable| {
                let [name, value] = ["name", "value"].map(|key| variable.text(key).unwrap_or_default());
                let found = use_in_variable(name, value);
                if let Some(found) = found {
                    let (problem, _) = found.describe(&format!("{name}={value}"));
                    log.note(
                        variable.at,
                        &format!("{path}.env[{n}]"),
                        format!("removed: {problem}"),
                    );
                }
                n += 1;
                found.is_none()
            });
        }
        remove_if_empty(container, "env");
        let at = container.at;
        for key in ["command", "args"] {
            let Some(list) = child(container, key).and_then(items) else {
                continue;
            };
            while let Some(n) = list.windows(3).position(names_shell) {
                let removed: Vec<Node> = list.drain(n..n + 3).collect();
                let option = removed.iter().filter_map(text).collect::<Vec<_>>().join(" ");
                let at = removed.first().map_or(at, |word| word.at);
                log.note(
                    at,
                    &format!("{path}.{key}"),
                    format!("{option}: removed, because mpirun starts processes by exec"),
                );
            }
        }
        let words = words(container);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for (found, text) in uses(&words) {
            let key = if container.get("command").is_some() {
                "command"
            } else {
                "args"
            };
            let at = container.get(key).map_or(container.at, |list| list.at);
            let (problem, remedy) = found.describe(&text);
            log.warn(at, &format!("{path}.{key}"), format!("{problem}; {remedy}"));
        }
    });
}

/// Returns true for an option of Open MPI that makes SSH the remote shell, or sets its arguments.
fn names_shell(words: &[Node]) -> bool {
    let [option, name, value] = words else {
        return false;
    };
    let [option, name, value] = [option, name, value].map(|word| text(word).unwrap_or_default());
    option.starts_with('-')
        && option.ends_with("mca")
        && use_in_variable(&format!("OMPI_MCA_{name}"), value).is_some()
}
