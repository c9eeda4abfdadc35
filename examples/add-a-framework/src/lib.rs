//! The kind FarmJob. It is a library, so that the program and its tests use it.

pub mod job;
