//! The program's commands without files, terminal or exit codes. Only for fuzzing (feature `__fuzzing`).

pub use training_job_review::fuzzing::*;

/// Returns the program with its kinds.
pub fn program() -> Program {
    Program::new(crate::kinds())
}
