//! Installs the shipped manifests on a real API server, and runs the operator as their service account.

mod doctor;
mod gangs;
mod launcher_rights;
pub(crate) mod life;
mod mpi;
mod namespace_admin;
mod overlays;
mod page;
mod permissions;
