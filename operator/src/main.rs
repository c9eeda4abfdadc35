//! `training-operator`. The code is in the library beside this file, because fuzzing uses it as well.

use std::process::ExitCode;

/// With musl's own allocator, the operator takes a tenth more CPU under load, and 12 MiB less memory.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    training_operator::main()
}
