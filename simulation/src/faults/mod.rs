//! All faults of a simulation. Every fault is defined in this folder.
//!
//! # Calls of operators: [`CallFault`], injected by `CallFault::inject`
//!
//! | fault | effect |
//! |---|---|
//! | `Refused` | the call is denied with this code |
//! | `Garbled` | the call takes effect, and the response is an error with this code |
//! | `Throttled`, `Busy` | the call is denied with 429; the wait is in the header or in the status |
//! | `Reset`, `ResetAfter` | the connection breaks before the call arrives, or before the response does |
//! | `Lost` | the call is dropped |
//! | `Unanswered` | the call takes effect, and the response is dropped |
//! | `Late` | the call takes effect after the operator has stopped waiting |
//! | `Truncated`, `Nonsense`, `Status` | the response cannot be read, or is of another kind |
//! | `Slow` | the call and its response are delayed |
//! | `Gone` | a watch begins with 410 |
//! | `Stale` | a list shows an older state |
//! | `DiesBefore`, `DiesAfter` | the operator dies at the call |
//!
//! # Watches: [`WatchDelay`], injected by `DelayedWatch`
//!
//! Events of a watch are delayed, and some are sent twice. A watch that ends after some events is a cluster fault,
//! [`ClusterFault::EndWatches`], which `EndingWatch` injects.
//!
//! # The cluster and the operators: [`ClusterFault`], injected by
//! [`Simulation::inject`](crate::simulation::Simulation::inject)
//!
//! | fault | effect |
//! |---|---|
//! | `Cut` | watches end |
//! | `EndWatches` | each watch ends after some events, for a while |
//! | `Compact` | the API server drops its history, and watches end |
//! | `Freeze` | watches stay open and send nothing |
//! | `Kill` | all operators are killed and started again |
//! | `SetClock` | the operators' clocks jump |
//! | `Backup`, `Restore` | the cluster is restored from a backup |
//! | `Capacity` | the capacity of a cluster with a gang scheduler is limited to a number of pods |
//!
//! # Pods and their nodes: [`PodFate`], played by the [`kubelet`](crate::world::kubelet)
//!
//! Pods fail, are evicted, preempted, lost with their node, restarted in place, or never start.
//!
//! # Users
//!
//! Mistakes of users (broken specs, edited labels and statuses, deleted pods) are a
//! [`UserAction`](crate::scenario::users::UserAction), not a fault.
//!
//! # To add a fault
//!
//! 1. Add a variant to one of the enums above, and its effect to the function that injects it. The compiler
//!    reports each `match` to extend.
//! 2. Let seeds draw it. A fault of calls goes to the end of `DRAWN` in `calls.rs` and into
//!    [`CallFault::applies_to`]. A fault of the cluster goes into [`ClusterFaultType`], its `draw`, and the end of
//!    `InterventionType::ALL` in `interventions.rs`. A fault of pods goes into [`PodFate::draw`].
//! 3. Seeds now produce other runs: raise [`SEED_VERSION`](crate::scenario::config::SEED_VERSION), and leave the draws of
//!    earlier versions unchanged.
//! 4. If operators may act on an older state because of it, add that to
//!    [`RunConfig::staleness`](crate::scenario::config::RunConfig::staleness).
//! 5. Add a row and its test to `tests/matrix`, and a line to the list above.

pub mod calls;
pub mod cluster;
pub mod pods;
pub mod watches;

pub use calls::{CallFault, CallSite};
pub use cluster::{ClusterFault, ClusterFaultType};
pub use pods::{LastEnd, PodFate};
pub use watches::WatchDelay;
