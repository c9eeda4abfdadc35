//! Adjustments for replicas that all run on one machine.

use local_node::{Environment, LocalPod};

use crate::environment::{DELIVERY, OWN_DELIVERY};
use crate::objects::SHELL;
use crate::v2beta1::ROLE_VARIABLE;

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
    let uses_ssh = environment.in_pod(ROLE_VARIABLE) == Some("launcher");
    let why = match uses_ssh {
        true => "there is no sshd; the node runs commands in other pods",
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
            environment.remove(arguments, "the shell of the node is not ssh");
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
