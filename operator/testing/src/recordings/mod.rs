//! Recordings of a job of each kind at each stage of its life, and what programs conclude from them.

pub mod kinds;
pub mod life;
pub mod problems;
