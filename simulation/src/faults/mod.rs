//! All that can go wrong in a simulation. Nothing outside this folder defines a fault.
//!
//! # Calls of operators: [`CallFault`], injected by `CallFault::inject`
//!
//! | fault | what it does |
//! |---|---|
//! | `Refused` | the call is denied with this code |
//! | `Garbled` | the call takes effect, and the answer is an error with this code |
//! | `Throttled`, `Busy` | the call is denied with 429, and the wait is in the header or in the status |
//! | `Reset`, `ResetAfter` | the connection breaks before the call arrives, or before the answer does |
//! | `Lost` | the call is dropped |
//! | `Unanswered` | the call takes effect, and the answer is dropped |
//! | `Late` | the call takes effect after the operator has stopped waiting |
//! | `Truncated`, `Nonsense`, `Status` | the answer cannot be read, or is about something else |
//! | `Slow` | the call and its answer are delayed |
//! | `Gone` | a watch begins with 410 |
//! | `Stale` | a list shows an older state |
//! | `DiesBefore`, `DiesAfter` | the operator dies at the call |
//!
//! # Watches: [`WatchDelay`], injected by `DelayedWatch`
//!
//! Events of a watch are delayed, and some come twice. (A watch that ends when it has told some is a fault of the
//! cluster, [`ClusterFault::EndWatches`]; `EndingWatch` is what ends it.)
//!
//! # The cluster and the operators: [`ClusterFault`], injected by
//! [`Simulation::inject`](crate::simulation::Simulation::inject)
//!
//! | fault | what it does |
//! |---|---|
//! | `Cut` | watches end |
//! | `EndWatches` | each watch ends as soon as it has told some events, for a while |
//! | `Compact` | the API server forgets its history, and watches end |
//! | `Freeze` | watches fall silent and stay open |
//! | `Kill` | all operators are killed and started again |
//! | `SetClock` | the operators' clocks jump |
//! | `Backup`, `Restore` | the cluster is set back to a backup |
//! | `Room` | a cluster with a gang scheduler has room for so many pods |
//!
//! # Pods and their nodes: [`PodFate`], played by the [`kubelet`](crate::kubelet)
//!
//! Pods fail, are evicted, preempted, lost with their node, restarted in place, or never start.
//!
//! # Users
//!
//! What users do wrong (broken specs, edited labels and statuses, deleted pods) is a
//! [`UserAction`](crate::users::UserAction), not a fault.
//!
//! # To add a fault
//!
//! 1. Add a variant to one of the enums above, and what it does to the function that injects it; the compiler
//!    names each `match` that is to be extended.
//! 2. Let seeds draw it: a call's fault goes to the end of `DRAWN` in `calls.rs` and into
//!    [`CallFault::applies_to`]; a cluster's into [`ClusterFaultType`], its `draw`, and the end of
//!    `InterventionType::ALL` in `interventions.rs`; a pod's into [`PodFate::draw`].
//! 3. Seeds now mean other runs: raise [`SEED_VERSION`](crate::config::SEED_VERSION), and keep what seeds of
//!    earlier versions draw as it was.
//! 4. If operators may act on older state because of it, say so in
//!    [`RunConfig::staleness`](crate::config::RunConfig::staleness).
//! 5. Add a row and its test to `tests/matrix`, and a line to the list above.

pub mod calls;
pub mod cluster;
pub mod pods;
pub mod watches;

pub use calls::{CallFault, CallSite};
pub use cluster::{ClusterFault, ClusterFaultType};
pub use pods::PodFate;
pub use watches::WatchDelay;
