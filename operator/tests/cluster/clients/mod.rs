//! The clients of users on a real API server: kubectl and the Python SDK.

mod applied;
mod kubectl;
mod plugin;
mod sdk;
mod stage;
