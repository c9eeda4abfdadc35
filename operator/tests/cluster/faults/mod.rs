//! Faults that operators must tolerate, on a real API server behind a proxy that injects them.

mod away;
mod control_plane;
mod endings;
mod identity;
mod quotas_and_policies;
mod responses;
mod watches;
