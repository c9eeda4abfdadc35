//! Containers that were never started: whether the command is at fault, by the messages of container runtimes.

/// Reasons of the end of a container in which no process ran: those of containerd, of Docker, and of the kubelet itself.
const REASONS: [&str; 8] = [
    "StartError",
    "ContainerCannotRun",
    "ContainerStatusUnknown",
    "CreateContainerConfigError",
    "CreateContainerError",
    "PostStartHookError",
    "PreStartHookError",
    "RunContainerError",
];

/// Errors of a command or a working directory that a retry meets again. Others, such as an input/output error, are the
/// node's.
const LASTING: &[&str] = &[
    "executable file not found",
    "no such file or directory",
    "permission denied",
    "not a directory",
    "is a directory",
    "exec format error",
];

/// The texts that precede an error of the command or of its working directory, in lower case and without double quotes and
/// backslashes, and the errors that are lasting behind them. A hook, a mount, a device and a cgroup have errors with the
/// same words, such as "no such file or directory", behind other texts.
const COMMANDS: [(&str, &[&str]); 21] = [
    // runc since 1.1.
    ("container process: exec: ", LASTING),
    ("container process: exec ", LASTING),
    ("container process: chdir to cwd (", LASTING),
    // runc since 1.2.
    ("error during container init: exec: ", LASTING),
    ("error during container init: exec ", LASTING),
    ("error during container init: chdir to cwd (", LASTING),
    // runc 1.0, and before it.
    ("container process caused: exec: ", LASTING),
    ("container process caused exec: ", LASTING),
    ("container init caused: chdir to cwd (", LASTING),
    ("container init caused chdir to cwd (", LASTING),
    // crun.
    ("executable file `", &["` not found"]),
    (
        "the path `",
        &["but it is not executable", "is not a regular file"],
    ),
    ("exec container process", LASTING),
    ("chdir to `", LASTING),
    // Kata Containers, gVisor.
    ("failed to create shim task: the file ", &[" was not found"]),
    ("error finding executable ", LASTING),
    // Docker before runc, and with the first runc.
    ("system error: exec: ", LASTING),
    ("oci runtime error: exec: ", LASTING),
    ("container command '", &["' not found", "' could not be invoked"]),
    // The node of local runs.
    ("the working directory ", &[" does not exist"]),
    (
        "",
        &[
            " is not in path; images are not pulled",
            " does not exist on this machine",
            " cannot be run: permission denied",
            " cannot be run: exec format error",
        ],
    ),
];

/// Ends of the path of the directory that holds all files of a container. The runtime mounts it.
const ROOTS: [&str; 2] = ["/merged`", "/rootfs`"];

/// Returns true if a container that ended for this reason never ran.
pub(super) fn never_ran(reason: &str) -> bool {
    REASONS.contains(&reason)
}

/// Returns true if the message of a container that never ran blames its command, the permission of the command, or the
/// working directory. A retry would fail, too. Any other cause is the node's: a driver, a mount, a device, a cgroup, a hook,
/// a full disk, the runtime itself, or an unknown cause.
pub(super) fn is_of_command(message: &str) -> bool {
    let text = message.replace(['\\', '"'], "").to_lowercase();
    let blames = |(before, errors): &(&str, &[&str])| {
        let rest = text.split_once(before).map(|(_, rest)| rest);
        rest.is_some_and(|rest| errors.iter().any(|error| rest.contains(error)))
    };
    !ROOTS.iter().any(|root| text.contains(root)) && COMMANDS.iter().any(blames)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of runtimes, from their sources and from reports of their users.
    #[test]
    fn only_a_command_its_permission_and_its_directory_are_at_fault_for_good() {
        let containerd =
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: ";
        let runc = "runc create failed: unable to start container process: ";
        let docker = "OCI runtime create failed: container_linux.go:348: starting container process caused ";
        let log = "unable to retrieve OCI runtime error (open /run/containerd/io.containerd.runtime.v2.task/k8s.io/3f/log.json: no such file or directory): ";
        let rows = [
            // The command.
            (true, format!(r#"{containerd}{runc}exec: "train": executable file not found in $PATH: unknown"#)),
            (true, format!(r#"{containerd}{runc}error during container init: exec: "train": executable file not found in $PATH: unknown"#)),
            (true, format!(r#"{containerd}{runc}exec: "/opt/mount/train": stat /opt/mount/train: no such file or directory: unknown"#)),
            (true, format!(r#"{containerd}{runc}error during container init: exec: "/train.sh": permission denied: unknown"#)),
            (true, format!(r#"{containerd}{runc}exec: "/data": is a directory: unknown"#)),
            (true, format!(r#"{containerd}{runc}exec /bin/train: exec format error: unknown"#)),
            (true, format!(r#"{containerd}{runc}exec: "nvidia-smi": executable file not found in $PATH: unknown"#)),
            (true, r#"failed to start containerd task "train": OCI runtime start failed: container process: exec: "hook": executable file not found in $PATH"#.to_owned()),
            (true, format!(r#"{docker}"exec: \"db:create\": executable file not found in $PATH": unknown"#)),
            (true, format!(r#"{docker}"exec: \"/docker-entrypoint.sh\": permission denied": unknown"#)),
            (true, r#"OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "ps": executable file not found in $PATH: unknown"#.to_owned()),
            (true, r#"oci runtime error: exec: "foo": executable file not found in $PATH"#.to_owned()),
            (true, r#"[8] System error: exec: "foo": executable file not found in $PATH"#.to_owned()),
            (true, "Container command 'foo' not found or does not exist.".to_owned()),
            (true, "Container command '/etc/passwd' could not be invoked.".to_owned()),
            (true, r#"container create failed: time="2025-04-09T08:00:00Z" level=error msg="runc create failed: unable to start container process: exec: \"/cluster/operator\": executable file not found in $PATH""#.to_owned()),
            (true, "container create failed: executable file `train` not found in $PATH: No such file or directory".to_owned()),
            (true, format!("{containerd}executable file `/bin/train` not found: No such file or directory: unknown")),
            (true, "container create failed: the path `/train.py` exists but it is not executable: Operation not permitted".to_owned()),
            (true, "container create failed: exec container process `/bin/sh`: Exec format error".to_owned()),
            (true, "failed to create containerd task: failed to create shim task: the file python3 was not found\n\nStack backtrace:\n   0: <unknown>".to_owned()),
            (true, r#""no-such-program" is not in PATH; images are not pulled; name its directory with --path or --venv"#.to_owned()),
            (true, r#""/etc/passwd" cannot be run: Permission denied (os error 13)"#.to_owned()),
            // The working directory.
            (true, format!(r#"{containerd}{runc}error during container init: chdir to cwd ("/root/work") set in config.json failed: permission denied: unknown"#)),
            (true, format!(r#"{docker}"process_linux.go:430: container init caused \"chdir to cwd (\\\"/work\\\") set in config.json failed: not a directory\"": unknown"#)),
            (true, "container create failed: chdir to `/work`: No such file or directory".to_owned()),
            (true, "the working directory /work does not exist".to_owned()),
            // Drivers, devices and hooks.
            (false, format!("{containerd}{runc}error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: driver rpc error: timed out: unknown")),
            (false, format!("{containerd}{runc}error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: initialization error: change root failed: no such file or directory: unknown")),
            (false, format!("{containerd}{runc}error during container init: error running prestart hook #0: fork/exec /usr/bin/nvidia-container-runtime-hook: no such file or directory: unknown")),
            (false, format!(r#"{containerd}{runc}error during container init: error running prestart hook #0: exec: "nvidia-container-runtime-hook": executable file not found in $PATH: unknown"#)),
            (false, format!(r#"{docker}"process_linux.go:430: container init caused \"process_linux.go:413: running prestart hook 1 caused \\\"error running hook: exit status 1, stdout: , stderr: exec command: [/usr/bin/nvidia-container-cli --load-kmods configure]\\\\nnvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory\\\"\"": unknown"#)),
            (false, format!("{containerd}error gathering device information while adding custom device \"/dev/nvidia3\": no such file or directory: unknown")),
            (false, "failed to generate spec: failed to set devices mapping: failed to stat CDI host device \"/dev/nvidia0\": no such file or directory".to_owned()),
            (false, "container create failed: error executing hook `/usr/bin/nvidia-container-runtime-hook` (exit code: 127)".to_owned()),
            // The runtime itself.
            (false, format!(r#"{containerd}{log}exec: "nvidia-container-runtime": executable file not found in $PATH: <nil>: unknown"#)),
            (false, format!("{containerd}{log}fork/exec /usr/bin/runc: permission denied: unknown")),
            (false, "failed to start shim: start failed: : fork/exec /usr/bin/containerd-shim-kata-v2: no such file or directory: unknown".to_owned()),
            (false, "failed to create containerd task: failed to create shim task: No such file or directory (os error 2)\n\nStack backtrace:\n   0: <unknown>".to_owned()),
            (false, "failed to start containerd task \"train\": ttrpc: closed: unknown".to_owned()),
            (false, "Unavailable: connection error: desc = \"transport: dial unix /run/containerd/containerd.sock: connect: no such file or directory\"".to_owned()),
            (false, "context deadline exceeded".to_owned()),
            // Mounts, cgroups, disks.
            (false, format!(r#"{containerd}{runc}error during container init: error mounting "/var/lib/kubelet/pods/95/etc-hosts" to rootfs at "/etc/hosts": open /run/containerd/rootfs/etc/hosts: permission denied: unknown"#)),
            (false, format!(r#"{containerd}{runc}error during container init: error mounting "/data/exec: x" to rootfs at "/data": stat /data: no such file or directory: unknown"#)),
            (false, format!("{containerd}{runc}unable to apply cgroup configuration: mkdir /sys/fs/cgroup/memory/kubepods/3f: no space left on device: unknown")),
            (false, format!("{containerd}{runc}unable to apply cgroup configuration: openat2 /sys/fs/cgroup/kubepods.slice/cgroup.procs: no such file or directory: unknown")),
            (false, "container create failed: open `/sys/fs/cgroup/machine.slice/cgroup.freeze`: No such file or directory".to_owned()),
            (false, "container create failed: mount `/var/lib/nfs` to `data`: Permission denied".to_owned()),
            (false, "container create failed: chdir to `/var/lib/containers/storage/overlay/3f/merged`: No such file or directory".to_owned()),
            (false, "failed to create containerd container: mount callback failed on /var/lib/containerd/tmpmounts/containerd-mount1: no such file or directory".to_owned()),
            // A command on a file system that fails, and a machine without memory.
            (false, format!(r#"{containerd}{runc}exec: "/mnt/train": stat /mnt/train: input/output error: unknown"#)),
            (false, format!("{containerd}{runc}can't get final child's PID from pipe: EOF: unknown")),
            (false, format!("{containerd}{runc}container init was OOM-killed (memory limit too low?): unknown")),
            (false, r#""train" cannot be run: Resource temporarily unavailable (os error 11)"#.to_owned()),
            (false, String::new()),
        ];
        for (expected, message) in rows {
            assert_eq!(is_of_command(&message), expected, "{message}");
        }
    }
}
