//! The history: stories of finished jobs in a directory, which outlive the jobs.
//!
//! | file | content |
//! |---|---|
//! | `args.rs` | the flags `--history…` of an operator |
//! | `bounds.rs` | selects the stories to keep (pure) |
//! | `keeper.rs` | the queue of an operator, and the task that writes its stories |
//! | `collect.rs` | finished job → story |
//! | `command.rs` | the command `history`, which prints stories |

mod args;
mod bounds;
mod collect;
mod command;
mod keeper;
#[cfg(test)]
mod tests;

pub(crate) use args::HistoryArgs;
#[cfg(feature = "local-cluster")]
pub(crate) use args::keep;
#[cfg(feature = "local-cluster")]
pub(crate) use bounds::Limits;
pub use command::History;
