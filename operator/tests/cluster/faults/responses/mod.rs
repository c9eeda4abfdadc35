//! Unusable responses to each call.

mod access;
mod busy;
mod conflicts;
mod garbage;
mod lost;
mod objects;
