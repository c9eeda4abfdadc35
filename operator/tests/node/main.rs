//! Jobs on real nodes: kubelet, containerd, CNI, kube-proxy and CoreDNS on this machine. `make test-node` builds and
//! starts them as root, and runs this test, which takes ten minutes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod accidents;
mod alone;
mod cluster;
mod example;
mod install;
mod job;
mod large;
mod page;
mod pods;
mod security;
mod stage;
mod times;
mod trainings;
