//! Converts jobs of older versions and operators to current ones.

mod always_valid;
mod cases;
mod same_pods;
