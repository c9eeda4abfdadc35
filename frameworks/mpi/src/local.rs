//! Adjustments for replicas that all run on one machine.

use local_node::{Environment, LocalPod};

use crate::environment::{DELIVERY, OWN_DELIVERY};
use crate::objects::SHELL;
use crate::v2beta1::ROLE_VARIABLE;

/// The variables that name the remote shell. `mpirun` starts processes in other pods with it.
const SHELLS: [&str; 3] = [
    "OMPI_MCA_plm_rsh_agent",
    "PRTE_MCA_plm_ssh_agent",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC",
];

/// The variables that name the remote shell of MPICH. Its kind must be one that takes a program.
const HYDRA_SHELLS: [&str; 1] = ["HYDRA_LAUNCHER_EXEC"];

/// The variables with arguments for `ssh`.
const SSH_ARGUMENTS: [&str; 4] = [
    "OMPI_MCA_plm_rsh_args",
    "PRTE_MCA_plm_ssh_args",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
    "HYDRA_LAUNCH_EXTRA_ARGS",
];

/// Replaces `kubectl`, and the `sshd` and `ssh` of v2beta1, because the node itself runs commands in other pods. Sets a
/// temporary directory for each pod, because processes must not find the files of other pods on the same machine.
pub fn adjust_local(pod: &LocalPod, environment: &mut Environment) {
    if [DELIVERY, OWN_DELIVERY].contains(&&*pod.container) {
        environment.skip_container(
            "the node starts processes in other pods without kubectl, and waits for the pods",
        );
        return;
    }
    if environment.in_pod(ROLE_VARIABLE) == Some("worker") {
        environment.idle_container("there is no sshd; the node starts processes in the pod");
    }
    let temporary = pod.temporary.display().to_string();
    environment.set("TMPDIR", temporary, "a directory of the pod's own");
    for name in SHELLS {
        let shell = environment.in_pod(name).unwrap_or_default();
        if shell.ends_with(SHELL) {
            let exec = pod.exec.display().to_string();
            environment.set(
                name,
                exec,
                "there is no kubectl exec; the node runs commands in other pods",
            );
        }
    }
    if environment.in_pod(ROLE_VARIABLE) == Some("launcher") {
        for arguments in SSH_ARGUMENTS {
            environment.remove(arguments, "the shell of the node is not ssh");
        }
        for name in [&SHELLS[..], &HYDRA_SHELLS[..]].concat() {
            let exec = pod.exec.display().to_string();
            environment.set(
                name,
                exec,
                "there is no sshd; the node runs commands in other pods",
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

/// The variable that selects Open MPI's components for collective operations.
const COLLECTIVES: &str = "OMPI_MCA_coll";
