//! Faults that only a real API server shows: access, admission, its death, and the ends of its watches and namespaces. A
//! proxy injects those that must come at a certain call. All other faults are in `simulation/tests/matrix`.

mod access;
mod admission;
mod away;
mod control_plane;
mod namespaces;
mod output;
mod retry_after;
mod watches;
