//! Calls of commands to a cluster: [`cluster`] makes the client that the flags of a command select, [`call_error`] makes
//! sentences of the errors of its calls, and [`Signals`] are the signals that end the command.

pub mod call_error;
pub mod cluster;
mod signals;

pub use signals::Signals;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
