//! Adjustments for replicas that all run on one machine.

use local_node::{Environment, LocalPod};

use crate::environment::{DELIVERY, OWN_DELIVERY};
use crate::objects::SHELL;

/// The variables that name the remote shell. `mpirun` starts processes in other pods with it.
const SHELLS: [&str; 3] = [
    "OMPI_MCA_plm_rsh_agent",
    "PRTE_MCA_plm_ssh_agent",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC",
];

/// Replaces `kubectl`, because the node itself runs commands in other pods. Sets a temporary directory for each pod,
/// because processes must not find the files of other pods on the same machine.
pub fn adjust_local(pod: &LocalPod, environment: &mut Environment) {
    if [DELIVERY, OWN_DELIVERY].contains(&&*pod.container) {
        environment.skip_container(
            "the node starts processes in other pods without kubectl, and waits for the pods",
        );
        return;
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
    if environment.in_pod(SHELLS[1]).is_some() && environment.get(COLLECTIVES).is_none() {
        environment.set(
            COLLECTIVES,
            "^han",
            "the han component treats pods of one machine as one pod, and hangs",
        );
    }
}

/// The variable that selects Open MPI's components for collective operations.
const COLLECTIVES: &str = "OMPI_MCA_coll";
