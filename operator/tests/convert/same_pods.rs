//! Pods stay the same.
