//! A job's life.

mod edits;
mod ends;
mod times;
