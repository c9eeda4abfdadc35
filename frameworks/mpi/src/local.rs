//! Adjustments for replicas that all run on one machine.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use local_node::{Environment, LocalPod};

use crate::environment::{DELIVERY, OWN_DELIVERY};
use crate::objects::SHELL;
use crate::v2beta1::{KEYS_VOLUME, ROLE_VARIABLE};

/// The variables that name the remote shell: those of Open MPI 4 and 5, Intel MPI and MPICH. `mpirun` starts processes in
/// other pods with it.
const SHELLS: [&str; 4] = [
    "OMPI_MCA_plm_rsh_agent",
    "PRTE_MCA_plm_ssh_agent",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC",
    "HYDRA_LAUNCHER_EXEC",
];

/// The variables with arguments for `ssh`.
const SSH_ARGUMENTS: [&str; 4] = [
    "OMPI_MCA_plm_rsh_args",
    "PRTE_MCA_plm_ssh_args",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
    "HYDRA_LAUNCH_EXTRA_ARGS",
];

/// The port of the workers' `sshd`, because port 22 needs root.
const SSH_PORT: u16 = 2222;

/// The directories of `sshd` beside those of `PATH`, which lacks them for most users.
const SBIN: &str = "/usr/sbin:/usr/local/sbin:/sbin";

/// Empty directories. The package of `sshd` creates one of them, and `sshd` needs it to run as root.
const SEPARATION: [&str; 4] = [
    "/run/sshd",
    "/var/empty",
    "/usr/share/empty.sshd",
    "/var/lib/sshd",
];

/// Replaces `kubectl`, because the node itself runs commands in other pods. Runs the `sshd` of v2beta1 at the address of the pod
/// with the keys of the job, where it is installed. Sets a temporary directory for each pod, because processes must not find
/// the files of other pods on the same machine.
pub fn adjust_local(pod: &LocalPod, environment: &mut Environment) {
    if [DELIVERY, OWN_DELIVERY].contains(&&*pod.container) {
        environment.skip_container(
            "the node starts processes in other pods without kubectl, and waits for the pods",
        );
        return;
    }
    if environment.in_pod(ROLE_VARIABLE) == Some("worker") {
        match ssh_programs() {
            Ok((ssh, sshd)) => serve(pod, environment, &ssh, &sshd),
            Err(missing) => {
                environment.idle_container(&format!("{missing}; the node starts processes in the pod"));
            }
        }
    }
    let temporary = pod.temporary.display().to_string();
    environment.set("TMPDIR", temporary, "a directory of the pod's own");
    let uses_ssh = environment.in_pod(ROLE_VARIABLE) == Some("launcher");
    let why = match uses_ssh {
        true => "there is no cluster DNS here; a program of the node finds other pods by their names",
        false => "there is no kubectl exec; the node runs commands in other pods",
    };
    for name in SHELLS {
        let shell = environment.in_pod(name).unwrap_or_default();
        if uses_ssh || shell.ends_with(SHELL) {
            let exec = pod.exec.display().to_string();
            environment.set(name, exec, why);
        }
    }
    if uses_ssh {
        for arguments in SSH_ARGUMENTS {
            environment.remove(
                arguments,
                "the program of the node calls ssh with its own arguments",
            );
        }
    }
    let is_open_mpi = SHELLS[..2].iter().any(|name| environment.get(name).is_some());
    if is_open_mpi && environment.get(COLLECTIVES).is_none() {
        environment.set(
            COLLECTIVES,
            "^han",
            "the han component treats pods of one machine as one pod, and hangs",
        );
    }
}

/// Returns the paths of `ssh` and `sshd`, or what is missing to run them.
fn ssh_programs() -> Result<(PathBuf, PathBuf), &'static str> {
    let paths = format!("{}:{SBIN}", env::var("PATH").unwrap_or_default());
    let find = |program: &str| {
        let mut folders = env::split_paths(&paths);
        folders
            .find_map(|folder| Some(folder.join(program)).filter(|path| path.is_absolute() && path.is_file()))
    };
    let ssh = find("ssh").ok_or("there is no ssh; install openssh-client to use it")?;
    let sshd = find("sshd").ok_or("there is no sshd; install openssh-server to use it")?;
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let may_be_root = || {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let has_user = users.lines().any(|user| user.starts_with("sshd:"));
        has_user && SEPARATION.iter().any(|folder| Path::new(folder).is_dir())
    };
    if is_root && !may_be_root() {
        return Err("sshd needs a user sshd and the directory /run/sshd to run as root");
    }
    Ok((ssh, sshd))
}

/// Lets the worker run `sshd` in place of its command, whose options name files of the image. Only the keys of the job are
/// accepted. The programs get the environment of the pod, with its directories, which a login does not have.
fn serve(pod: &LocalPod, environment: &mut Environment, ssh: &Path, sshd: &Path) {
    let (own, address) = (pod.temporary.display(), pod.address);
    let (keys, sshd) = (pod.volumes.join(KEYS_VOLUME), sshd.display());
    let ssh = ssh.display();
    let (keys, enter) = (keys.display(), pod.enter.display());
    // A key that others may read is not used.
    let script = format!(
        r#"(umask 077; cp '{keys}/id_rsa' '{own}/id_rsa') && exec '{sshd}' -D -e -f /dev/null \
-o ListenAddress={address} -o Port={SSH_PORT} -o 'HostKey="{own}/id_rsa"' \
-o 'AuthorizedKeysFile="{keys}/authorized_keys"' -o StrictModes=no -o PidFile=none \
-o 'ForceCommand='"'{enter}'"' "$SSH_ORIGINAL_COMMAND"'"#
    );
    environment.replace_command(
        &script,
        "sshd listens at the pod's own address, with the keys of the job",
    );
    environment.enter_by(&format!(
        r#"exec '{ssh}' -F /dev/null -i '{own}/id_rsa' -p {SSH_PORT} -o BatchMode=yes -o StrictHostKeyChecking=no \
-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o ConnectionAttempts=10 {address} "$1""#
    ));
}

/// The variable that selects Open MPI's components for collective operations.
const COLLECTIVES: &str = "OMPI_MCA_coll";
