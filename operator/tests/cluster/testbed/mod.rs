//! The control plane for the tests with a real API server.

mod api_server;
mod audit;
mod binaries;
mod child;
mod controllers;
mod end;
mod install;
mod kubelet;
mod objects;
mod programs;
mod service_accounts;
mod waiting;
