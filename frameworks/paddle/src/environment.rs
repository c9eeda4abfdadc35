//! What a PaddleJob's processes read, to the byte as the Go operator v1.8.1 writes it (`envvar.go`):
//! `paddle.distributed.launch` does.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector};
use training_job::api::variable;
use training_job::{Replica, Topology};

pub(crate) const MASTER: &str = "Master";
pub(crate) const WORKER: &str = "Worker";

/// The address of the pod itself: the launcher serves where all meet if that is its own address.
const OWN_ADDRESS: &str = "POD_IP_DUMMY";

/// The environment of a replica. With masters, which are the parameter servers, all meet at the first of them, else at
/// the first worker.
pub(crate) fn variables(topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
    let master = topology.role(MASTER);
    let meeting = master.unwrap_or(replica.role);
    let is_meeting = replica.role.name() == meeting.name() && replica.index == 0;
    let mut environment = vec![
        // What a process prints is seen at once.
        variable("PYTHONUNBUFFERED", "1"),
        variable("PADDLE_JOB_ID", topology.job),
        variable("PADDLE_NNODES", topology.total().to_string()),
    ];
    let host = if is_meeting {
        environment.push(own_address());
        format!("$({OWN_ADDRESS})")
    } else {
        meeting.host(0)
    };
    environment.push(variable("PADDLE_MASTER", format!("{host}:{}", meeting.port)));
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
