//! The environment variables of a PaddleJob, byte for byte as the Go operator v1.8.1 writes them (`envvar.go`).
//! `paddle.distributed.launch` reads them.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector};
use training_job::api::variable;
use training_job::{Replica, Topology};

pub(crate) const MASTER: &str = "Master";
pub(crate) const WORKER: &str = "Worker";

/// The variable with the pod's own address. The launcher runs the rendezvous server if the rendezvous address is its
/// own.
const OWN_ADDRESS: &str = "POD_IP_DUMMY";

/// Returns the environment of a replica. The rendezvous is at the first master if there are masters (the parameter
/// servers), and else at the first worker.
pub(crate) fn variables(topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
    let master = topology.role(MASTER);
    let rendezvous = master.unwrap_or(replica.role);
    let is_rendezvous = replica.role.name() == rendezvous.name() && replica.index == 0;
    let mut environment = vec![
        // Makes Python write its output without buffering.
        variable("PYTHONUNBUFFERED", "1"),
        variable("PADDLE_JOB_ID", topology.job),
        variable("PADDLE_NNODES", topology.total().to_string()),
    ];
    let host = if is_rendezvous {
        environment.push(own_address());
        format!("$({OWN_ADDRESS})")
    } else {
        rendezvous.host(0)
    };
    environment.push(variable("PADDLE_MASTER", format!("{host}:{}", rendezvous.port)));
    match (master, replica.role.name()) {
        (None, _) => {}
        (Some(_), MASTER) => environment.push(variable("PADDLE_SERVER_NUM", "1")),
        (Some(_), _) => environment.push(variable("PADDLE_TRAINER_NUM", "1")),
    }
    environment
}

fn own_address() -> EnvVar {
    let field = ObjectFieldSelector {
        api_version: Some("v1".to_owned()),
        field_path: "status.podIP".to_owned(),
    };
    EnvVar {
        name: OWN_ADDRESS.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(field),
            ..EnvVarSource::default()
        }),
    }
}
