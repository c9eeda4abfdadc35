//! The in-memory Kubernetes API.
