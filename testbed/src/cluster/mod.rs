//! A real Kubernetes control plane for tests: etcd, API server and controller manager as child processes of the test,
//! without nodes. [`Kubelet`] simulates the nodes.
//!
//! Every process runs under a shell that holds one end of a pipe of the test process. When the test process ends in
//! any way, the pipes close. Then the processes are killed and the directory is removed.

mod access;
mod api_server;
mod audit;
mod binaries;
mod control_plane;
mod create;
mod definitions;
mod directory;
mod kubectl;
mod kubelet;
mod nodes;
mod own;
mod ports;
mod process;
mod proxy;
mod relay;
mod servers;
mod users;
mod wait;

pub use audit::{Audit, Call};
pub use binaries::Binaries;
pub use control_plane::ControlPlane;
pub use kubectl::Output;
pub use kubelet::Kubelet;
pub use nodes::Nodes;
pub use own::Options;
pub use ports::free as free_port;
pub use process::{Background, Program};
pub use proxy::{Fault, Frozen, On, Planned, Proxy, RecordedCall, Reply};
pub use relay::{Link, Relay, Traffic};
pub use rustix::process::Signal;
pub use wait::{wait, wait_for_all};

pub use crate::repository;

use std::time::Duration;

/// The timeout of every wait, after which the test fails. It is long enough for a machine under load.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(180);

/// Returns the end of a text, for messages.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}
