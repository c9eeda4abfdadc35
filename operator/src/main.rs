//! The training operator.
fn main() {}
