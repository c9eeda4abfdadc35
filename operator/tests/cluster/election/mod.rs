//! `training-operator run` as a process: leader election, flags, signals, health and metrics.

mod candidates;
mod flags;
mod history;
mod leaders;
mod pages;
mod signals;
