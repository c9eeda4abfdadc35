//! `training-operator local run` as users run it.

pub mod manifest;
pub mod run;
pub mod trial;
