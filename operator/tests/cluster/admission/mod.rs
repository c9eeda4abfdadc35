//! A real API server that validates jobs by the definitions in `crds/`.

mod api;
mod bad;
mod costs;
mod edits;
mod extensions;
mod gitops;
mod go_types;
mod good;
mod left;
mod operator;
mod released;
mod standalone;
mod status;
mod stored;
